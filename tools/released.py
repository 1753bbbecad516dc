#!/usr/bin/env python3
"""released.py VERSION [--root FOLDER]: what users read names the registries, not a clone.

tools/released.toml has each text in both forms. All of them change, or, after an error,
none; a second run changes only the version.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

from release import ReleaseError, check_versions

ROOT = Path(__file__).resolve().parents[1]
TEXTS = Path(__file__).with_suffix(".toml")
# Files that users read, in which `everywhere` counts.
READ = (
    "README.md",
    "web/RUNTIMES.md",
    "examples/**/*",
    "web/docs/**/*.md",
    "web/pages/live/*.html",
)
NUMBER = r"\d+\.\d+\.\d+"


def read_by_users(root: Path) -> list[Path]:
    found = {file for pattern in READ for file in root.glob(pattern)}
    return sorted(
        file
        for file in found
        if file.is_file() and "node_modules" not in file.relative_to(root).parts
    )


def change(root: Path, version: str) -> dict[Path, str]:
    """The new text of each file that changes. ReleaseError: a text has neither form."""
    texts = tomllib.loads(TEXTS.read_text("utf-8"))
    new = {}
    for file in read_by_users(root):
        try:
            new[file] = file.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # a picture
    for entry in texts["text"]:
        file = root / entry["file"]
        clone, released = entry["clone"], entry["released"]
        now = released.replace("{version}", version)
        before = re.escape(released).replace(re.escape("{version}"), NUMBER)
        if clone in new[file]:
            new[file] = new[file].replace(clone, now)
        elif re.search(before, new[file]):
            new[file] = re.sub(before, now.replace("\\", r"\\"), new[file])
        else:
            raise ReleaseError(
                f"{entry['file']} has neither form of a text in {TEXTS.name}; the clone's "
                f"is\n{clone.strip()}"
            )
    for entry in texts["everywhere"]:
        new = {
            file: text.replace(entry["clone"], entry["released"])
            for file, text in new.items()
        }
    return {file: text for file, text in new.items() if file.read_text("utf-8") != text}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--root", type=Path, default=ROOT)
    args = parser.parse_args()
    try:
        ours = check_versions(args.root)
        if args.version != ours:
            raise ReleaseError(
                f"VERSION={args.version} is not {ours}, the version in the files: "
                f"CONTRIBUTING.md, Releases, says where to write it"
            )
        changed = change(args.root, args.version)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    for file, text in changed.items():
        file.write_text(text, "utf-8")
        print(file.relative_to(args.root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
