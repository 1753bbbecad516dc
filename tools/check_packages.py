#!/usr/bin/env python3
"""What packages and the bridge know of each other: packages/*/py and packages/*/js/src import of the bridge its
public modules and its seam alone, and no source of the bridge names a package."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEAM = {"dlpack_web.backends", "dlpack_web.internal"}
SEAM_JS = "dlpack-web/internal"
IMPORT_JS = re.compile(r"""(?:\bfrom|\bimport\(?) *["']([^"']+)["']""")
EXPORT_JS = re.compile(
    r"^export (?:(?:type )?\{|(?:async )?function )([^}(]*)", re.MULTILINE
)
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


def imports_js(package: Path) -> Iterator[str]:
    """What sources import that is neither theirs nor the runtime's, nor public names of a bridge that the
    manifest asks for."""
    manifest = json.loads((package / "package.json").read_text("utf-8"))
    exports = json.loads((ROOT / "package.json").read_text("utf-8"))["exports"]
    public = {f"dlpack-web{name[1:]}" for name in exports} | {SEAM_JS}
    if "dlpack-web" not in manifest.get("peerDependencies", {}):
        public = set()
    for file in sorted(package.glob("js/src/**/*.ts")):
        for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
            for name in IMPORT_JS.findall(line):
                inside = (
                    (file.parent / name).resolve().is_relative_to(package / "js/src")
                )
                own = ("node:", f"{manifest.get('name')}/")
                ours = inside if name.startswith(".") else name.startswith(own)
                if not ours and name not in public:
                    path = file.relative_to(ROOT)
                    yield f"{path}:{number}: imports {name}, which is not of the seam"


def complaints() -> Iterator[str]:
    for manifest in sorted(ROOT.glob("packages/*/package.json")):
        yield from imports_js(manifest.parent)
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
    exported = EXPORT_JS.findall((ROOT / "js/src/internal.ts").read_text("utf-8"))
    if (
        count := sum(len(re.findall(r"[^\s,][^,]*", each)) for each in exported)
    ) > MOST:
        yield f"{SEAM_JS} has {count} names, and {MOST} are allowed"
    packages = "|".join(path.name for path in ROOT.glob("packages/*") if path.is_dir())
    named = re.compile(rf"(?:dlpack[-_]web[-_.]|packages/)({packages})\b")
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
