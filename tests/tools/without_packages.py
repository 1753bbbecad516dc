"""A package beside the bridge can go: removes the folder of each in a copy of the repository, and runs there what
shall not need it.

    python tests/tools/without_packages.py [NAME ...]
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPY = ROOT / "build" / "without"
# What takes minutes to make again and depends on no package. Anything else is made in the copy: its
# virtual environment has the packages that the copy has.
MADE = ("build/libs", "build/model")
TASKS = ("check test", "suite NAME=docs", "suite NAME=browser")


def dependents(name: str) -> list[str]:
    """The package, and those whose manifests ask for it, directly or not."""
    found = [name]
    for each in found:
        asked = re.compile(rf'"dlpack-web-{each}\b')
        for manifest in sorted(
            [*ROOT.glob("packages/*/p*.toml"), *ROOT.glob("packages/*/package.json")]
        ):
            other = manifest.parent.name
            if other not in found and asked.search(manifest.read_text("utf-8")):
                found.append(other)
    return found


def copied() -> None:
    """A clone whose files are as old as here, so that make takes MADE for made."""
    shutil.rmtree(COPY, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, COPY], check=True)
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=COPY, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, tracked.split("\0")):
        modified = (ROOT / name).stat(follow_symlinks=False).st_mtime_ns
        os.utime(COPY / name, ns=(modified, modified), follow_symlinks=False)
    (COPY / "build").mkdir()
    for made in filter(Path.exists, (ROOT / each for each in MADE)):
        (COPY / made.relative_to(ROOT)).symlink_to(made)


def removed(names: list[str]) -> None:
    """Their folders; npm's lock lists them as workspaces."""
    for name in names:
        shutil.rmtree(COPY / "packages" / name)
    lock = COPY / "package-lock.json"
    text = json.loads(lock.read_text("utf-8"))
    for name in names:
        for path in (f"packages/{name}", f"node_modules/dlpack-web-{name}"):
            text["packages"].pop(path, None)
    lock.write_text(json.dumps(text, indent=2) + "\n", "utf-8")


def main(wanted: list[str]) -> None:
    for name in wanted or sorted(path.name for path in ROOT.glob("packages/*")):
        names = dependents(name)
        print(f"without {' '.join(names)}", flush=True)
        copied()
        removed(names)
        for task in TASKS:
            subprocess.run(["make", *task.split()], cwd=COPY, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
