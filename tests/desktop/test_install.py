"""Desktop Python, as web/docs/howto/install.md has it: from a clone, into an empty folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "web" / "docs" / "howto" / "install.md").read_text("utf-8")
# It has the build's tools; what pip would get from a registry is in this Python.
PIP = [ROOT / "build" / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet"]
PIP += ["--no-deps", "--no-build-isolation", "--disable-pip-version-check"]


@pytest.mark.skipif("CLONE" not in PAGE, reason="released: needs a registry")
def test_desktop(tmp_path):
    section = PAGE.partition("## Desktop Python\n")[2]
    assert section.startswith("\nYou need Python 3.12 or newer.")
    assert section.index("python3 --version") < section.index("python3 -m venv")
    # With NumPy as a second wish, pip would try all of its versions for an older Python.
    (wanted,) = re.findall(r"(?m)pip install '(CLONE\[numpy,webgpu\])'$", section)
    (program,) = re.findall(r"(?s):class: desktop\n(.*?)```", section)
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    for name in ("wasm", "py/dlpack_web"):
        skipped = shutil.ignore_patterns("*.so", "__pycache__", "toolchain")
        shutil.copytree(ROOT / name, clone / name, ignore=skipped)
    lib = tmp_path / "lib"
    subprocess.run(
        [*PIP, f"--target={lib}", wanted.replace("CLONE", str(clone))], check=True
    )
    (tmp_path / "first.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "first.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(lib)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == (
        "Tensor([0., 1., 2.], shape=(3,), dtype='float32', device='webgpu:0')\n"
    )
    about = next(lib.glob("dlpack_web-*.dist-info")) / "METADATA"
    assert "Requires-Python: >=3.12" in about.read_text()
