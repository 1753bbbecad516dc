"""tests/browser/cases/tinygrad/tinygrad_operators.py, on the desktop."""

from tinygrad_operators import *
from tinygrad_operators import pytestmark  # noqa: F401
