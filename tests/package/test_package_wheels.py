"""The wheels of the packages beside the bridge, installed without an index."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"


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
    files = [DIST / file for file in names.values()]
    subprocess.run([*pip, "--target", target, *files], check=True)
    for name, file in names.items():
        with zipfile.ZipFile(DIST / file) as wheel:
            (metadata,) = (
                each for each in wheel.namelist() if each.endswith("METADATA")
            )
            text = wheel.read(metadata).decode()
        assert f"Version: {version}\n" in text
        assert f"Requires-Dist: dlpack-web=={version}\n" in text
        module = name.replace("-", "_")
        source = ROOT / "packages" / name.removeprefix("dlpack-web-") / "py" / module
        there = {path.name for path in (target / module).iterdir()} - {"__pycache__"}
        assert there == {
            path.name
            for path in source.iterdir()
            if path.suffix != ".pyi" and path.name != "__pycache__"
        }
        public = (target / module / "__init__.py").read_text()
        assert public.startswith('"""'), "the public docstring stays"
        assert "#: " not in public, "comments do not"
