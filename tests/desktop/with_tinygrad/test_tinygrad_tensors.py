"""tests/browser/cases/tinygrad/tinygrad_tensors.py, on the desktop."""

from tinygrad_tensors import *
from tinygrad_tensors import pytestmark  # noqa: F401
