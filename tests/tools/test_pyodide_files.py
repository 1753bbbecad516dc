"""What the build takes from the npm package `pyodide`: known files, and it runs none."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import fetch_packages
import fetch_wheels
import make_xbuildenv
import pyodide_files
import pytest

SCRIPTS = [make_xbuildenv, fetch_packages, fetch_wheels]


@pytest.fixture
def package(tmp_path):
    """A package that says it is a known version of Pyodide; its files are others."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    (folder / "package.json").write_text('{"version": "314.0.4"}')
    lock = {"info": {"python": "3.14.2"}, "packages": {"numpy": {}}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    with zipfile.ZipFile(folder / "python_stdlib.zip", "w") as archive:
        code = "build_time_vars = {'CC': 'rm'}"
        archive.writestr("_sysconfigdata__emscripten_wasm32-emscripten.py", code)
    return folder


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_changed_files_are_refused(script, package, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, script.__file__, package, out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pyodide-lock.json is not a known file of Pyodide 314.0.4" in done.stderr
    assert "rm -r node_modules" in done.stderr
    assert not list(tmp_path.glob("out/*"))


def test_each_file_is_compared(package, monkeypatch):
    digest = hashlib.sha256((package / "pyodide-lock.json").read_bytes()).hexdigest()
    known = {"pyodide-lock.json": digest}
    monkeypatch.setitem(pyodide_files.SHA256, "314.0.4", known)
    assert b"3.14.2" in pyodide_files.read(package, "pyodide-lock.json")
    with pytest.raises(SystemExit, match=r"python_stdlib\.zip is not a known file"):
        make_xbuildenv.synthesise(package, package / "out")


def test_a_new_version_is_refused_with_its_hash(package):
    (package / "package.json").write_text('{"version": "315.0.0"}')
    data = (package / "python_stdlib.zip").read_bytes()
    with pytest.raises(SystemExit, match=hashlib.sha256(data).hexdigest()):
        pyodide_files.read(package, "python_stdlib.zip")


def test_sysconfigdata_is_read():
    code = """\
import os
PYODIDE_ROOT = os.environ.get("PYODIDE_ROOT", "/root")
build_time_vars = {'CC': 'cc', 'SIZEOF_LONG': 4, 'prefix': f'-I{PYODIDE_ROOT}/python'}
os.abort()
"""
    found = make_xbuildenv.build_time_vars(code, Path("/here"))
    assert found == {"CC": "cc", "SIZEOF_LONG": 4, "prefix": "-I/here/python"}


@pytest.mark.parametrize(
    "value", ["os.abort()", "f'{os.abort()}'", "f'{PYODIDE_ROOT!r}'", "[1]", "1.5"]
)
def test_sysconfigdata_is_not_run(value):
    with pytest.raises(SystemExit, match="runs nothing"):
        make_xbuildenv.build_time_vars(f"build_time_vars = {{'CC': {value}}}", Path())
