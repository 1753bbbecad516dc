"""tests/browser/cases/py/gpu_padding.py, on the desktop."""

from gpu_padding import *
from gpu_padding import pytestmark  # noqa: F401
