"""Pages with Pyodide, dlpack-web and this package's wheel in them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4] / "tests" / "support"))
from in_browser import *
