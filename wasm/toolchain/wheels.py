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
import shutil
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import zipfile
from pathlib import Path

import zopfli

ROOT = Path(__file__).resolve().parents[2]
# 1980-01-01, the oldest date of zip files.
SAME_BYTES = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}


def strip(folder: Path) -> None:
    """Comments, and what private modules say of themselves, stay in the sources; other docstrings
    and the numbers of lines are in the wheels, too."""
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8")
        lines = text.split("\n")
        tree = ast.parse(text)
        names = file.relative_to(folder).with_suffix("").parts
        private = any(name[0] == "_" and name != "__init__" for name in names)
        if private and ast.get_docstring(tree):
            first, last = tree.body[0].lineno - 1, tree.body[0].end_lineno or 0
            lines[first:last] = [""] * (last - first)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip()
        file.write_text("\n".join(lines), "utf-8")


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
