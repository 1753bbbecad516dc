"""ARCHITECTURE.md is true: its paths, the names that it gives in files, and its maps of imports.

- `path` or a link: a file or folder of the repository. NAME in it is any name, * any characters;
  a name without a folder is that of some file.
- `path: name, name`: that file defines each of them. `Class.method` names both.
- A block whose first line is a folder: all modules of that folder, `a, b ← c` where c imports a, b.
"""

import ast
import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import check_imports
import pytest
import quick

ROOT = quick.ROOT
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
FILES = {
    path
    for path in quick.git("ls-files", "--cached", "--others", "--exclude-standard")
    if (ROOT / path).is_file()
}
FOLDERS = {str(folder) for path in FILES for folder in PurePosixPath(path).parents}
BLOCKS = re.findall(r"(?ms)^```text\n(.+?)^```$", PAGE)
TEXT = re.sub(r"(?ms)^```.+?^```$", "", PAGE)
CODE = re.findall(r"`([^`]+)`", TEXT)

PAIR = re.compile(r"([\w./-]+\.\w+):\s+([\w.$#]+(?:,\s+[\w.$#]+)*)")
NAMES = re.compile(r"[\w.*-]+\.(?:c|h|py|ts|mjs|json|md|sh|html)|Makefile|\w+\*")
PAIRS = sorted(
    (pair[1], name)
    for pair in map(PAIR.fullmatch, CODE)
    if pair
    for name in re.split(r",\s+", pair[2])
)
PATHS = sorted(
    {file for file, _ in PAIRS}
    | {
        code.rstrip("/")
        for code in CODE
        if re.fullmatch(r"[\w.*/-]+", code) and "/" in code
    }
    | {code for code in CODE if NAMES.fullmatch(code)}
    | {link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", TEXT)}
)


def exists(path: str) -> bool:
    pattern = path.replace("NAME", "*")
    if "/" in pattern or pattern in FOLDERS:
        return any(fnmatchcase(each, pattern) for each in FILES | FOLDERS)
    return any(fnmatchcase(PurePosixPath(file).name, pattern) for file in FILES)


# --- definitions --------------------------------------------------------------------------


def blank(text: str, pattern: str) -> str:
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def python_definitions(text: str) -> set[str]:
    """Functions, classes, methods as Class.method, and names of the module."""
    found: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.update({node.name, f"{prefix}{node.name}"})
            elif isinstance(node, ast.ClassDef):
                found.add(node.name)
                visit(node.body, f"{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and not prefix:
                targets = (
                    node.targets if isinstance(node, ast.Assign) else [node.target]
                )
                found.update(each.id for each in targets if isinstance(each, ast.Name))

    visit(ast.parse(text).body, "")
    return found


def has_body(text: str, at: int) -> bool:
    """Whether what begins with the parenthesis at this place is a function with a body."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return re.match(r"\s*(?::[^;=]*?)?\{", text[i + 1 :]) is not None
    return False


def defines(text: str, suffix: str, name: str) -> bool:
    if suffix == ".py":
        return name in python_definitions(text)
    text = blank(text, r"(?s)/\*.*?\*/|//[^\n]*")
    for part in name.split("."):
        word = rf"(?<![\w$#.]){re.escape(part)}(?![\w$])"
        if suffix in (".c", ".h"):  # functions begin at the margin
            table = rf"(?m){word}(?:\[[^\]]*\])+ = \{{|^\}} {word};|^#define {word}"
            heads = rf"(?m)^(?:\w[^\n;(]*[ *])?{word}\("
        else:
            table = rf"\b(?:class|interface|type|enum|const|let) {word}"
            words = r"(?:export |default |static |async |get |set |function |\*)*"
            heads = rf"(?m)^[ ]*{words}{word}\s*(?:<[^()]*>)?\("
        found = re.search(table, text) or any(
            has_body(text, head.end() - 1) for head in re.finditer(heads, text)
        )
        if not found:
            return False
    return True


# --- maps ---------------------------------------------------------------------------------


def maps() -> dict[str, list[list[str]]]:
    """By folder the floors of its map, each importing only those before it."""
    found = {}
    for block in BLOCKS:
        folder, _, chain = block.partition("\n")
        floors = " ".join(chain.split()).split("←")
        found[folder.rstrip("/")] = [
            [name.strip() for name in floor.split(",")] for floor in floors
        ]
    return found


def entry_of(module: str, entries: list[str]) -> str | None:
    """The entry that a module stands under: the longest of those that match."""
    module = module.removesuffix(".ts")
    matching = [
        entry
        for entry in entries
        if fnmatchcase(module, entry) or module.startswith(f"{entry}/")
    ]
    return max(matching, key=len, default=None)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path):
    assert exists(path), f"ARCHITECTURE.md names `{path}`, which is not there"


@pytest.mark.parametrize(("file", "name"), PAIRS)
def test_a_name_is_defined_in_its_file(file, name):
    path = ROOT / file
    assert path.is_file(), f"ARCHITECTURE.md names `{file}`, which is not there"
    found = defines(path.read_text("utf-8"), path.suffix, name)
    assert found, f"ARCHITECTURE.md names `{file}: {name}`: {file} defines no {name}"


def test_most_code_is_compared():
    """What looks like a path or a pair, and is neither, would be compared with nothing."""
    strange = [code for code in CODE if re.search(r"\w/\w|\.(py|ts|c|mjs)\b", code)]
    strange = [code for code in strange if code.rstrip("/") not in PATHS]
    assert [code for code in strange if not PAIR.fullmatch(code)] == []
    assert len(PAIRS) > 50
    assert len(PATHS) > 70


@pytest.mark.parametrize("folder", check_imports.graphs())
def test_a_map_has_every_module_and_no_import_against_it(folder):
    floors = maps().get(folder)
    assert floors, (
        f"ARCHITECTURE.md has no map of {folder}/, which check_imports.py checks"
    )
    graph = check_imports.graphs()[folder]
    height = {entry: i for i, floor in enumerate(floors) for entry in floor}
    assert len(height) == sum(map(len, floors)), "an entry stands twice"
    entries = {module: entry_of(module, list(height)) for module in graph}
    lost = sorted(module for module, entry in entries.items() if entry is None)
    assert lost == [], f"the map of {folder}/ in ARCHITECTURE.md lacks these modules"
    empty = sorted(set(height) - set(entries.values()))
    assert empty == [], f"the map of {folder}/ in ARCHITECTURE.md has what is not there"
    against = [
        f"{module} imports {target}"
        for module, targets in graph.items()
        for target in sorted(targets)
        if entries[module] != entries[target]
        and height[entries[module]] <= height[entries[target]]
    ]
    assert against == [], f"imports against the map of {folder}/ in ARCHITECTURE.md"


@pytest.mark.parametrize("room", ["web", "tests"])
def test_every_folder_of_a_room_is_named(room):
    folders = {
        folder for folder in FOLDERS if str(PurePosixPath(folder).parent) == room
    }
    assert len(folders) > 5
    assert sorted(folders - {*PATHS}) == [], (
        "ARCHITECTURE.md does not name these folders"
    )
