"""A reader sees a folder, and a file, whole: no folder has more than 25 sources at one level, and no
source more than 500 lines, unless it gives the reason at its head."""

import re
from collections import Counter
from itertools import islice
from pathlib import PurePosixPath

from quick import ROOT, git

FOLDERS = ("wasm", "js/src", "py", "web", "tests", "tools", "examples")
SOURCES = {
    ".c",
    ".h",
    ".py",
    ".pyi",
    ".ts",
    ".tsx",
    ".mjs",
    ".js",
    ".html",
    ".css",
    ".sh",
    ".mk",
}
MOST_FILES = 25
MOST_LINES = 500
REASON = re.compile(r"^(?:#|//|/\*) More than 500 lines: \w.{20,}\.")
FILES = [
    PurePosixPath(path)
    for path in git("ls-files", "--cached", "--others", "--exclude-standard")
    if path.startswith(tuple(f"{folder}/" for folder in FOLDERS))
    and PurePosixPath(path).suffix in SOURCES
    and (ROOT / path).is_file()
]


def modules() -> Counter[str]:
    """Of each folder how many; a `.c` and its `.h` are one."""
    names = {
        (str(path.parent), path.stem if path.suffix in (".c", ".h") else path.name)
        for path in FILES
    }
    return Counter(folder for folder, _ in names)


def lines() -> dict[str, int]:
    """Of each file how many."""
    return {
        str(path): len((ROOT / path).read_text("utf-8").splitlines()) for path in FILES
    }


def test_no_folder_is_full():
    found = modules()
    assert len(found) > 50
    full = {folder: n for folder, n in found.items() if n > MOST_FILES}
    assert full == {}, f"more than {MOST_FILES} sources"


def gives_reason(path: str) -> bool:
    with (ROOT / path).open(encoding="utf-8") as file:
        return any(REASON.search(line) for line in islice(file, 3))


def test_no_file_is_long():
    long = {path: n for path, n in lines().items() if n > MOST_LINES}
    new = {path: n for path, n in long.items() if not gives_reason(path)}
    assert new == {}, (
        "split them, or say at their heads why not: More than 500 lines: ..."
    )


def test_no_reason_is_left_over():
    short = [path for path, n in lines().items() if n <= MOST_LINES]
    assert [path for path in short if gives_reason(path)] == []
