"""Deno, Node and Bun with Pyodide and dlpack-web in them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from in_runtimes import *
