#!/usr/bin/env python3
"""fetch_numpy.py NPM_PYODIDE OUT: the NumPy wheel of one Pyodide version.

Looked for in the download cache, then on Pyodide's CDN, then inside a PyPI package
that carries the same file. Whatever the source, its sha256 has to be a known one.
OUT gets the wheel and a pyodide-lock.json that names it, so that a Pyodide served with
these two files loads NumPy by `loadPackage("numpy")`.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{file}"
CDN_TIMEOUT_S = 5


@dataclass(frozen=True)
class Carrier:
    """A PyPI package with a NumPy wheel inside, for where the CDN is out of reach."""

    requirement: str
    folder: str
    file: str
    sha256: str


CARRIERS = {
    "314.0.4": Carrier(
        "open-webui==0.12.4",
        "open_webui/frontend/pyodide",
        "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
        # as in the lock of 314.0.4 itself
        "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
    ),
    "0.29.4": Carrier(
        "open-webui==0.10.0",
        "open_webui/frontend/pyodide",
        "numpy-2.2.5-cp313-cp313-pyodide_2025_0_wasm32.whl",
        # as in the lock of Pyodide 0.28.3, which has the ABI of 0.29
        "3db3c4f3e0448f4d62a85c262692f1260ccd8a91335442bd2442f21ffeddb558",
    ),
}


def say(text: str) -> None:
    print(f"[setup] {text}", flush=True)


def checked(path: Path, sha256: str) -> Path | None:
    """`path` if it is there and has this hash. A damaged file is removed."""
    if not path.is_file():
        return None
    if hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
        return path
    say(f"{path} is not what it should be (sha256 differs): ignoring it")
    path.unlink()
    return None


def from_cdn(version: str, file: str, target: Path) -> None:
    url = CDN.format(version=version, file=file)
    try:
        with (
            urllib.request.urlopen(url, timeout=CDN_TIMEOUT_S) as response,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(response, out)
    except OSError as error:
        target.unlink(missing_ok=True)
        say(f"Pyodide's CDN is out of reach ({error})")


def from_carrier(carrier: Carrier, target: Path) -> None:
    say(f"NumPy from inside the PyPI package {carrier.requirement} (over 100 MB, once)")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        # The carrier is only unpacked, so its requirements do not matter.
        command = [sys.executable, "-m", "pip", "download"]
        command += ["--disable-pip-version-check", "--no-deps", "--no-cache-dir"]
        command += ["--ignore-requires-python", "--only-binary=:all:", "--dest", folder]
        if subprocess.run([*command, carrier.requirement], check=False).returncode:
            return  # pip has said why
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read(f"{carrier.folder}/{carrier.file}"))


def fetch(version: str, file: str, sha256: str, cache: Path) -> Path:
    """The wheel in the cache: the one of Pyodide's lock, or else the carrier's."""
    carrier = CARRIERS.get(version)
    candidates = {file: sha256}
    if carrier:
        candidates[carrier.file] = carrier.sha256
    for name, digest in candidates.items():
        if found := checked(cache / name, digest):
            return found

    cache.mkdir(parents=True, exist_ok=True)
    # Complete and checked under another name first: the cache holds no partial file.
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        partial = Path(folder, "numpy.whl")
        say(f"NumPy for Pyodide {version} from Pyodide's CDN")
        from_cdn(version, file, partial)
        if checked(partial, sha256):
            return partial.rename(cache / file)
        if carrier:
            from_carrier(carrier, partial)
            if checked(partial, carrier.sha256):
                return partial.rename(cache / carrier.file)
    sys.exit(f"No NumPy for Pyodide {version}: put {file} into {cache} yourself.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()

    version = json.loads((args.npm_pyodide / "package.json").read_text())["version"]
    lock = json.loads((args.npm_pyodide / "pyodide-lock.json").read_text())
    numpy = lock["packages"]["numpy"]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wheel = fetch(version, numpy["file_name"], numpy["sha256"], home / "dlpack-web")

    numpy["file_name"] = wheel.name
    numpy["sha256"] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    args.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(wheel, args.out)
    (args.out / "pyodide-lock.json").write_text(json.dumps(lock))


if __name__ == "__main__":
    main()
