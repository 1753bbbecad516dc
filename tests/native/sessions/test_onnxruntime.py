"""dlpack_web.onnxruntime where there is no page: the package onnxruntime, modules in it included.
In a page: tests/browser/onnxruntime."""

import subprocess

import pytest


@pytest.fixture
def ask(host_python, tmp_path):
    """What a program prints, beside a package that has onnxruntime's name."""
    package = tmp_path / "onnxruntime"
    (package / "capi").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "__all__ = ['InferenceSession']\nInferenceSession, not_listed = 1, 2\n"
    )
    (package / "capi" / "__init__.py").write_text("")
    (package / "capi" / "state.py").write_text("kind = 3\n")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"

    def run(program):
        command = [host_python, "-c", path + program]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run


def test_it_is_the_package(ask):
    said = ask("""
from dlpack_web import onnxruntime
from dlpack_web.onnxruntime import InferenceSession, not_listed
from dlpack_web.onnxruntime.capi.state import kind
onnxruntime.install()
print(InferenceSession, onnxruntime.not_listed, kind)
""")
    assert said == ["1", "2", "3"]


def test_it_loads_nothing_of_a_page(ask):
    said = ask("""
import dlpack_web.onnxruntime
print(*(name for name in sys.modules if name.startswith("dlpack_web.onnxruntime.")))
try:
    import dlpack_web.onnxruntime._session
except ImportError as error:
    print("ImportError")
""")
    assert said == ["ImportError"]


def test_in_a_page_its_parts_are_not_modules_of_onnxruntime(ask):
    """As there: this package's own classes, and what install() names."""
    said = ask("""
import dlpack_web
sys.platform = "emscripten"
from dlpack_web import onnxruntime
onnxruntime.install()
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
import onnxruntime.backend.backend
print(ort is onnxruntime, ort.capi._pybind_state.Fail is Fail)
for name in ("onnxruntime._session", "onnxruntime.session", "onnxruntime.tools"):
    try:
        __import__(name)
    except ImportError as error:
        print(error.name)
""")
    assert said == [
        "True",
        "True",
        "onnxruntime._session",
        "onnxruntime.session",
        "onnxruntime.tools",
    ]
