"""A reader sees a folder, and a file, whole: no folder has more than 25 sources at one level, and no
source more than 500 lines, but for those that are listed here with the reason."""

from collections import Counter
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
FILES = [
    PurePosixPath(path)
    for path in git("ls-files", "--cached", "--others", "--exclude-standard")
    if path.startswith(tuple(f"{folder}/" for folder in FOLDERS))
    and PurePosixPath(path).suffix in SOURCES
    and (ROOT / path).is_file()
]

# Files of more lines.
ONE_CLASS = "one class, whose methods share what is private to it"
CASES = "one list of cases: what each of them breaks stands beside the next"
SUITE = "one suite, whose tests share what they forge"
LONG = {
    "js/src/core/tensor.ts": ONE_CLASS,
    "js/src/onnxruntime/sessions.ts": ONE_CLASS,
    "js/src/pyodide/seam.ts": "the one table of what Python calls in JavaScript",
    "tests/browser/libraries/patched_cases.mjs": CASES,
    "tests/desktop/test_wgpu.py": SUITE,
    "tests/files/make_vectors.py": CASES,
    "tests/fuzz/js/operations.mjs": "one list of operations, of which sequences are drawn",
    "tests/js/conformance/conformance_consumers.mjs": CASES,
    "tests/js/conformance/conformance_producers.mjs": CASES,
    "tests/js/exchange/c_module.test.mjs": SUITE,
    "tests/js/exchange/exchange.test.mjs": SUITE,
    "tests/js/open/file_ranges.test.mjs": SUITE,
    "tests/lite/test_page.py": SUITE,
    "tests/models/programs.py": "one function for each model",
    "tests/native/arrow/test_arrow.py": SUITE,
    "tests/native/conformance/test_conformance_h_neighbours.py": SUITE,
    "tests/native/exchange/test_as_an_array.py": SUITE,
    "tests/native/exchange/test_bridge.py": SUITE,
    "tests/native/files/test_reentrance_files.py": SUITE,
    "tests/native/tensor/test_messages.py": SUITE,
    "wasm/arrow_import.c": "one format, read by one table of its types",
    "wasm/import.c": "one way in, whose steps give up in the order in which they took",
    "wasm/object.c": "one type of Python's, with its slots",
    "web/site/style.css": "one style sheet, loaded once by all pages",
}


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


def test_no_file_is_long():
    found = {path: n for path, n in lines().items() if n > MOST_LINES}
    new = {path: n for path, n in found.items() if path not in LONG}
    assert new == {}, "split them, or say in LONG why not"


def test_no_reason_is_left_over():
    found = lines()
    assert [path for path in LONG if found.get(path, 0) <= MOST_LINES] == []
