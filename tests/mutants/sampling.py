"""Which mutants are tried: generated ones in an order that SEED alone decides, lines that
changed, or a list."""

import json
import random
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from model import BUILD, HERE, ROOT, Mutant, digest

Lines = dict[str, set[int]]  # file -> numbers


def generated(part: str, rules: str, file: Path) -> list[Mutant]:
    """All mutants of a file, kept by its contents."""
    source = file.read_text()
    generator = HERE / "generate.py"
    kept = BUILD / "generated" / f"{digest(source, rules, generator.read_text())}.json"
    if not kept.exists():
        python = BUILD / "venv" / "bin" / "python"
        done = subprocess.run(
            [python, generator, rules, file], check=True, capture_output=True
        )
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(done.stdout)
    lines = source.splitlines()
    name = str(file.relative_to(ROOT))
    return [
        Mutant(part, name, line, lines[line - 1], after)
        for line, after in json.loads(kept.read_text())
        if after.split() != lines[line - 1].split()
    ]


def ordered(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """Each line once, in random order, with one of its mutants; then each once more with
    another: a line that has many mutants weighs as much as one that has few."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in mutants:
        lines.setdefault((mutant.file, mutant.line), []).append(mutant)
    chance = random.Random(seed)
    decks = [lines[place] for place in sorted(lines)]
    for deck in decks:
        deck.sort(key=lambda mutant: mutant.after)
        chance.shuffle(deck)
    chance.shuffle(decks)
    longest = max(map(len, decks), default=0)
    return [deck[at] for at in range(longest) for deck in decks if at < len(deck)]


def changed_lines(commit: str) -> Lines:
    """Lines that are new since the commit."""
    command = ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", commit]
    diff = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return lines_of_diff(diff)


def lines_of_diff(diff: str) -> Lines:
    lines: Lines = {}
    file = ""
    for row in diff.splitlines():
        if row.startswith("+++ "):
            file = row.removeprefix("+++ ").removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", row):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    return lines


def find_line(
    entry: dict[str, str], read: Callable[[Path], str] = Path.read_text
) -> int:
    """Where the line of a list's entry is, from 1; it is an error when it is not there, or is
    there twice. `under`: the first one behind the line that begins so."""
    lines = read(ROOT / entry["file"]).splitlines()
    places = [
        at
        for at, line in enumerate(lines, 1)
        if line.strip() == entry["before"].strip()
    ]
    if under := entry.get("under"):
        starts = [at for at, line in enumerate(lines, 1) if line.startswith(under)]
        places = [at for at in places if starts and at > starts[0]][:1]
    if len(places) != 1:
        raise SystemExit(
            f"a list of tests/mutants names a line that {entry['file']} has"
            f" {len(places)} times: {entry['before']!r}"
        )
    return places[0]


def known(part: str) -> list[Mutant]:
    """Those of known.toml."""
    found = []
    for entry in tomllib.loads((HERE / "known.toml").read_text())["mutant"]:
        if entry["part"] == part:
            line = find_line(entry)
            before = (ROOT / entry["file"]).read_text().splitlines()[line - 1]
            indent = before[: len(before) - len(before.lstrip())]
            found.append(
                Mutant(part, entry["file"], line, before, indent + entry["after"])
            )
    return found


def without_indents(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def equivalent() -> set[tuple[str, int, str]]:
    """File, line and what it becomes without indents, of each of equivalent.toml."""
    listed = tomllib.loads((HERE / "equivalent.toml").read_text()).get("mutant", [])
    return {(it["file"], find_line(it), without_indents(it["after"])) for it in listed}
