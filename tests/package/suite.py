"""`dlpack-web conformance`, as users of the package run it: on a file of theirs."""

from __future__ import annotations

import re
from pathlib import Path

from projects import SOURCES, run

CLI = "node_modules/dlpack-web/js/dist/conformance/cli.js"
RIGHT, WRONG = "right.mjs", "wrong.mjs"


def write_producers(folder: Path) -> None:
    """A producer, and one that lies."""
    right = (SOURCES / RIGHT).read_text()
    (folder / RIGHT).write_text(right)
    lie = right.replace("data.byteLength,", "data.byteLength + 64,")
    (folder / WRONG).write_text(lie)
    assert lie != right


def tells_right_from_wrong(folder: Path, *runner: str) -> None:
    write_producers(folder)
    told = run(*runner, "conformance", RIGHT, at=folder)
    assert re.search(r"^ *S5 +ok$", told, re.MULTILINE), told
    assert "FAILED" not in told
    told = run(*runner, "conformance", WRONG, at=folder, fails=True)
    assert re.findall(r"^ *(\w+) +FAILED", told, re.MULTILINE) == ["S5"], told
    run(*runner, "conformance", "none.mjs", at=folder, fails=True)
    run(*runner, at=folder, fails=True)
