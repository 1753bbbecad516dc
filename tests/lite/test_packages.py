"""The packages of the site, which its notebooks load."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256

import pytest
from serve import SITE

PACKAGES = SITE / "packages"
MODULES = {
    "python_stdlib.zip": "asyncio/events",
    "ipython-*.whl": "IPython/core/interactiveshell",
    "numpy-*.whl": "numpy/_core/multiarray",
}


@pytest.mark.parametrize("name", MODULES)
def test_packages_are_compiled(name: str) -> None:
    """Most of the time in which Python starts would be compiling."""
    (file,) = PACKAGES.glob(name)
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        code = archive.read(f"{MODULES[name]}.pyc")
    assert f"{MODULES[name]}.py" not in names
    assert int.from_bytes(code[4:8], "little") == 1  # never compared with a source


def test_the_lock_has_the_hashes_of_what_is_there() -> None:
    lock = json.loads((PACKAGES / "pyodide-lock.json").read_text())
    for each in lock["packages"].values():
        file = PACKAGES / each["file_name"]
        assert sha256(file.read_bytes()).hexdigest() == each["sha256"], file.name
