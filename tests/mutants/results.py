"""What became of each mutant, in build/mutants/results.jsonl, and the report on it."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from model import BUILD, EQUIVALENT, INVALID, KILLED, SURVIVED, Mutant, Outcome


class Results:
    """A line for each outcome; of the same mutant the last one holds."""

    def __init__(self, file: Path = BUILD / "results.jsonl"):
        self.file = file
        self.known: dict[str, Outcome] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the run was ended while it wrote
                self.known[entry["key"]] = Outcome(**entry["outcome"])

    def get(self, key: str, tests: str) -> Outcome | None:
        """What survived other tests than those of now has to be tried again."""
        found = self.known.get(key)
        if found and found.status == SURVIVED and found.tests != tests:
            return None
        return found

    def put(self, key: str, mutant: Mutant, outcome: Outcome) -> None:
        self.known[key] = outcome
        self.file.parent.mkdir(parents=True, exist_ok=True)
        entry = {"key": key, "mutant": vars(mutant), "outcome": outcome.as_dict()}
        with self.file.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def score(counts: Counter[str]) -> str:
    counted = counts[KILLED] + counts[SURVIVED]
    return f"{100 * counts[KILLED] / counted:.1f} %" if counted else "-"


def report(part: str, how: str, tried: Iterable[tuple[Mutant, Outcome]]) -> str:
    """Markdown of one part."""
    tried = list(tried)
    files: dict[str, Counter[str]] = {}
    for mutant, outcome in tried:
        files.setdefault(mutant.file, Counter())[outcome.status] += 1
    total: Counter[str] = sum(files.values(), Counter())
    columns = (KILLED, SURVIVED, EQUIVALENT, INVALID)
    rows = [f"## {part}: {score(total)} killed", "", how, ""]
    rows += [f"| file | {' | '.join(columns)} | score |", "|---" * 6 + "|"]
    for file, counts in [*sorted(files.items()), ("all", total)]:
        numbers = " | ".join(str(counts[column]) for column in columns)
        rows.append(f"| {file} | {numbers} | {score(counts)} |")
    survivors = [mutant for mutant, outcome in tried if outcome.status == SURVIVED]
    for mutant in sorted(survivors, key=lambda it: (it.file, it.line, it.after)):
        rows += ["", f"{mutant.file}:{mutant.line}", "```diff"]
        rows += [
            f"-{mutant.before}",
            *(f"+{it}" for it in mutant.after.splitlines() or [""]),
        ]
        rows.append("```")
    return "\n".join(rows) + "\n"


def write_report(part: str, text: str) -> None:
    """build/mutants.md has a section for each part, which it keeps until that is run again."""
    (BUILD / f"report-{part}.md").write_text(text)
    parts = [file.read_text() for file in sorted(BUILD.glob("report-*.md"))]
    (BUILD.parent / "mutants.md").write_text("# Mutants\n\n" + "\n".join(parts))
