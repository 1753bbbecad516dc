"""WebGPU in ordinary CPython. tinygrad keeps a device and tensors as long as its process lives, so
these tests have one of their own."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "tests" / "support"))
from on_desktop import *

ROOT = Path(__file__).parents[4]
sys.path += [
    str(Path(__file__).parents[1] / "cases"),
    str(ROOT / "build" / "sources" / "tinygrad" / "test"),
]
pytest.register_assert_rewrite(
    *(path.stem for path in Path(__file__).parents[1].glob("cases/*.py"))
)
