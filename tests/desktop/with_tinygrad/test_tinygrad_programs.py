"""tests/browser/cases/tinygrad/tinygrad_programs.py, on the desktop."""

from tinygrad_programs import *
from tinygrad_programs import pytestmark  # noqa: F401
