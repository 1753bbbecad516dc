"""WebGPU in ordinary CPython, over wgpu-py or (BACKEND=dawn) wgpudawn, on a software driver
for Vulkan.

VK_DRIVER_FILES names the driver; without it that of Mesa's lavapipe is taken, else the one
that Debian's Chromium brings along. A missing driver or wgpu fails the tests with what to
install. The cases are those of the browser (tests/browser/cases/py), with this folder's
gpu_world.py in place of the page's, and what only the desktop has.
"""

import inspect
import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVERS = (
    "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
    "/usr/lib/chromium/vk_swiftshader_icd.json",
)
SHARED = ("docstring_cases", "gpu_buffers", "gpu_cases", "gpu_devices", "gpu_errors")
SHARED += ("gpu_batch", "gpu_batch_faults", "gpu_elementwise", "gpu_faults")
SHARED += ("gpu_files", "gpu_kernels", "gpu_padding", "gpu_reads")
SHARED += ("gpu_reductions", "gpu_same_bytes", "gpu_text")
SHARED += ("gpu_upload", "image_cases", "tinygrad_cases", "tinygrad_operators")
SHARED += ("tinygrad_llm", "tinygrad_mishaps", "tinygrad_programs", "tinygrad_tensors")
SHARED += ("tinygrad_special", "tinygrad_tiny")

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
    *(
        str(HERE.parent / x)
        for x in ("browser/cases/py", "browser/cases/tinygrad", "native", "lite")
    ),
    str(HERE.parents[1] / "build" / "sources" / "tinygrad" / "test"),
]
pytest.register_assert_rewrite("gpu_world", "gpu_fixtures", "outputs", *SHARED)

import where_it_runs
from gpu_fixtures import device, gpu_features, nothing_leaks, run_async

__all__ = ["device", "gpu_features", "nothing_leaks"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run_async(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    return True


def pytest_terminal_summary(terminalreporter):
    row = terminalreporter.config.stash.get(where_it_runs.ASKED, None)
    if row and where_it_runs.is_whole(terminalreporter):
        counts = {
            kind: len(terminalreporter.stats.get(kind, []))
            for kind in ("passed", "skipped")
        }
        where_it_runs.keep(row, counts)
