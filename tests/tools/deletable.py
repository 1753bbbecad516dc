"""Each part on top of the bridge can go: deletes it in a copy of the repository, with what
stands on it and their tests, and builds, checks and tests the rest.

    python tests/tools/deletable.py [PART ...]
"""

import re
import shutil
import subprocess
import sys
import tomllib
from os import environ
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PARTS, ENTRIES = TABLE["parts"], TABLE["entries"]
COPY = ROOT / "build" / "deletable"
# What tests use that is not of the part: Python's wheel stays whole.
MADE = (
    *("node_modules", "dist", "build/venv", "build/libraries", "build/example"),
    *("build/site", "build/vectors.json"),
)
CHECKS = (
    "node_modules/.bin/tsc --project .",
    "build/venv/bin/mypy --cache-dir build/mypy py",
    "build/venv/bin/python -c 'import setuptools; setuptools.setup()' --quiet build_ext --inplace",
    "build/venv/bin/python -m pytest -q -p no:cacheprovider tests/native",
    "node --test --test-reporter dot $(find tests/js -name '*.test.mjs')",
)


def above(part: str) -> list[str]:
    """The part, and all that stands on it, directly or not."""
    found = [part]
    for name in found:
        found += [
            other
            for other, facts in PARTS.items()
            if name in facts.get("on", ()) and other not in found
        ]
    return found


def tracked() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def copy() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    for name in tracked():
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    (COPY / "build").mkdir()
    for made in MADE:
        (COPY / made).symlink_to(ROOT / made)


def delete(patterns: list[str]) -> int:
    found = [path for pattern in patterns for path in COPY.glob(pattern)]
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if not found:
        sys.exit(f"nothing has the names {patterns}: correct the table")
    return len(found)


def strike(names: list[str]) -> int:
    """Removes the words and lines by which the bridge names these parts."""
    count = 0
    for file, rows in ENTRIES.items():
        if not (COPY / file).exists():  # it went with another part
            continue
        text = (COPY / file).read_text("utf-8")
        for name in names:
            for pattern in rows.get(name, ()):
                text, times = re.subn(pattern, "", text, flags=re.MULTILINE)
                if not times:
                    sys.exit(f"{file} has no {pattern!r}: correct the table")
                count += times
        (COPY / file).write_text(text, "utf-8")
    return count


def check() -> None:
    environment = environ | {"PYTHONPATH": "py", "CFLAGS": "-Werror"}
    for command in CHECKS:
        print("  $", command, flush=True)
        subprocess.run(command, cwd=COPY, shell=True, check=True, env=environment)


def main(wanted: list[str]) -> None:
    for part in wanted or PARTS:
        names = above(part)
        copy()
        paths = TABLE["whole"] + [path for name in names for path in PARTS[name]["has"]]
        files, entries = delete(paths), strike(names)
        print(f"without {' '.join(names)}: {files} folders or files, {entries} entries")
        check()
    for part, facts in PARTS.items():
        print(f"{part} <- {' '.join(facts.get('on', ['the bridge']))}")


if __name__ == "__main__":
    main(sys.argv[1:])
