"""WebGPU in ordinary CPython, over wgpu-py or (BACKEND=dawn) wgpudawn, on a software driver
for Vulkan.

VK_DRIVER_FILES names the driver; without it that of Mesa's lavapipe is taken, else the one
that Debian's Chromium brings along. A missing driver or wgpu fails the tests with what to
install. The cases are those of the browser (tests/browser/cases/py), with this folder's
gpu_world.py in place of the page's, and what only the desktop has.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "desktop"
# Jobs in a shell's background ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
DRIVERS = (
    "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
    "/usr/lib/chromium/vk_swiftshader_icd.json",
)
CASES = HERE.parent / "browser" / "cases" / "py"

#: "dawn": over wgpudawn, in this process and in those that it starts. Dawn refuses the
#: lavapipe of Debian 12.
DAWN = os.environ.get("BACKEND") == "dawn"
if DAWN:
    DRIVERS = DRIVERS[1:]
    sys.path.insert(0, str(HERE / "dawn"))
    paths = str(HERE / "dawn"), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

if "VK_DRIVER_FILES" not in os.environ:
    found = [driver for driver in DRIVERS if Path(driver).is_file()]
    if found:
        os.environ["VK_DRIVER_FILES"] = found[0]
# tinygrad's CPU device needs a clang of any version; without one it is interpreted.
for version in ("", *(f"-{number}" for number in range(14, 25))):
    if "CC" not in os.environ and shutil.which(f"clang{version}"):
        os.environ["CC"] = f"clang{version}"
# Mesa's OpenGL, which wgpu looks at as well, says so where it is missing.
os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")

# This folder first: its gpu_world and gpu_fixtures stand in the place of the page's.
sys.path[:0] = [
    str(HERE),
    str(CASES),
    str(CASES.parent),
    str(HERE.parent / "native"),
]
pytest.register_assert_rewrite(*(path.stem for path in CASES.glob("*.py")))

from collecting import pytest_pycollect_makemodule, pytest_pyfunc_call
from gpu_fixtures import device, gpu_features, nothing_leaks

__all__ = [
    "device",
    "gpu_features",
    "nothing_leaks",
    "pytest_pycollect_makemodule",
    "pytest_pyfunc_call",
]
