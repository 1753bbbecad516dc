"""dlpack_web_onnxruntime where there is no page: the package onnxruntime, modules in it included.
In a page: tests/browser."""

import os
import re
import subprocess
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("public_names.txt")
NATIVE = Path(__file__).parents[4] / "tests" / "native"
IN_A_PAGE = """
import sys
from unittest.mock import MagicMock

import dlpack_web

sys.platform = "emscripten"
sys.modules |= dict.fromkeys(("js", "pyodide", "pyodide.ffi", "pyodide_js"), MagicMock())
"""


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
        return done.stdout.splitlines()

    return run


def test_it_is_the_package(ask):
    said = ask("""
import dlpack_web_onnxruntime as onnxruntime
from dlpack_web_onnxruntime import InferenceSession, not_listed
from dlpack_web_onnxruntime.capi.state import kind
onnxruntime.install()
print(InferenceSession, onnxruntime.not_listed, kind)
""")
    assert said == ["1 2 3"]


def test_it_loads_nothing_of_a_page(ask):
    said = ask("""
import dlpack_web_onnxruntime
print(*(name for name in sys.modules if name.startswith("dlpack_web_onnxruntime.")))
try:
    import dlpack_web_onnxruntime._session
except ImportError as error:
    print("ImportError")
""")
    assert said == ["", "ImportError"]


def test_in_a_page_its_parts_are_not_modules_of_onnxruntime(ask):
    """As there: this package's own classes, and what install() names."""
    said = ask(f"""{IN_A_PAGE}
import dlpack_web_onnxruntime as onnxruntime
onnxruntime.install()
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
import onnxruntime.backend.backend
print(ort is onnxruntime and ort.capi._pybind_state.Fail is Fail)
for name in ("onnxruntime._session", "onnxruntime.session", "onnxruntime.tools"):
    try:
        __import__(name)
    except ImportError as error:
        print(error.name)
""")
    assert said == [
        "True",
        "onnxruntime._session",
        "onnxruntime.session",
        "onnxruntime.tools",
    ]


def test_public_names_are_those_of_the_list(ask):
    """PUBLIC=write writes it; a change there is a change for users."""
    said = ask(f"""{IN_A_PAGE}
sys.path[:0] = [{str(NATIVE)!r}]
import inspect

import public_names
from dlpack_web_onnxruntime import backend, capi

lines = [*public_names.names_of("dlpack_web_onnxruntime")]
for package in (capi, backend):
    for _, thing in inspect.getmembers(package, inspect.ismodule):
        names = sorted(each for each in vars(thing) if not each.startswith("_"))
        lines.append(f"{{thing.__name__}}: {{', '.join(names)}}")
print("\\n".join(lines))
""")
    lines = "".join(f"{line}\n" for line in said)
    if os.environ.get("PUBLIC") == "write":
        LIST.write_text(lines, "utf-8")
    assert LIST.read_text("utf-8") == lines


def test_another_version_of_the_bridge_is_refused_by_name(ask):
    said = ask(f"""{IN_A_PAGE}
dlpack_web.__version__ = "9.8.7"
try:
    import dlpack_web_onnxruntime
except ImportError as error:
    print(error)
""")
    assert re.fullmatch(
        r"dlpack-web-onnxruntime is 0\.[\w.]+, and dlpack-web is 9\.8\.7: install both .*",
        said[0],
    )
