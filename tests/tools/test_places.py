"""Adapters stand in several places: a test fails and names the one that was forgotten.

web/docs/howto/add-an-adapter.md says what belongs there.
"""

import ast
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


BACKENDS = ROOT / "py/dlpack_web/_backends"
# The model's types, and the browser's for them: it can wait for promises, too.
BROWSERS = {"Coroutine[Any, Any, Any]": "Awaitable[Any]", "Calls[Any]": "Batch"}
# What classes of the model have for drivers alone.
OF_DRIVERS = {
    "Backend": "forget_lost ready refused register registered requested",
    "Kernel": "check checked_groups declared group prepare",
    "Calls": "computes held",
}


def _methods(file, kind):
    """The functions of a class, or of a module: whether each is async, and the types of its parameters and
    result, as they are written."""
    body = ast.parse((BACKENDS / file).read_text("utf-8")).body
    if kind is not None:
        (body,) = (each.body for each in body if getattr(each, "name", None) == kind)
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [arg.annotation for arg in node.args.args if arg.annotation]
            types = [ast.unparse(each) for each in (*given, node.returns) if each]
            plain = [each.replace("_core.", "") for each in types]
            for model, browser in BROWSERS.items():
                plain = [each.replace(model, browser) for each in plain]
            defaults = list(map(ast.unparse, node.args.defaults))
            found[node.name] = type(node), plain, defaults
    return found


def _agree(one, other):
    return len(one) == len(other) and all(
        a in (b, "Any", *b.split(" | ")) or b == "Any"
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(
    ("kind", "file", "theirs"),
    [
        (None, "model/backend.py", "Backend"),
        ("Kernel", "model/kernels/kernels.py", "Kernel"),
        ("Batch", "model/kernels/batch.py", "Calls"),
    ],
)
def test_the_browsers_backend_has_the_methods_of_the_model(kind, file, theirs):
    ours, models = _methods("browser/__init__.py", kind), _methods(file, theirs)
    if kind is None:  # it imports some of them
        ours = _methods("browser/javascript.py", None) | ours
    for name, (is_async, types, defaults) in models.items():
        if name.startswith("_") or name in OF_DRIVERS[theirs].split():
            continue
        own_async, own_types, own_defaults = ours[name]
        assert (own_async, own_defaults) == (is_async, defaults), name
        assert _agree(own_types, types), (name, own_types, types)
