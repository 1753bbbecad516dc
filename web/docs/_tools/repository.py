"""Paths in the repository, and the project's address."""

import os
import tomllib
from pathlib import Path

ROOT = Path(os.environ.get("DOCS_ROOT") or Path(__file__).resolve().parents[3])
BUILD = ROOT / "build" / "docs"
SOURCE = BUILD / "source"  # Sphinx's input
SITE = BUILD / "site"
NOTEBOOKS = BUILD / "notebooks"


def home() -> str:
    """The address of the repository, which `tools/release.py address` sets; "": none yet."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found = str(settings["project"]["urls"]["Source"]).removesuffix(".git")
    return "" if found.startswith("https://example.org/") else found


def address(path: str) -> str:
    """The address of a file or folder of the repository; "" if the repository has none."""
    target = path.split("#", maxsplit=1)[0]
    if not (ROOT / target).exists():
        raise FileNotFoundError(f"the repository has no {target}")
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return home() and f"{home()}/{kind}/main/{path}"
