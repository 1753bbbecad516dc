"""tests/browser/cases/py/gpu_devices.py, on the desktop."""

from gpu_devices import *
from gpu_devices import pytestmark  # noqa: F401
