#!/usr/bin/env python3
"""generate.py RULES FILE: the mutants of a file by universalmutator's rules, as JSON: a list of
[line, text]. It runs in build/mutants/venv, which has nothing else."""

import contextlib
import json
import sys
from pathlib import Path

from universalmutator.mutator import mutants_regexp

# Of a line that nobody runs, and of text that only people read, there is nothing to test.
IGNORED = [
    r"^\s*(//|\*|/\*|#)",
    r"^\s*(import|from|export \{|export \*)\b.*",
    r"^\s*[\]\[{}();,\s]*$",
]


def main() -> None:
    rules, file = sys.argv[1].split(","), Path(sys.argv[2])
    source = file.read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(sys.stderr):  # it says which rules it has
        found = mutants_regexp(source, rules, ignorePatterns=IGNORED)
    json.dump([[line, text.rstrip("\n")] for line, text, *_ in found], sys.stdout)


if __name__ == "__main__":
    main()
