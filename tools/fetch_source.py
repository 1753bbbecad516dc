#!/usr/bin/env python3
"""fetch_source.py PACKAGE OUT: the source distribution of a package, unpacked into OUT:
other projects' tests, which their wheels lack.

The version is the one of tools/requirements/desktop.txt, whose hashes are of all files of
a package. pip checks them, and reads the package's metadata with the setuptools that is
installed beside it: nothing else is fetched or built.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "tools" / "requirements" / "desktop.txt"


def locked(package: str, lock: str) -> str:
    """The lines of a package in a lock."""
    pattern = rf"^{re.escape(package)}==.*?(?=^\S|\Z)"
    found = re.search(pattern, lock, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"fetch_source.py: {LOCK.name} has no package {package!r}")
    return found[0]


def fetch(package: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = folder / "requirements.txt"
        wanted.write_text(locked(package, LOCK.read_text("utf-8")))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--require-hashes"]
        command += ["--no-binary=:all:", "--no-build-isolation"]
        command += ["--dest", name, "--requirement", str(wanted)]
        subprocess.run(command, check=True)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            source.extractall(folder / "source", filter="data")
        (top,) = (folder / "source").iterdir()
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(top, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    fetch(args.package, args.out)


if __name__ == "__main__":
    main()
