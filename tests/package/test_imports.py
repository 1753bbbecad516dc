"""The tarball's entry points, imported where pages are only made: no `navigator` there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from projects import lay_out, run


def entries(project: Path) -> list[str]:
    """What can be imported; `./types` is of types alone."""
    package = project / "node_modules" / "dlpack-web" / "package.json"
    exports = json.loads(package.read_text())["exports"]
    return [
        f"dlpack-web{name.removeprefix('.')}"
        for name, file in exports.items()
        if str(file).endswith(".js")
    ]


@pytest.mark.parametrize("how", ["none", "thrower"])
def test_no_import_touches_the_navigator(project: Path, how: str) -> None:
    lay_out(project, "imports.mjs")
    names = entries(project)
    assert len(names) >= 12
    told = json.loads(run("node", "imports.mjs", how, *names, at=project))
    assert told["touched"] == []
    wrong = {name: n for name, n in told["found"].items() if type(n) is not int}
    assert wrong == {}
    assert all(told["found"].values()), told["found"]
