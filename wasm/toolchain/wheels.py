#!/usr/bin/env python3
"""What each visit of a page downloads is small, and the same bytes whoever builds it.

wheels.py reduce PROJECT   removes from a copy of a project's folder what Pyodide does without
wheels.py tag WHEEL OUT    packs a wheel again into the folder OUT, smaller and for all Pyodides
wheels.py packages OUT     the wheels of packages/*, and OUT/packages.json with their names
"""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import zipfile
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import zopfli

ROOT = Path(__file__).resolve().parents[2]
# 1980-01-01, the oldest date of zip files.
SAME_BYTES = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def strip(folder: Path) -> None:
    """Comments, and the docstrings and annotations of private names, stay in the sources; public
    docstrings and the numbers of lines are in the wheels, too."""
    files = {file: file.read_text("utf-8") for file in folder.rglob("*.py")}
    trees = {file: ast.parse(text) for file, text in files.items()}
    private = {file: _is_private(file.relative_to(folder)) for file in files}
    public = _public_names(trees.values(), [trees[f] for f in files if not private[f]])
    for file, text in files.items():
        lines = text.split("\n")
        if private[file]:
            _cut_docstring(lines, trees[file])
        for node in _private_names(trees[file].body, public if private[file] else None):
            _cut_docstring(lines, node)
            if not isinstance(node, ast.ClassDef):
                _cut_annotations(lines, node)
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip()
        file.write_text("\n".join(lines), "utf-8")


def _is_private(module: Path) -> bool:
    names = module.with_suffix("").parts
    return any(name[0] == "_" and name != "__init__" for name in names)


def _public_names(
    trees: Iterable[ast.Module], public: Iterable[ast.Module]
) -> set[str]:
    """What public modules import or list in `__all__`, and the bases of these classes."""
    names = set[str]()
    for node in (node for tree in public for node in ast.walk(tree)):
        if isinstance(node, ast.ImportFrom):
            names.update(name.name for name in node.names)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names.update(ast.literal_eval(node.value))
    classes = [
        node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)
    ]
    before = 0
    while len(names) > before:
        before = len(names)
        bases = [base for each in classes if each.name in names for base in each.bases]
        parts = [part for base in bases for part in ast.walk(base)]
        names |= {part.id for part in parts if isinstance(part, ast.Name)}
    return names


def _private_names(
    body: list[ast.stmt], public: Container[str] | None
) -> Iterator[Definition]:
    """Functions and classes that nobody outside calls by name: those that begin with an
    underscore, but not with two; those not in `public`; and all inside of these and of functions."""
    for node in body:
        if not isinstance(node, Definition):
            continue
        hidden = re.match("_(?!_)", node.name)
        if hidden or (public is not None and node.name not in public):
            yield from (each for each in ast.walk(node) if isinstance(each, Definition))
        elif isinstance(node, ast.ClassDef):
            yield from _private_names(node.body, None)
        else:
            yield from _private_names(node.body, ())


def _cut_docstring(lines: list[str], node: ast.Module | Definition) -> None:
    if ast.get_docstring(node) is None:
        return
    first, last = node.body[0].lineno - 1, node.body[0].end_lineno or 0
    needed = " " * node.body[0].col_offset + "..." if len(node.body) == 1 else ""
    lines[first:last] = [needed, *[""] * (last - first - 1)]


def _cut_annotations(
    lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    """Those that are on one line, the last one first."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += [each for each in (given.vararg, given.kwarg) if each]
    cuts = [
        (each.lineno, each.col_offset + len(each.arg.encode()), each.annotation)
        for each in arguments
        if each.annotation
    ]
    if (returns := function.returns) is not None:
        line = lines[returns.lineno - 1].encode()
        arrow = line.rfind(b" ->", 0, returns.col_offset)
        if arrow >= 0:
            cuts.append((returns.lineno, arrow, returns))
    for row, begin, annotation in sorted(cuts, key=lambda cut: cut[:2], reverse=True):
        if row == annotation.end_lineno:
            line = lines[row - 1].encode()
            lines[row - 1] = (line[:begin] + line[annotation.end_col_offset :]).decode()


def for_pyodide(project: Path) -> dict[str, list[str]]:
    """What a manifest says of the wheel for Pyodide."""
    tools = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["tool"]
    return dict(tools.get("dlpack-web", {}).get("pyodide", {}))


def reduce(project: Path) -> None:
    """The sources in a copy of a project's folder become those of its wheel for Pyodide."""
    for name in for_pyodide(project).get("without", []):
        path = project / "py" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    strip(project / "py")


def tag(wheel: Path, out: Path) -> None:
    """For all Pyodides, by its name, and smaller."""
    platforms = ".".join(for_pyodide(ROOT)["platforms"])
    command = [sys.executable, "-m", "wheel", "tags", "--remove"]
    command += ["--platform-tag", platforms, str(wheel)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=SAME_BYTES
    )
    deflate(wheel.with_name(done.stdout.strip()), out)


def deflate(wheel: Path, out: Path) -> None:
    """With zopfli's search: 3 % less to download, read by every unzip."""
    with (
        zipfile.ZipFile(wheel) as old,
        zopfli.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.infolist():
            new.writestr(member, old.read(member))


def packages(out: Path) -> None:
    """Each has one wheel, unless that for Pyodide is without some files: then out/desktop has
    the one with all."""
    names = {}
    desktop = out / "desktop"
    shutil.rmtree(desktop, ignore_errors=True)
    for manifest in sorted(ROOT.glob("packages/*/pyproject.toml")):
        project = manifest.parent
        with tempfile.TemporaryDirectory() as folder:
            stage = Path(folder, "stage")
            hidden = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyi")
            shutil.copytree(project / "py", stage / "py", ignore=hidden)
            for file in (manifest, project / "README.md", ROOT / "LICENSE"):
                shutil.copy(file, stage)
            is_for_all = not for_pyodide(project)
            if not is_for_all:
                strip(stage / "py")
                desktop.mkdir(exist_ok=True)
                deflate(build(stage, Path(folder, "desktop")), desktop)
            reduce(stage)
            wheel = build(stage, Path(folder))
            name = wheel.name.partition("-")[0]
            for old in out.glob(f"{name}-*.whl"):
                old.unlink()
            if is_for_all:
                deflate(wheel, out)
            else:
                tag(wheel, out)
        (made,) = out.glob(f"{name}-*.whl")
        names[name.replace("_", "-")] = made.name
        if (project / "package.json").exists():
            npm = project / "dist"
            shutil.rmtree(npm, ignore_errors=True)  # the npm package has it, too
            npm.mkdir()
            shutil.copy(made, npm)
    (out / "packages.json").write_text(json.dumps(names, indent=2) + "\n")


def build(stage: Path, out: Path) -> Path:
    """The wheel of a project, by its build backend."""
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", stage], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--wheel-dir", out, stage],
        check=True,
        env=SAME_BYTES,
    )
    shutil.rmtree(stage / "build")  # or the next wheel would have its files
    (wheel,) = out.glob("*.whl")
    return wheel


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "reduce":
        reduce(Path(paths[0]))
    elif command == "tag":
        tag(Path(paths[0]), Path(paths[1]))
    else:
        packages(Path(paths[0]))
