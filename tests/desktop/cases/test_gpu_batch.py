"""tests/browser/cases/py/gpu_batch.py, on the desktop."""

from gpu_batch import *
from gpu_batch import pytestmark  # noqa: F401
