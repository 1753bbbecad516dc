"""Folders below build/package, into which npm installs what a lock says, and the tarball of
`make package` as users get it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "package"
SITE = ROOT / "build" / "site"


def install(name: str, *options: str) -> Path:
    """An empty project with what the lock pins, by npm with these options, and the tarball."""
    folder = ROOT / "build" / "package" / name
    folder.mkdir(parents=True, exist_ok=True)
    lock = (SOURCES / "package-lock.json").read_bytes()
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_bytes() != lock:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / file, folder)
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund")
        run("npm", "ci", *quiet, *options, at=folder)
        stamp.write_bytes(lock)
    unpack(folder)
    return folder


def unpack(project: Path) -> Path:
    """The tarball in node_modules; there is nothing else that npm would do with it."""
    package = project / "node_modules" / "dlpack-web"
    shutil.rmtree(package, ignore_errors=True)
    (tarball,) = (ROOT / "dist").glob("*.tgz")
    with tarfile.open(tarball) as archive:
        members = archive.getmembers()
        for member in members:
            member.name = member.name.removeprefix("package/")
        archive.extractall(package, members, filter="data")
    return package


def run(*command: str, at: Path, fails: bool = False) -> str:
    """What a command says; it must end well, or, if `fails`, must not."""
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tarballs() -> dict[str, str]:
    """The tarball of the bridge and that of each package in JavaScript, by their names."""
    found = {"dlpack-web": ROOT / "dist"}
    for manifest in ROOT.glob("packages/*/package.json"):
        found[json.loads(manifest.read_text())["name"]] = ROOT / "dist" / "packages"
    return {name: str(*at.glob(f"{name}-[0-9]*.tgz")) for name, at in found.items()}


def program(project: Path, name: str, pattern: str) -> str:
    """npm's package for this machine, or the machine's own."""
    packaged = sorted((project / "node_modules").glob(pattern))
    path = str(packaged[0]) if packaged else shutil.which(name)
    assert path, f"npm has no {name} for this machine: install one"
    return path


def shipped_wheel(project: Path) -> Path:
    (wheel,) = (project / "node_modules" / "dlpack-web" / "dist").glob("*.whl")
    return wheel


def lay_out(folder: Path, *names: str) -> None:
    """Sources of tests/package, by folder or file, put into a project."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        source = SOURCES / name
        for file in source.iterdir() if source.is_dir() else [source]:
            shutil.copy(file, folder)
