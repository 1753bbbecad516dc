"""tests/browser/cases/py/tinygrad_cases.py, on the desktop."""

from tinygrad_cases import *
from tinygrad_cases import pytestmark  # noqa: F401
