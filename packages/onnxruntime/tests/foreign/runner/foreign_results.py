"""RESULTS.md: how many checks of each program are the same in each place, and what is not.

A run of single programs renews their lines alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from comparing import DIFFERENT, REFUSED, SAME, Compared

FOREIGN = Path(__file__).resolve().parents[1]
HEAD = """# Programs that others write, natively and in a page

Each program of this folder runs with the original library on the desktop and with dlpack_web in a page, no line
changed, and makes checks: values that are compared, floats within a tolerance, and types of exceptions. *Refused*:
the page raises an error that says why. *Different* fails the test unless `different.toml` lists the check, where the desktop
is wrong or random. `make tables WHAT=foreign` writes this file; a test fails when it is old.
"""
COUNTS = "| program | in | checks | same | refused | different |"
REFUSALS = "| program | in | what | with |"
RULE = "|---|---|---:|---:|---:|---:|"
ROW = re.compile(r"\| ([\w/]+) \| ([\w-]+(?:, [\w-]+)*) \| (.*)")

Key = tuple[str, str]  # program, provider


def lines_of(key: Key, compared: Iterable[Compared]) -> list[str]:
    """The lines of a program: its counts, then each check that is refused."""
    found = list(compared)
    counts = [
        sum(each.outcome == kind for each in found)
        for kind in (SAME, REFUSED, DIFFERENT)
    ]
    numbers = " | ".join(map(str, [len(found), *counts]))
    return [
        f"| {key[0]} | {key[1]} | {numbers} |",
        *sorted(
            f"| {key[0]} | {key[1]} | {cell(each.name)} | {cell(each.why)} |"
            for each in found
            if each.outcome == REFUSED
        ),
    ]


def cell(text: str) -> str:
    plain = re.sub(r"\s+", " ", text.removeprefix("NotImplemented: "))
    plain = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", plain)
    plain = plain.replace("|", "\\|")
    return plain if plain.startswith("`") else plain.replace("<", "\\<")


def merged(lines: Iterable[str]) -> list[str]:
    """One row for all places of a program in which it is the same."""
    places: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if row := ROW.match(line):
            places.setdefault((row[1], row[3]), []).append(row[2])
    return [
        f"| {program} | {', '.join(where)} | {rest}"
        for (program, rest), where in sorted(places.items())
    ]


@dataclass(frozen=True)
class Table:
    """A file: its head, a row of counts for each run, and a row for what is refused."""

    file: Path
    head: str

    def parsed(self) -> dict[Key, list[str]]:
        """The lines of each program in the file."""
        found: dict[Key, list[str]] = {}
        for line in self.written().splitlines():
            row = ROW.match(line)
            if row and line not in (COUNTS, REFUSALS):
                for place in row[2].split(", "):
                    lines = found.setdefault((row[1], place), [])
                    lines.append(f"| {row[1]} | {place} | {row[3]}")
        return found

    def rendered(self, programs: Mapping[Key, list[str]]) -> str:
        """The file's text."""
        keys = sorted(programs)
        counts = [programs[key][0] for key in keys]
        rows = [line for key in keys for line in programs[key][1:]]
        sums = [0, 0, 0, 0]
        for line in counts:
            numbers = [int(each) for each in re.findall(r" (\d+) (?=\|)", line)][-4:]
            sums = [a + b for a, b in zip(sums, numbers, strict=True)]
        total = " | ".join(f"**{each}**" for each in sums)
        table = "\n".join([COUNTS, RULE, *merged(counts), f"| **all** |  | {total} |"])
        text = f"{self.head}\n{table}\n"
        if rows:
            listed = "\n".join([REFUSALS, "|---|---|---|---|", *merged(rows)])
            text += f"\n## Refused\n\n{listed}\n"
        return text

    def written(self) -> str:
        return self.file.read_text() if self.file.exists() else ""

    def write(self, renewed: Mapping[Key, list[str]], known: set[str]) -> None:
        """Renews lines, and drops those of programs that are gone."""
        programs = self.parsed() | dict(renewed)
        kept = {key: lines for key, lines in programs.items() if key[0] in known}
        self.file.write_text(self.rendered(kept))


RESULTS = Table(FOREIGN / "RESULTS.md", HEAD)


def programs() -> set[str]:
    """The names of all programs of onnxruntime."""
    folder = FOREIGN / "onnxruntime"
    return {f"{folder.name}/{path.stem}" for path in folder.glob("*/*.py")}
