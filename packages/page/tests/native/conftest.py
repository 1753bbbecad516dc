import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE.parents[3] / "tests" / "support"), str(HERE.parent / "wire")]
from in_python import *
from in_python import _nothing_leaks  # noqa: F401, whose name hides it from the line above
