"""tests/browser/cases/tinygrad/tinygrad_mishaps.py, on the desktop."""

from tinygrad_mishaps import *
from tinygrad_mishaps import pytestmark  # noqa: F401
