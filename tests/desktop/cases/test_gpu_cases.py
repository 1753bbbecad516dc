"""tests/browser/cases/py/gpu_cases.py, on the desktop."""

from gpu_cases import *
from gpu_cases import pytestmark  # noqa: F401
