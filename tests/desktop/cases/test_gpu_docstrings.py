"""tests/browser/cases/py/docstring_cases.py, on the desktop."""

from docstring_cases import *
from docstring_cases import pytestmark  # noqa: F401
