#!/usr/bin/env python3
"""fetch_wheels.py NPM_PYODIDE OUT: the wheels of tools/requirements/pyodide.txt for
that Pyodide, and wheels.json, the file name of each package. pip checks their
hashes."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "wasm" / "toolchain"))
import pyodide_files

REQUIREMENTS = ROOT / "tools" / "requirements" / "pyodide.txt"


def download(info: dict[str, str], out: Path) -> None:
    """info: ABI and Python version from Pyodide's lock."""
    major, minor, _ = info["python"].split(".")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--require-hashes"]
    command += ["--platform", f"pyemscripten_{info['abi_version']}_{info['arch']}"]
    command += ["--implementation", "cp", "--abi", f"cp{major}{minor}"]
    command += ["--python-version", f"{major}.{minor}", "--only-binary=:all:"]
    command += ["--dest", str(out), "--requirement", str(REQUIREMENTS)]
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    lock = json.loads(pyodide_files.read(args.npm_pyodide, "pyodide-lock.json"))
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    download(lock["info"], args.out)
    names = {file.name.split("-")[0]: file.name for file in args.out.glob("*.whl")}
    (args.out / "wheels.json").write_text(json.dumps(names, indent=1) + "\n")


if __name__ == "__main__":
    main()
