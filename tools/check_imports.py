#!/usr/bin/env python3
"""check_imports.py: imports point down only, in C, Python and TypeScript.

Down means: no way of imports leads back to where it began, types and late imports
included. A circle that is found is printed, file by file.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Graph = dict[str, set[str]]

TS_IMPORT = re.compile(
    r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']*)["']"""  # from "./x.js", import("./x.js")
)
TS_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def c_graph(folder: Path) -> Graph:
    """A `.c` and its `.h` are one room."""
    graph: Graph = {}
    for file in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        included = re.findall(
            r'^\s*#include "(\w+)\.h"', file.read_text(), re.MULTILINE
        )
        graph.setdefault(file.stem, set()).update(set(included) - {file.stem})
    return graph


def _python_imports(tree: ast.AST, here: str) -> Iterator[str]:
    """Names of sibling modules; `.pyi` and TYPE_CHECKING count as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            if node.module:
                yield node.module.split(".")[0]
            else:
                yield from (alias.name for alias in node.names)


def python_graph(folder: Path) -> Graph:
    files = sorted([*folder.glob("*.py"), *folder.glob("*.pyi")])
    modules = {file.stem for file in files}
    graph: Graph = {name: set() for name in modules}
    for file in files:
        tree = ast.parse(file.read_text(), str(file))
        # A package's own attributes (`from . import x` of what is no module) are its own.
        graph[file.stem] |= {
            name if name in modules else "__init__"
            for name in _python_imports(tree, file.stem)
        } - {file.stem}
    return graph


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
    """The first circle of imports, its first file at both ends; None: there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return None
        for target in sorted(graph.get(name, ())):
            circle = visit(target, [*way, name])
            if circle is not None:
                return circle
        done.add(name)
        return None

    for name in sorted(graph):
        circle = visit(name, [])
        if circle is not None:
            return circle
    return None


def graphs() -> dict[str, Graph]:
    """What imports what, by folder: all that is checked here."""
    return {
        "wasm": c_graph(ROOT / "wasm"),
        "py/dlpack_web": python_graph(ROOT / "py" / "dlpack_web"),
        "js/src": ts_graph(ROOT / "js" / "src"),
    }


def main() -> None:
    found = graphs()
    circles = {room: find_circle(graph) for room, graph in found.items()}
    for room, circle in circles.items():
        if circle is not None:
            print(f"{room}: imports go round: {' -> '.join(circle)}")
        else:
            print(f"{room}: {len(found[room])} files, imports point down only")
    if any(circles.values()):
        sys.exit(
            "Move what both ends need into a room below them, or hand it over as an "
            "argument; ARCHITECTURE.md shows the rooms"
        )


if __name__ == "__main__":
    main()
