"""What wheels have of the sources: wasm/toolchain/wheels.py."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wheels

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = shutil.ignore_patterns("__pycache__", "*.egg-info")
PRIVATE = '''"""A private module."""
from typing import Any  # for the annotations

class Base:
    """A base class."""

    def shown(self, x: int = 3) -> str:  # is public
        """Is shown."""
        def inner(y: "µ" = "µ", *more: Any, größe: int) -> "a -> b":
            """Is not."""
        return "# no comment"

    def _hidden(self, x: dict[str, int], /, *, y: tuple[
        int, str] = (1, ""), **z: Any) -> Any: # goes
        """Goes,

        too."""
        return x

    def __len__(self) -> int:
        """Stays."""
        return 1

class Public(Base):
    """A public class."""

class Other:
    """Is not imported."""

    async def shown(self) -> Any:
        """Is not shown."""
        return 1

def one() -> list[
    int
]:
    """Only this."""

def two() -> (
    int
):
    return 2

def listed(x: Any) -> Any:
    """Is listed."""
    return x
'''
LEFT = '''
from typing import Any

class Base:
    """A base class."""

    def shown(self, x: int = 3) -> str:
        """Is shown."""
        def inner(y = "µ", *more, größe):
            ...
        return "# no comment"

    def _hidden(self, x, /, *, y: tuple[
        int, str] = (1, ""), **z):



        return x

    def __len__(self) -> int:
        """Stays."""
        return 1

class Public(Base):
    """A public class."""

class Other:


    async def shown(self):

        return 1

def one() -> list[
    int
]:
    ...

def two() -> (
    int
):
    return 2

def listed(x: Any) -> Any:
    """Is listed."""
    return x
'''
PUBLIC = '''"""A public module."""

from ._private import Public  # imported
from . import _private
__all__ = ["Public", "listed"]
listed = _private.listed

def shown(x: int) -> None:
    """Is public, too."""

def _not(x: int) -> None:
    """Is not."""
    return None
'''


def test_private_names_lose_what_they_say_of_themselves(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "_private.py").write_text(PRIVATE, "utf-8")
    (package / "__init__.py").write_text(PUBLIC, "utf-8")
    wheels.strip(tmp_path)
    assert (package / "_private.py").read_text("utf-8") == LEFT
    left = PUBLIC.replace("  # imported", "").replace('    """Is not."""', "")
    left = left.replace("_not(x: int) -> None", "_not(x)")
    assert (package / "__init__.py").read_text("utf-8") == left


def code_of(text):
    """The tree without docstrings and annotations of functions, with the numbers of lines."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, wheels.Definition | ast.Module):
            if ast.get_docstring(node) is not None:
                del node.body[0]
            if len(node.body) == 1 and ast.unparse(node.body[0]) == "...":
                node.body = []
        for name in ("col_offset", "end_col_offset", "end_lineno"):
            if hasattr(node, name):
                delattr(node, name)
    return ast.dump(tree, include_attributes=True)


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """The sources of the bridge and the packages as their wheels have them."""
    folder = tmp_path_factory.mktemp("stripped")
    for sources in (ROOT / "py", *ROOT.glob("packages/*/py")):
        shutil.copytree(sources, folder, ignore=HIDDEN, dirs_exist_ok=True)
    wheels.strip(folder)
    return folder


def test_code_and_numbers_of_lines_are_the_same(stripped):
    files = [*stripped.rglob("*.py")]
    assert len(files) > 60
    for file in files:
        name = file.relative_to(stripped)
        (source,) = (
            p
            for p in (ROOT / "py" / name, *ROOT.glob(f"packages/*/py/{name}"))
            if p.exists()
        )
        assert code_of(file.read_text("utf-8")) == code_of(source.read_text("utf-8")), (
            name
        )


SHOW = """
import inspect, dlpack_web, docstrings
for name, text in docstrings.public():
    print(name, text)
for module in ("dlpack_web.internal", "dlpack_web.backends"):
    print(module, [*docstrings.members_of(module)])
for module in (dlpack_web, dlpack_web.webgpu):
    for name in module.__all__:
        if inspect.isfunction(thing := getattr(module, name)):
            print(name, inspect.signature(thing))
print(dlpack_web.__file__)
"""


def shown(folder):
    """What help() shows of the public names."""
    path = os.pathsep.join([str(folder), str(ROOT / "tests" / "native")])
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, file = done.stdout.splitlines()
    assert file.startswith(str(folder))
    return lines


def test_help_shows_the_same(stripped):
    lines = shown(ROOT / "py")
    assert len(lines) > 1000
    assert shown(stripped) == lines


def test_a_wheel_for_pyodide_is_without_what_its_manifest_names(tmp_path):
    package = tmp_path / "py" / "package"
    (package / "desktop").mkdir(parents=True)
    for name in ("__init__", "desktop/__init__", "desktop/gpu", "other", "stays"):
        (package / f"{name}.py").write_text("# nothing\n")
    manifest = tmp_path / "pyproject.toml"
    manifest.write_text(
        '[tool.dlpack-web.pyodide]\nwithout = ["package/desktop", "package/other.py"]\n'
    )
    wheels.reduce(tmp_path)
    there = {file.name: file.read_text() for file in package.rglob("*")}
    assert there == {"__init__.py": "\n", "stays.py": "\n"}
    with pytest.raises(FileNotFoundError):  # a name that is wrong
        wheels.reduce(tmp_path)
    manifest.write_text("[tool.other]\n")
    wheels.reduce(tmp_path)
