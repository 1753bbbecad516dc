"""`make help` has every task, in a group; each has its rule in a part; and there is every task that
a text names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PARTS = {file.stem: file.read_text() for file in (ROOT / "tools" / "make").glob("*.mk")}
TASKS = re.findall(r"(?m)^([a-z-]+): ## [A-Z][a-z]+: \S", MAKEFILE)
# Steps on the way to others.
STEPS = " ".join(
    found
    for part in PARTS.values()
    for found in re.findall(r"(?m)^\.PHONY: (.+)$", part)
).split()
RULE = re.compile(r"(?m)^([a-z-]+):(?!.* :?=(?: |$))")


def test_help_has_every_task():
    groups = re.search(r"for group in (.+); do", MAKEFILE)
    assert groups
    pattern = rf"(?m)^([a-z-]+): ## (?:{'|'.join(groups[1].split())}): \S"
    assert re.findall(pattern, MAKEFILE) == TASKS
    assert len(TASKS) == len(set(TASKS)) > 50
    assert " ## " not in "".join(PARTS.values())


def test_every_task_has_one_rule_and_every_rule_is_listed():
    rules = [name for part in PARTS.values() for name in RULE.findall(part)]
    assert sorted(rules) == sorted({*TASKS, *STEPS} - {"help"})


def test_every_part_is_included():
    included = re.search(
        r"(?m)^include \$\(patsubst %,tools/make/%\.mk,(.+)\)$", MAKEFILE
    )
    assert included
    assert sorted(included[1].split()) == sorted(PARTS)


def test_the_list_of_tasks_is_short():
    """All of it is seen at once; rules go into parts."""
    assert len(MAKEFILE.splitlines()) <= 110


def test_tasks_that_texts_name_are_there():
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        named = re.findall(r"(?m)(?:`|^)make ([a-z][a-z-]*)", (ROOT / name).read_text())
        assert named
        assert set(named) <= {*TASKS, *STEPS}, name
