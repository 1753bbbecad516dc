"""tests/browser/cases/py/gpu_faults.py, on the desktop."""

from gpu_faults import *
from gpu_faults import pytestmark  # noqa: F401
