"""tests/browser/cases/tinygrad/tinygrad_cases.py, on the desktop."""

from tinygrad_cases import *
from tinygrad_cases import pytestmark  # noqa: F401
