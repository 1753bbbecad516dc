import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[4] / "tests" / "support"
sys.path.append(str(SUPPORT))
from in_python import *
from in_python import _nothing_leaks  # noqa: F401, whose name hides it from the line above
