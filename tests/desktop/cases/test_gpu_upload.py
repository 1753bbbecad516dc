"""tests/browser/cases/py/gpu_upload.py, on the desktop."""

from gpu_upload import *
from gpu_upload import pytestmark  # noqa: F401
