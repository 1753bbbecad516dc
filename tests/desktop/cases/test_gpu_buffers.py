"""tests/browser/cases/py/gpu_buffers.py, on the desktop."""

from gpu_buffers import *
from gpu_buffers import pytestmark  # noqa: F401
