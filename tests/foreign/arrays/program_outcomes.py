"""What became of each program where: outcomes.jsonl, and the table made of it, ARRAYS.md.

A test fails where a program does something else than what is kept, or where the table is old.
With PROGRAMS=write the suites write what they see: `make tables WHAT=programs`.
"""

import json
import os
from pathlib import Path
from typing import Any

import program_steps as steps

HERE = Path(__file__).parent
FILE = HERE / "outcomes.jsonl"
PAGE = HERE.parent / "ARRAYS.md"
#: Where programs run, and how the table calls it.
PLACES = {"native": "CPython", "gpu": "CPython, wgpu", "page": "Pyodide"}
KINDS = ("refused", "different")
HEAD = """\
# Programs for arrays, with Tensors

Written by `make tables WHAT=programs`. Each program of `arrays/programs` runs twice: as it is, with ndarrays, and with a
`dlpack_web.Tensor` in place of each array that the comment `a Tensor` marks. What each statement gives,
prints and leaves in its arguments is compared, every element and dtype. Counted are the statements that use a
Tensor, or what was made with one:

- **same**: as with the ndarray;
- **refused**: an exception that says what to do, and the statement with `np.asarray(t)` instead is the same as with the
  ndarray;
- **different**: anything else. A test fails for it, unless `arrays/program_reasons.py` has the reason, which is
  below.

Kernels (`arrays/kernels.py`) run on a GPU in Pyodide and over wgpu, and are NumPy's elsewhere.
"""


def kept() -> dict[str, Any]:
    """By program and place: how many statements are the same, and rows of the others."""
    found: dict[str, Any] = {}
    lines = FILE.read_text("utf-8").splitlines() if FILE.is_file() else []
    for name, place, kind, *row in map(json.loads, lines):
        outcome = found.setdefault(name, {}).setdefault(place, {k: [] for k in KINDS})
        if kind == "same":
            (outcome["same"],) = row
        else:
            outcome[kind].append(row)
    return found


def keep(everything: dict[str, Any]) -> None:
    """A line for each row of a program in a place."""
    rows = []
    for name, places in sorted(everything.items()):
        for place, outcome in sorted(places.items()):
            rows.append([name, place, "same", outcome["same"]])
            rows += [
                [name, place, kind, *row] for kind in KINDS for row in outcome[kind]
            ]
    FILE.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def check(place: str, name: str, found: dict[str, Any]) -> None:
    """AssertionError where a program did something that is not kept, or wrong."""
    found = dict(found)
    assert not found.pop("wrong"), f"{name} differs"
    found = json.loads(json.dumps(found))
    everything = kept()
    if os.environ.get("PROGRAMS") == "write":
        everything.setdefault(name, {})[place] = found
        keep(everything)
        PAGE.write_text(page(), "utf-8")
    expected = kept().get(name, {}).get(place)
    assert found == expected, (
        f"{name} in {PLACES[place]}: `make tables WHAT=programs` keeps it"
    )


def page() -> str:
    everything = {name: kept().get(name, {}) for name in steps.NAMES}
    return "\n".join([HEAD, *_summary(everything), "", *_details(everything)])


def _summary(everything: dict[str, Any]) -> list[str]:
    head = ["program", "libraries", *PLACES.values()]
    rows = [head, ["---"] * len(head)]
    for name, places in everything.items():
        link = f"[{steps.title(name).rstrip('.')}](arrays/programs/{name}.py)"
        cells = [_counts(places.get(place)) for place in PLACES]
        rows.append([link, ", ".join(steps.packages(name)), *cells])
    rows.append(["all", "", *(_counts(_total(everything, place)) for place in PLACES)])
    return [f"| {' | '.join(row)} |" for row in rows]


def _counts(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    parts = [f"{outcome['same']} same"]
    parts += [f"{len(outcome[kind])} {kind}" for kind in KINDS if outcome[kind]]
    return ", ".join(parts)


def _total(everything: dict[str, Any], place: str) -> dict[str, Any]:
    found = [places[place] for places in everything.values() if place in places]
    total = {kind: [row for each in found for row in each[kind]] for kind in KINDS}
    return {"same": sum(each["same"] for each in found), **total}


def _details(everything: dict[str, Any]) -> list[str]:
    lines = []
    for kind, head in (("refused", "Refused"), ("different", "Different, and why")):
        lines += [f"## {head}", ""]
        for name, places in everything.items():
            rows = _rows(places, kind)
            lines += [f"`{name}.py`", "", *rows, ""] if rows else []
    return lines


def _rows(places: dict[str, Any], kind: str) -> list[str]:
    """A line for each statement, and, where not all places agree, the places."""
    seen: dict[tuple[str, ...], list[str]] = {}
    for place, outcome in places.items():
        for row in outcome[kind]:
            seen.setdefault(tuple(row), []).append(PLACES[place])
    return [
        f"- {_code(source)}{_where(found, places)}: " + "; ".join(words)
        for (source, *words), found in seen.items()
    ]


def _where(found: list[str], places: dict[str, Any]) -> str:
    return "" if len(found) == len(places) else f" ({', '.join(found)})"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
