"""tests/browser/cases/py/image_cases.py, on the desktop."""

from image_cases import *
from image_cases import pytestmark  # noqa: F401
