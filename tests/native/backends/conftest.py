"""The cases of tests/browser/cases/py over the driver in memory of examples/driver, which need
neither a GPU nor a page: what model/ does by itself."""

import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
CASES = TESTS / "browser" / "cases"
# Pyodide's wheel lacks the model; the cases are written for a NumPy that knows devices.
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
if sys.platform == "emscripten" or OLD_NUMPY:
    collect_ignore_glob = ["*"]
else:
    # This folder's gpu_world and the desktop's gpu_fixtures stand in the place of the page's.
    driver = TESTS.parent / "examples" / "driver"
    folders = HERE, driver, TESTS / "desktop", CASES / "py", CASES
    sys.path[:0] = map(str, folders)
    pytest.register_assert_rewrite(*(path.stem for path in CASES.glob("py/*.py")))

    from collecting import pytest_pycollect_makemodule, pytest_pyfunc_call
    from gpu_fixtures import device, gpu_features, nothing_leaks
    from gpu_world import compiled

    from dlpack_web import _backends
    from dlpack_web_memory import Memory

    __all__ = [
        "device",
        "gpu_features",
        "nothing_leaks",
        "pytest_pycollect_makemodule",
        "pytest_pyfunc_call",
    ]
    MEMORY = Memory(compiled)

    @pytest.fixture(autouse=True)
    def _memory(monkeypatch):
        """The default backend; other tests find none of its devices."""
        monkeypatch.setattr(_backends, "_default", MEMORY)
        _backends.owners.update(dict.fromkeys(MEMORY.devices, MEMORY))
        yield
        for device_id in MEMORY.devices:
            del _backends.owners[device_id]
