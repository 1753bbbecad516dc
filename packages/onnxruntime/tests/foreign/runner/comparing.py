"""What a program said natively and in a page, check by check: the same, refused in words, or different."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

SAME, REFUSED, DIFFERENT = "same", "refused", "different"
# What a page raises where it lacks something: onnxruntime's own class, Python's, and dlpack_web's.
REFUSALS = {"NotImplemented", "NotImplementedError", "UnsupportedError"}
# What Pyodide itself refuses.
NOT_IN_PYODIDE = {("RuntimeError", "can't start new thread")}
FEWEST_WORDS = 4


@dataclass(frozen=True)
class Close:
    """How far results may be apart: floats absolutely and of the value, integers of arrays in steps."""

    absolute: float = 0.0
    relative: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Compared:
    """A check and what it came to."""

    name: str
    outcome: str
    why: str = ""


def compare(native: str, page: str, close: Close) -> list[Compared]:
    """One for each check of either side. native, page: what program.run() returned."""
    wanted, got = json.loads(native), json.loads(page)
    if wanted["ended"]:
        raise AssertionError(f"natively: {wanted['ended']}")
    found = {each["name"]: each["found"] for each in got["checks"]}
    names = [each["name"] for each in wanted["checks"]]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise AssertionError(f"names of more than one check: {twice}")
    missing = f"not reached: {got['ended'] or 'nothing was said'}"
    compared = []
    for each in wanted["checks"]:
        name, within = each["name"], each["close"]
        if name not in found:
            compared.append(Compared(name, DIFFERENT, missing))
            continue
        limit = close if within is None else Close(within, within)
        compared.append(outcome(name, each["found"], found[name], limit))
    more = [name for name in found if name not in names]
    return compared + [Compared(name, DIFFERENT, "only in the page") for name in more]


def outcome(
    name: str, wanted: dict[str, Any], got: dict[str, Any], close: Close
) -> Compared:
    kind = wanted.get("raised")
    if "raised" in got:
        # A subclass is caught by the same lines.
        if kind in got["kinds"]:
            return Compared(name, SAME)
        if is_refusal(got):
            return Compared(name, REFUSED, f"{got['raised']}: {got['words']}")
    elif kind is None and alike(wanted, got, close):
        return Compared(name, SAME)
    return Compared(name, DIFFERENT, f"{told(wanted)}; page: {told(got)}")


def is_refusal(raised: dict[str, Any]) -> bool:
    """Whether it says in words that a page has no such thing."""
    kind, words = raised["raised"], raised["words"]
    if (kind, words) in NOT_IN_PYODIDE:
        return True
    return kind in REFUSALS and len(words.split()) >= FEWEST_WORDS


def told(found: dict[str, Any]) -> str:
    text = (
        f"{found['raised']}: {found['words']}"
        if "raised" in found
        else json.dumps(found)
    )
    return text if len(text) < 600 else f"{text[:600]} …"


def alike(wanted: Any, got: Any, close: Close) -> bool:
    """Whether two values are the same, but for the digits of floats."""
    if type(wanted) is not type(got):
        return False
    if isinstance(wanted, dict):
        exact = Close(0, 0, close.steps if wanted.get("type") == "ndarray" else 0)
        return wanted.keys() == got.keys() and all(
            alike(value, got[key], close if holds_floats(wanted) else exact)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return len(wanted) == len(got) and all(
            alike(one, other, close) for one, other in zip(wanted, got, strict=True)
        )
    if isinstance(wanted, float):
        return near(wanted, got, close)
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return abs(wanted - got) <= close.steps
    return bool(wanted == got)


def holds_floats(encoded: dict[str, Any]) -> bool:
    kind = encoded.get("dtype", encoded.get("type", ""))
    return "items" in encoded or "float" in kind


def near(wanted: float, got: float, close: Close) -> bool:
    if math.isnan(wanted) or math.isinf(wanted):
        return wanted == got or (math.isnan(wanted) and math.isnan(got))
    return abs(wanted - got) <= close.absolute + close.relative * abs(wanted)


# --- differences that are listed ----------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A check that may differ: where the desktop is wrong, or its answer is random."""

    program: str
    check: str  # a pattern
    why: str
    provider: str = "*"

    def is_of(self, program: str, provider: str) -> bool:
        return self.program == program and fnmatchcase(provider, self.provider)


def listed(file: Path) -> list[Listed]:
    import tomllib

    return [Listed(**each) for each in tomllib.loads(file.read_text())["different"]]


def unlisted(
    compared: list[Compared], entries: list[Listed]
) -> tuple[list[Compared], list[Listed]]:
    """Differences that no entry is about, and entries that are about none."""
    differ = [each for each in compared if each.outcome == DIFFERENT]
    left = [
        each
        for each in differ
        if not any(fnmatchcase(each.name, entry.check) for entry in entries)
    ]
    stale = [
        entry
        for entry in entries
        if not any(fnmatchcase(each.name, entry.check) for each in differ)
    ]
    return left, stale
