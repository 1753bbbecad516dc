"""The modules of tests/browser/cases/py that run on the desktop, too: conftest.py collects them."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "browser" / "cases" / "py"
# For pages alone, or without tests.
OTHERS = {"gpu_fixtures", "gpu_interrupts", "gpu_waits", "gpu_world"}
GPU = {path.stem for path in FOLDER.glob("gpu_*.py")} - OTHERS
CASES = ["docstring_cases", *sorted(GPU), "image_cases"]
