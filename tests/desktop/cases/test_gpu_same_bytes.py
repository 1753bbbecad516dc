"""tests/browser/cases/py/gpu_same_bytes.py, on the desktop."""

from gpu_same_bytes import *
from gpu_same_bytes import pytestmark  # noqa: F401
