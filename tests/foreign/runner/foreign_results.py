"""tests/foreign/RESULTS.md: how many checks of each program are the same in a page, and what is not.

A run of single programs renews their lines alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from comparing import DIFFERENT, REFUSED, SAME, Compared

FILE = Path(__file__).resolve().parents[1] / "RESULTS.md"
HEAD = """# Programs that others write, natively and in a page

Each program of this folder runs with the original library on the desktop and with dlpack_web in a page, no line
changed, and makes checks: values that are compared, floats within a tolerance, and types of exceptions. *Refused*:
the page raises an error that says why. *Different* fails the test unless `different.toml` lists the check, where the desktop
is wrong or random. `make tables WHAT=foreign` writes this file; a test fails when it is old.
"""
COUNTS = "| program | in | checks | same | refused | different |"
REFUSALS = "| program | in | refused | with |"
RULE = "|---|---|---:|---:|---:|---:|"

Key = tuple[str, str]  # program, provider


def lines_of(key: Key, compared: Iterable[Compared]) -> list[str]:
    """The lines of a program: its counts, then what is refused and different."""
    found = list(compared)
    counts = [
        sum(each.outcome == kind for each in found)
        for kind in (SAME, REFUSED, DIFFERENT)
    ]
    numbers = " | ".join(map(str, [len(found), *counts]))
    return [
        f"| {key[0]} | {key[1]} | {numbers} |",
        *(
            f"| {key[0]} | {key[1]} | {cell(each.name)} | {cell(each.why)} |"
            for each in found
            if each.outcome == REFUSED
        ),
    ]


def cell(text: str) -> str:
    plain = re.sub(r"\s+", " ", text.removeprefix("NotImplemented: "))
    plain = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", plain)
    return plain.replace("|", "\\|").replace("<", "\\<")


def parsed(text: str) -> dict[Key, list[str]]:
    """The lines of each program in the file."""
    found: dict[Key, list[str]] = {}
    for line in text.splitlines():
        key = re.match(r"\| ([\w/]+) \| ([\w-]+) \| ", line)
        if key and line != COUNTS and line != REFUSALS:
            found.setdefault((key[1], key[2]), []).append(line)
    return found


def rendered(programs: Mapping[Key, list[str]]) -> str:
    """The file's text."""
    keys = sorted(programs)
    counts = [programs[key][0] for key in keys]
    refused = [line for key in keys for line in programs[key][1:]]
    sums = [0, 0, 0, 0]
    for line in counts:
        numbers = [int(each) for each in re.findall(r" (\d+) (?=\|)", line)][-4:]
        sums = [a + b for a, b in zip(sums, numbers, strict=True)]
    total = " | ".join(f"**{each}**" for each in sums)
    table = "\n".join([COUNTS, RULE, *counts, f"| **all** |  | {total} |"])
    text = f"{HEAD}\n{table}\n"
    if refused:
        listed = "\n".join([REFUSALS, "|---|---|---|---|", *refused])
        text += f"\n## Refused\n\n{listed}\n"
    return text


def written() -> str:
    return FILE.read_text() if FILE.exists() else ""


def write(renewed: Mapping[Key, list[str]], known: set[str]) -> None:
    """Renews lines, and drops those of programs that are gone."""
    programs = parsed(written()) | dict(renewed)
    FILE.write_text(
        rendered({key: lines for key, lines in programs.items() if key[0] in known})
    )


def programs() -> set[str]:
    """The names of all programs; those of arrays have a runner and a table of their own."""
    folder = FILE.parent / "onnxruntime"
    return {f"{folder.name}/{path.stem}" for path in folder.glob("*/*.py")}
