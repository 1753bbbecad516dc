"""tests/browser/gpu_errors.py, on the desktop."""

from gpu_errors import *
from gpu_errors import pytestmark  # noqa: F401
