"""What web/RUNTIMES.md says of the desktop."""

import os
import sys
from importlib import metadata

import pytest
import where_it_runs

import dlpack_web as dlw

BACKEND = os.environ.get("BACKEND", "native")
ROW, PACKAGE, DRIVER = {
    "native": ("cpython", "wgpu", "llvmpipe"),
    "dawn": ("cpython-dawn", "wgpudawn", "SwiftShader"),
}[BACKEND]


def test_where_it_runs():
    adapter = dlw.features()["webgpu"]["adapter"]
    if DRIVER not in adapter:
        pytest.skip(f"the page is about {DRIVER}, this is {adapter}")
    told = {}
    exec(where_it_runs.FACTS, told)  # noqa: S102 - ours, and asked in a page elsewhere
    python = ".".join(map(str, sys.version_info[:2]))
    version = f"CPython {python}, {PACKAGE} {metadata.version(PACKAGE)}"
    where_it_runs.check(ROW, version, told["facts"])
