"""tests/browser/cases/tinygrad/tinygrad_kept.py, on the desktop."""

from tinygrad_kept import *
from tinygrad_kept import pytestmark  # noqa: F401
