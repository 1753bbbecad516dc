"""tests/browser/cases/py/gpu_kernels.py, on the desktop."""

from gpu_kernels import *
from gpu_kernels import pytestmark  # noqa: F401
