"""tests/browser/cases/py/gpu_elementwise.py, on the desktop."""

from gpu_elementwise import *
from gpu_elementwise import pytestmark  # noqa: F401
