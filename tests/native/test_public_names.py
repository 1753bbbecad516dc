"""The public names of the Python package stay: public_names.txt has them all."""

import pickle
import subprocess

import public_names
import pytest

import dlpack_web as dlw

# What `import dlpack_web` does not need, and others may not have.
LATE = (
    "dlpack_web.internal",
    "dlpack_web.backends",
    "numpy",
    "wgpu",
    "js",
    "html.entities",  # in Pyodide these two take a tenth of a second
    "secrets",
)


def test_public_names_are_those_of_the_list(host_python):
    listed = public_names.FILE.read_text("utf-8").splitlines()
    found = public_names.found(host_python).splitlines()
    gone, new = sorted({*listed} - {*found}), sorted({*found} - {*listed})
    assert (gone, new) == ([], []), (
        "users see this: `python tests/native/public_names.py`, and a line in CHANGELOG.md"
    )
    assert found == listed


@pytest.mark.parametrize(
    "thing",
    [
        dlw.Device(dlw.DLDeviceType.kDLWebGPU, 1),
        dlw.DLDeviceType.kDLCPU,
        dlw.empty(3).dtype,
        dlw.TensorInfo,
        dlw.CopyError("x"),
    ],
    ids=repr,
)
def test_values_are_pickled(thing):
    again = pickle.loads(pickle.dumps(thing))
    assert type(again) is type(thing)
    assert repr(again) == repr(thing)


def test_modules_that_are_imported_later(host_python):
    say = "import sys, dlpack_web; print(*sys.modules)"
    done = subprocess.run(
        [host_python, "-c", say], check=True, capture_output=True, text=True
    )
    there = done.stdout.split()
    assert "dlpack_web.webgpu" in there
    assert [name for name in LATE if name in there] == []


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("onnxruntime", "onnxruntime"),
        ("tinygrad", "tinygrad"),
        ("widget", "page"),
        ("wire", "page"),
    ],
)
@pytest.mark.parametrize("line", ["import dlpack_web.", "from dlpack_web import "])
def test_a_module_that_moved_says_what_to_install(line, name, package):
    with pytest.raises(
        ImportError,
        match=f"package dlpack-web-{package} now: install that, and import dlpack_web_{package}",
    ):
        exec(line + name, {})  # noqa: S102
