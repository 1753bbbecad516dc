"""tests/browser/cases/py/gpu_reductions.py, on the desktop."""

from gpu_reductions import *
from gpu_reductions import pytestmark  # noqa: F401
