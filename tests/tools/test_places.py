"""Adapters stand in several places: a test fails and names the one that was forgotten.

web/docs/howto/add-an-adapter.md says what belongs there.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = json.loads((ROOT / "package.json").read_text())["exports"]
NOT_ADAPTERS = {"./share"}  # devices.ts has no library of its own
ADAPTERS = sorted(
    name.removeprefix("./")
    for name, target in EXPORTS.items()
    if "/adapters/" in str(target) and name not in NOT_ADAPTERS
)

# File -> what it must say of an adapter of that name.
PLACES = {
    "tools/tables/adapters.toml": r'(?m)^{name} = (?s:.*)^\w+ = "{name}"$',
    "tests/js/surface.test.mjs": r'"\./{name}": \[',
    "tests/package/types/libraries.ts": r'"dlpack-web/{name}"',
    "web/docs/howto/javascript-libraries.md": r"(?m)^\| `{name}`: ",
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_is_in_every_place(name):
    lost = [
        file
        for file, pattern in PLACES.items()
        if not re.search(
            pattern.format(name=name), (ROOT / file).read_text("utf-8"), re.MULTILINE
        )
    ]
    assert lost == [], f"{name} is missing in these: web/docs/howto/add-an-adapter.md"


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_has_tests(name):
    """In Node or in a browser, by its name."""
    files = [f"js/adapters/{name}.test.mjs", f"browser/*/**/{name}_cases.mjs"]
    assert any(any((ROOT / "tests").glob(file)) for file in files), files


def test_every_source_of_an_adapter_is_exported():
    sources = {path.stem for path in (ROOT / "js/src/adapters").glob("*.ts")}
    shared = {"calls", "common", "devices", "faults", "ortruns", "watched"}
    assert sources == {*ADAPTERS, *shared, "all", "generated"}


CALLS = [*ROOT.glob("py/**/calls.pyi"), *ROOT.glob("packages/*/py/*/_calls.pyi")]


@pytest.mark.parametrize("file", CALLS)
def test_javascript_has_the_methods_that_python_calls(file):
    folder = next(each for each in file.parents if (each / "js/src").is_dir())
    places = "*.ts", "pyodide/*.ts", "*/calls.ts"
    paths = [path for each in places for path in folder.glob(f"js/src/{each}")]
    sources = "".join(path.read_text() for path in paths)
    names = re.findall(r"def (\w+)", file.read_text())
    assert len(names) > 3
    method = r"(?m)^  (?:async |readonly |get )?{}\b"
    assert [each for each in names if not re.search(method.format(each), sources)] == []
