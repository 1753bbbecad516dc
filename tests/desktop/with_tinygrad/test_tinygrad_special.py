"""tests/browser/cases/tinygrad/tinygrad_special.py, on the desktop."""

from tinygrad_special import *
from tinygrad_special import pytestmark  # noqa: F401
