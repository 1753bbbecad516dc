"""What web/RUNTIMES.md says of the desktop."""

import sys

import pytest
import wgpu
import where_it_runs

import dlpack_web as dlw

ROW = "cpython"


def test_where_it_runs(request):
    adapter = dlw.features()["webgpu"]["adapter"]
    if "llvmpipe" not in adapter:
        pytest.skip(f"the page tells of lavapipe, this is {adapter}")
    told = {}
    exec(where_it_runs.FACTS, told)  # noqa: S102 - ours, and asked in a page elsewhere
    request.config.stash[where_it_runs.ASKED] = ROW
    version = (
        f"CPython {sys.version_info[0]}.{sys.version_info[1]}, wgpu {wgpu.__version__}"
    )
    where_it_runs.check(ROW, version, told["facts"])
