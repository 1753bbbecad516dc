"""tests/browser/cases/tinygrad/tinygrad_tiny.py, on the desktop."""

from tinygrad_tiny import *
from tinygrad_tiny import pytestmark  # noqa: F401
