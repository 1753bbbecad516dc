"""tests/browser/cases/py/gpu_reads.py, on the desktop."""

from gpu_reads import *
from gpu_reads import pytestmark  # noqa: F401
