"""The wheels of the packages beside the bridge, installed without an index."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"


def sources(name):
    """The files of a package that its wheel has on the desktop, and those of Pyodide's."""
    project = ROOT / "packages" / name.removeprefix("dlpack-web-")
    files = {
        path.relative_to(project / "py").as_posix()
        for path in project.glob("py/dlpack_web_*/**/*.*")
        if path.suffix != ".pyi" and path.parent.name != "__pycache__"
    }
    tools = tomllib.loads((project / "pyproject.toml").read_text())["tool"]
    without = tools.get("dlpack-web", {}).get("pyodide", {}).get("without", [])
    return files, {file for file in files if not file.startswith(tuple(without))}


def wheel_of(name, file):
    """The same on the desktop: the same file, unless Pyodide has one of its own."""
    if file.endswith("-none-any.whl"):
        return DIST / file
    (found,) = (DIST / "desktop").glob(f"{name.replace('-', '_')}-*-none-any.whl")
    return found


def test_wheels_of_packages_install_on_their_own(tmp_path):
    """They ask for the bridge of their own version, and for nothing from an index that is not said."""
    names = json.loads((DIST / "packages.json").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {f"packages/{name.removeprefix('dlpack-web-')}" for name in names} == {
        path.parent.relative_to(ROOT).as_posix()
        for path in ROOT.glob("packages/*/pyproject.toml")
    }
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    target = tmp_path / "installed"
    files = [wheel_of(*item) for item in names.items()]
    subprocess.run([*pip, "--target", target, *files], check=True)
    for name, file in names.items():
        module = name.replace("-", "_")
        everywhere, in_pyodide = sources(name)
        there = {
            path.relative_to(target).as_posix()
            for path in (target / module).rglob("*.*")
            if path.suffix != ".pyc" and path.name != "__pycache__"
        }
        assert there == everywhere
        for path, wanted in (
            (wheel_of(name, file), everywhere),
            (DIST / file, in_pyodide),
        ):
            with zipfile.ZipFile(path) as wheel:
                there = {each for each in wheel.namelist() if "dist-info" not in each}
                (metadata,) = {*wheel.namelist()} & {
                    f"{module}-{version}.dist-info/METADATA"
                }
                text = wheel.read(metadata).decode()
                public = wheel.read(f"{module}/__init__.py").decode()
            assert f"Version: {version}\n" in text
            assert f"Requires-Dist: dlpack-web=={version}\n" in text
            assert there == wanted
            assert public.startswith('"""'), "the public docstring stays"
            assert "#: " not in public, "comments do not"
