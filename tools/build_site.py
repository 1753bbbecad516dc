#!/usr/bin/env python3
"""build_site.py: lays out build/site, the folder to serve, as links to its parts.

With links, edits of a page or module take effect at once. For a static host, copy it
with `cp -rL build/site somewhere`.
"""

import os
import shutil
import sys
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
# Folders in node_modules and in the site.
PYODIDES = (
    "pyodide",
    "pyodide-0.29",
    "pyodide-314.0.0",
    "pyodide-314.0.7",
    "pyodide-315",
)
# Folders of web/ that are not served as such.
NOT_OURS = ("docs", "libraries", "lite", "pages", "site")


def ours() -> dict[str, Path]:
    """The contents of the site's root: web/, web/site and the folders of web/pages. So
    pages import shared modules from their own folder."""
    web = ROOT / "web"
    hidden = {web / name for name in NOT_OURS}
    parts: dict[str, Path] = {}
    pages = [
        *sorted((web / "pages").iterdir()),
        *sorted((ROOT / "packages").glob("*/pages")),
    ]
    for folder in (web, web / "site", *pages):
        for entry in folder.iterdir():
            if entry.name == "__pycache__" or entry in hidden:
                continue
            if entry.name in parts:
                sys.exit(f"{entry} and {parts[entry.name]} have one address")
            parts[entry.name] = entry
    return parts


def contents() -> dict[str, Path]:
    """Path in the site -> its file or folder."""
    parts = ours()
    parts["index.html"] = parts["live.html"]  # the start page
    parts["js"] = ROOT / "js" / "dist"
    for built in ROOT.glob("packages/*/js/dist"):
        name = f"packages-js/{built.parts[-3]}"
        without_bundler = ROOT / "build" / name
        parts[name] = without_bundler if without_bundler.is_dir() else built
    parts["wheel"] = ROOT / "dist"
    parts["dist"] = ROOT / "dist"  # where modules of packages find their wheels
    rows = "tests/bench/rows"  # for the page "Your GPU"
    parts[rows] = ROOT / rows
    parts["photo.jpg"] = Path(
        matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg"
    )
    # Made only if a page needs them.
    for name in ("libraries", "model", "measurements"):
        parts[name] = ROOT / "build" / name / "site"
    parts["wheels"] = ROOT / "build" / "wheels"  # for Pyodide, from PyPI
    parts["docs"] = ROOT / "build" / "docs" / "site"  # from the sources in web/docs
    lite = ROOT / "build" / "lite" / "site"
    parts["packages"] = lite / "static" / "pyodide"  # Pyodide with IPython and others
    parts["examples"] = lite / "files"
    parts["jupyterlite"] = lite
    build = ROOT / "build"
    for name in PYODIDES:
        package, numpy = ROOT / "node_modules" / name, build / "numpy"
        runtime = [*package.glob("pyodide*"), package / "python_stdlib.zip"]
        # Overrides the package's own file: this lock names the NumPy wheel beside it.
        # Only tests fetch the NumPys of the others.
        wheels = list((numpy / name).iterdir()) if (numpy / name).is_dir() else []
        for file in runtime + wheels:
            parts[f"{name}/{file.name}"] = file
    parts["pyodide/snapshot.bin"] = build / "snapshot.bin"
    return parts


def main() -> None:
    wanted = {SITE / path: target for path, target in contents().items()}
    for entry in SITE.rglob("*"):  # does not follow links
        if entry.is_symlink() and entry not in wanted:
            entry.unlink()
    for link, target in wanted.items():
        text = os.path.relpath(target, link.parent)
        if link.is_symlink() and os.readlink(link) == text:
            continue
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(text)


if __name__ == "__main__":
    main()
