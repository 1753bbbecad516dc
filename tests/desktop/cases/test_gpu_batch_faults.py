"""tests/browser/cases/py/gpu_batch_faults.py, on the desktop."""

from gpu_batch_faults import *
from gpu_batch_faults import pytestmark  # noqa: F401
