import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
from in_python import *
from in_python import _nothing_leaks  # noqa: F401, whose name hides it from the line above
