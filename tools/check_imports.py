#!/usr/bin/env python3
"""check_imports.py: imports point down only, in C, Python and TypeScript.

That means: there are no cycles of imports, including types and late imports. Cycles are
printed, file by file. The rooms of Python, its folders, have no cycles either, and
libraries of one backend are imported only in its room.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
Graph = dict[str, set[str]]

# Modules that only one room of the Python package may import, late imports included.
ALONE = {
    "js": "_backends/browser",
    "pyodide": "_backends/browser",
    "pyodide_js": "_backends/browser",
    "wgpu": "_backends/desktop/wgpu",
    "wgpudawn": "_backends/desktop/dawn",
    "tinygrad": "tinygrad",
}

TS_IMPORT = re.compile(
    r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']*)["']"""  # from "./x.js", import("./x.js")
)
TS_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def c_graph(folder: Path) -> Graph:
    """Imports in C; a `.c` and its `.h` are one module."""
    graph: Graph = {}
    for file in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        included = re.findall(
            r'^\s*#include "(\w+)\.h"', file.read_text(), re.MULTILINE
        )
        graph.setdefault(file.stem, set()).update(set(included) - {file.stem})
    return graph


def _python_files(folder: Path) -> dict[Path, str]:
    """The modules of a package by file: "room/name", and "room" for its __init__.py."""
    found = {}
    for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
        name = file.relative_to(folder).with_suffix("").as_posix()
        found[file] = name.removesuffix("/__init__")
    return found


def _python_imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[list[str]]:
    """Imported names, from the root; `.pyi` and TYPE_CHECKING count as well. package:
    the folders of the file, from the root's name on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = node.module.split(".") if node.module else []
            yield from ([*above, *module, alias.name] for alias in node.names)


def _imports_of(file: Path, root: Path) -> Iterator[list[str]]:
    tree = ast.parse(file.read_text(), str(file))
    yield from _python_imports(tree, (root.name, *file.parent.relative_to(root).parts))


def python_graph(folder: Path) -> Graph:
    """A package and its subpackages. Importing a module also runs the __init__.py of
    its folders, which does not count."""
    files = _python_files(folder)
    graph: Graph = {name: set() for name in files.values()}
    for file, module in files.items():
        for first, *rest in _imports_of(file, folder):
            if first != folder.name:
                continue
            # A name that is not a module is an attribute of the one before it.
            while rest and "/".join(rest) not in graph:
                rest.pop()
            graph[module].add("/".join(rest) or "__init__")
        graph[module].discard(module)
    return graph


def rooms_of(graph: Graph) -> dict[str, Graph]:
    """For each folder, the imports between its parts: rooms, and files beside them. ""
    is the root."""
    folders = {str(up) for name in graph for up in PurePosixPath(name).parents}

    def within(folder: str, name: str) -> str | None:
        if folder == ".":
            return name.split("/")[0]
        if name == folder:
            return "__init__"
        inside = name.removeprefix(f"{folder}/")
        return inside.split("/")[0] if inside != name else None

    found: dict[str, Graph] = {}
    for folder in sorted(folders):
        rooms = found["" if folder == "." else folder] = {}
        for name, targets in graph.items():
            if (room := within(folder, name)) is not None:
                others = {within(folder, target) for target in targets}
                rooms.setdefault(room, set()).update(
                    other for other in others if other is not None and other != room
                )
    return found


def strays(folder: Path, alone: Mapping[str, str] = ALONE) -> list[str]:
    """Modules that import what only another room may import."""
    return [
        f"{module} imports {library}, which only {room} may"
        for file, module in _python_files(folder).items()
        for library in sorted({names[0] for names in _imports_of(file, folder)})
        if (room := alone.get(library))
        and module.split("/")[: room.count("/") + 1] != room.split("/")
    ]


def ts_graph(folder: Path) -> Graph:
    graph: Graph = {}
    for file in sorted(folder.rglob("*.ts")):
        text = TS_COMMENT.sub("", file.read_text())
        found = {
            (file.parent / name)
            .resolve()
            .with_suffix(".ts")
            .relative_to(folder.resolve())
            for name in TS_IMPORT.findall(text)
        }
        graph[str(file.relative_to(folder))] = {str(name) for name in found}
    return graph


def find_circle(graph: Graph) -> list[str] | None:
    """A cycle of imports, with the same file at both ends; None: there is none."""
    try:
        TopologicalSorter(
            {name: sorted(graph[name]) for name in sorted(graph)}
        ).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]  # each is imported by the next
        return circle[::-1]
    return None


def graphs() -> dict[str, Graph]:
    """The imports to check, by folder."""
    return {
        "wasm": c_graph(ROOT / "wasm"),
        "py/dlpack_web": python_graph(ROOT / "py" / "dlpack_web"),
        "js/src": ts_graph(ROOT / "js" / "src"),
    }


def main() -> None:
    found = graphs()
    circles = {room: find_circle(graph) for room, graph in found.items()}
    python = "py/dlpack_web"
    for folder, rooms in rooms_of(found[python]).items():
        if circles[python] is None:
            circles[f"rooms of {python}/{folder}"] = find_circle(rooms)
    for room, circle in circles.items():
        if circle is not None:
            print(f"{room}: imports go round: {' -> '.join(circle)}")
        elif room in found:
            print(f"{room}: {len(found[room])} files, imports point down only")
    if lost := strays(ROOT / python):
        print("\n".join(lost))
        sys.exit("Call a function of that room; ARCHITECTURE.md shows the rooms")
    if any(circles.values()):
        sys.exit(
            "Move what both ends need into a room below them, or hand it over as an "
            "argument; ARCHITECTURE.md shows the rooms"
        )


if __name__ == "__main__":
    main()
