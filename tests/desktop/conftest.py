"""WebGPU in ordinary CPython."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from on_desktop import *
