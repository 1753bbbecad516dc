#!/usr/bin/env python3
"""check_locks.py [ROOT]: everything that npm and pip install is pinned with a hash, and
no lock names a source."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {".git", "build", "dist", "node_modules"}
WITHOUT_HASH = {"torch"}  # tools/requirements/torch.txt gives the reason
# pip's options: no source packages, and the file to take constraints from.
OPTION = re.compile(r"--only-binary :all:|-c \w+\.txt")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?=\s|$)")

NPM_ADVICE = """\
npm checks only downloads with a hash in the lock, and sometimes drops hashes from it; an
address is that of one machine's registry. Restore the lock (git checkout), remove
node_modules beside it, and run `npm install --package-lock-only NAME@VERSION` there."""
PIP_ADVICE = """\
pip installs only packages with a hash here, and from the index that it is configured for.
`make locks` generates tools/requirements/*.txt from the .in files, with hashes, and keeps
their versions; web/lite/packages.txt is written by hand (`pip hash FILE`)."""


def npm_complaints(lock: Path) -> Iterator[str]:
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    for name, entry in packages.items():
        # Local packages, and those bundled in another package, have no hash of their own.
        if not name or entry.get("link") or entry.get("inBundle"):
            continue
        if not str(entry.get("integrity", "")).startswith("sha512-"):
            yield f"{name} has no integrity (sha512)"
        # Funding links are not download addresses.
        rest = {key: value for key, value in entry.items() if key != "funding"}
        if "resolved" in rest or "://" in json.dumps(rest):
            yield f"{name} has an address"


def lines_of(requirements: Path) -> list[str]:
    """Requirements and options, one per line, without comments."""
    text = requirements.read_text().replace("\\\n", " ")
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def parsed(requirement: str) -> Requirement:
    return Requirement(requirement.partition("--hash=")[0])


def pip_complaints(requirements: Path) -> Iterator[str]:
    if "://" in requirements.read_text():  # comments, too
        yield "an address"
    for line in lines_of(requirements):
        if line.startswith("-"):
            if not OPTION.fullmatch(line):
                yield f"the option {line.split()[0]}"
        elif requirements.suffix == ".txt":
            name = parsed(line).name
            if name not in WITHOUT_HASH and not HASH.search(line):
                yield f"{name} has no hash"


def pins(requirements: Path) -> dict[str, str]:
    """The constraint on each package's version: "==1.2", or nothing."""
    lines = [line for line in lines_of(requirements) if not line.startswith("-")]
    return {
        canonicalize_name(wanted.name): str(wanted.specifier)
        for wanted in map(parsed, lines)
    }


def stale_complaints(source: Path) -> Iterator[str]:
    """Reports .in files that have changed since their .txt file was made."""
    made = pins(source.with_suffix(".txt"))
    for name, version in pins(source).items():
        if name not in made or version not in ("", made[name]):
            yield f"{name}{version} of {source.name} is not in it"


def all_complaints(root: Path) -> tuple[list[str], list[str]]:
    """Checks npm's locks, and pip's requirements."""

    def told(file: Path, complaints: Iterator[str]) -> list[str]:
        return [f"{file.relative_to(root)}: {it}" for it in complaints]

    npm, pip = [], []
    for folder, below, files in root.walk():
        below[:] = sorted(set(below) - NOT_OURS)
        if "package-lock.json" in files:
            lock = folder / "package-lock.json"
            npm += told(lock, npm_complaints(lock))
    requirements = sorted((root / "tools" / "requirements").iterdir())
    for file in [*requirements, root / "web" / "lite" / "packages.txt"]:
        pip += told(file, pip_complaints(file))
        if file.suffix == ".in":
            pip += told(file.with_suffix(".txt"), stale_complaints(file))
    return npm, pip


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    npm, pip = all_complaints(root)
    if npm or pip:
        advice = [NPM_ADVICE] * bool(npm) + [PIP_ADVICE] * bool(pip)
        sys.exit("\n".join([*npm, *pip, *advice]))


if __name__ == "__main__":
    main()
