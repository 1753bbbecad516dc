"""tests/browser/cases/py/gpu_files.py, on the desktop."""

from gpu_files import *
from gpu_files import pytestmark  # noqa: F401
