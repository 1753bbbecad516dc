"""Names that the documentation says are there, and all that are there it names."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import zlib
from collections.abc import Iterator

from documentation import ROOT, SITE, SOURCE, sources

import dlpack_web as dlw

NAME = re.compile(r"\bdlw((?:\.[A-Za-z_]\w*)+)")
WORDS = re.compile(r'["`]\s*\+?\s*(?://[^\n]*)?\n?\s*f?["`]')  # between parts of a text


def public() -> Iterator[str]:
    """Names of the package and of members of its classes, as docstring tests have them."""
    path = ROOT / "tests" / "native" / "docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["docstrings"] = module
    spec.loader.exec_module(module)
    for name, _ in module.public():
        yield name


def inventory() -> set[str]:
    """What the reference has, by Sphinx's own list."""
    data = (SITE / "objects.inv").read_bytes()
    text = zlib.decompress(data.split(b"\n", 4)[4]).decode()
    return {line.split(" ")[0] for line in text.split("\n") if " py:" in line}


def test_every_public_name_of_python_is_in_the_reference() -> None:
    there = inventory()
    lost = {f"dlpack_web.{name}" for name in public()} - there
    assert lost == set()


def test_every_entry_point_of_typescript_is_in_the_reference() -> None:
    exports = json.loads((ROOT / "package.json").read_text("utf-8"))["exports"]
    text = "".join(
        page.read_text("utf-8")
        for page in (SITE / "reference" / "typescript").rglob("*.html")
    )
    for name in exports:
        if name not in ("./package.json", "./internal"):
            assert f"dlpack-web{name.removeprefix('.')}" in text, name


def test_names_in_texts_are_in_the_module() -> None:
    wrong = []
    for path in sources():
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            for found in NAME.finditer(line):
                thing: object = dlw
                for part in found[1][1:].split("."):
                    if (
                        thing is not dlw
                        and thing is not dlw.webgpu
                        and not isinstance(thing, type)
                    ):
                        break  # what a call gave, or a value
                    if not hasattr(thing, part):
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
                        break
                    thing = getattr(thing, part)
    assert wrong == []


def literals() -> str:
    """The texts of all sources, put together where they are written in parts."""
    patterns = ("py/dlpack_web/**/*.py", "wasm/*.c", "wasm/*.h", "js/src/**/*.ts")
    files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
    return "\n".join(WORDS.sub("", file.read_text("utf-8")) for file in files)


def test_messages_of_the_index_of_errors_are_in_the_sources() -> None:
    text = literals().replace('\\"', '"')
    lines = (SOURCE / "reference" / "errors.md").read_text("utf-8").split("\n")
    quoted = 0
    for number, line in enumerate(lines[:-1]):
        if not line.startswith("`") or not lines[number + 1].startswith(": "):
            continue
        for part in re.findall(r"`([^`]+)`", line):
            quoted += 1
            assert part in text, f"errors.md:{number + 1}: no source says {part!r}"
    assert quoted > 40


def test_the_table_of_dtypes_has_all_of_them() -> None:
    rows = json.loads((ROOT / "tests" / "dtypes.json").read_text("utf-8"))
    page = (SITE / "reference" / "dtypes.html").read_text("utf-8")
    for row in rows:
        assert f'<span class="pre">{row["name"]}</span></code></p></td>' in page, row


def test_lines_with_the_clone_are_paths() -> None:
    """PyPI has a package of that name, which pip takes instead of a folder that is not there."""
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sources()
    files += [*ROOT.glob("examples/**/*.md"), *ROOT.glob("packages/*/README.md")]
    files += ROOT.glob("web/pages/*/*.html")
    bare = [
        (path.relative_to(ROOT).as_posix(), found)
        for path in files
        if "node_modules" not in path.parts
        for found in re.findall(
            r"(?:[^${]|\A)\bCLONE\b[^`=}].*", path.read_text("utf-8")
        )
    ]
    assert bare == []
