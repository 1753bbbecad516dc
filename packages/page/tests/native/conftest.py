import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE.parents[3] / "tests" / "support"), str(HERE.parent / "wire")]
from in_python import *
from in_python import _nothing_leaks  # noqa: F401, whose name hides it from the line above


@pytest.fixture(autouse=True)
def _pages_end(_nothing_leaks):  # noqa: F811, which is before it
    """Those of fake_page.py that a test has made."""
    yield
    if "fake_page" in sys.modules:
        sys.modules["fake_page"].end_all()
