"""tests/browser/cases/py/gpu_text.py, on the desktop."""

from gpu_text import *
from gpu_text import pytestmark  # noqa: F401
