"""Lists of sources have what is there."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_extension_is_built_of_all_sources():
    """setuptools takes no patterns there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (extension,) = project["tool"]["setuptools"]["ext-modules"]
    for key, suffix in (("sources", "c"), ("depends", "h")):
        there = sorted(
            f"wasm/{each.name}" for each in (ROOT / "wasm").glob(f"*.{suffix}")
        )
        assert extension[key] == there, f"pyproject.toml: {key} of dlpack_web._core"
