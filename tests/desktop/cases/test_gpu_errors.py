"""tests/browser/cases/py/gpu_errors.py, on the desktop."""

from gpu_errors import *
from gpu_errors import pytestmark  # noqa: F401
