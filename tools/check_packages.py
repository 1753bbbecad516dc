#!/usr/bin/env python3
"""What packages and the bridge know of each other: packages/*/py imports of the bridge its public modules
and its seam alone, and no source of the bridge names a package."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEAM = {"dlpack_web.backends", "dlpack_web.internal"}
PUBLIC = {"dlpack_web", "dlpack_web.webgpu"}
MOST = 45  # names of a language
#: The table of moved names, until 1.0.
MOVED = {"py/dlpack_web/_moved.py"}


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            private = [each.name for each in node.names if each.name.startswith("_")]
            yield from ((f"{node.module}.{name}", node.lineno) for name in private)
        elif isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)


def complaints() -> Iterator[str]:
    for file in sorted(ROOT.glob("packages/*/py/**/*.py")):
        for name, line in imports(ast.parse(file.read_text("utf-8"))):
            if name.split(".")[0] == "dlpack_web" and name not in SEAM | PUBLIC:
                yield f"{file.relative_to(ROOT)}:{line}: imports {name}, which is not of the seam"
    names = [
        ast.literal_eval(node.value)
        for module in SEAM
        for node in ast.parse(
            (ROOT / "py" / f"{module.replace('.', '/')}.py").read_text("utf-8")
        ).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if (count := sum(map(len, names))) > MOST:
        yield f"{' and '.join(sorted(SEAM))} have {count} names, and {MOST} are allowed"
    packages = "|".join(path.name for path in ROOT.glob("packages/*") if path.is_dir())
    named = re.compile(rf"dlpack[-_]web[-_./]({packages})\b")
    for folder, kinds in (("py", "*.py*"), ("js/src", "*.ts"), ("wasm", "*.[ch]")):
        for file in sorted((ROOT / folder).rglob(kinds)):
            path = file.relative_to(ROOT).as_posix()
            if path in MOVED or file.suffix == ".pyc":
                continue
            for number, text in enumerate(file.read_text("utf-8").split("\n"), 1):
                if packages and (found := named.search(text)):
                    yield f"{path}:{number}: names the package {found[1]}"


if __name__ == "__main__":
    sys.exit("\n".join(complaints()) or None)
