#!/usr/bin/env python3
"""What each visit of a page downloads is small, and the same bytes whoever builds it.

wheels.py strip FOLDER         removes comments, and the docstrings of private modules
wheels.py deflate WHEEL OUT    packs a wheel again into the folder OUT, smaller
wheels.py packages OUT         the wheels of packages/*, and OUT/packages.json with their names
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
LONG_AGO = "315532800"  # 1980-01-01, the oldest date of zip files


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


def deflate(wheel: Path, out: Path) -> None:
    """With zopfli's search: 3 % less to download, read by every unzip."""
    with (
        zipfile.ZipFile(wheel) as old,
        zopfli.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.infolist():
            new.writestr(member, old.read(member))


def packages(out: Path) -> None:
    names = {}
    for project in sorted(ROOT.glob("packages/*/pyproject.toml")):
        with tempfile.TemporaryDirectory() as folder:
            stage = Path(folder, "stage")
            hidden = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyi")
            shutil.copytree(project.parent / "py", stage / "py", ignore=hidden)
            for file in (project, project.with_name("README.md"), ROOT / "LICENSE"):
                shutil.copy(file, stage)
            strip(stage / "py")
            subprocess.run(["chmod", "-R", "u=rwX,go=rX", stage], check=True)
            command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            command += ["--no-build-isolation", "--disable-pip-version-check"]
            subprocess.run(
                [*command, "--wheel-dir", folder, stage],
                check=True,
                env=os.environ | {"SOURCE_DATE_EPOCH": LONG_AGO},
            )
            (wheel,) = Path(folder).glob("*.whl")
            for old in out.glob(f"{wheel.name.partition('-')[0]}-*.whl"):
                old.unlink()
            deflate(wheel, out)
        if (npm := project.with_name("dist")) and project.with_name(
            "package.json"
        ).exists():
            shutil.rmtree(npm, ignore_errors=True)  # the npm package has it, too
            npm.mkdir()
            shutil.copy(out / wheel.name, npm)
        name = tomllib.loads(project.read_text("utf-8"))["project"]["name"]
        names[name] = wheel.name
    (out / "packages.json").write_text(json.dumps(names, indent=2) + "\n")


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "strip":
        strip(Path(paths[0]))
    elif command == "deflate":
        deflate(Path(paths[0]), Path(paths[1]))
    else:
        packages(Path(paths[0]))
