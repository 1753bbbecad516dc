"""`make help` has every task, in a group, and there is every task that a text names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TASKS = set(
    re.findall(r"[\w-]+", " ".join(re.findall(r"(?m)^\.PHONY: (.+)$", MAKEFILE)))
)
# Steps on the way to others.
STEPS = {"js", "site", "chromium", *(t for t in TASKS if t.startswith("check-"))}


def test_help_has_every_task():
    groups = re.search(r"for group in (.+); do", MAKEFILE)
    assert groups
    pattern = rf"(?m)^([a-z-]+):.*## (?:{'|'.join(groups[1].split())}): \S"
    assert set(re.findall(pattern, MAKEFILE)) == TASKS - STEPS
    assert len(re.findall(r"(?m)^[a-z-]+:.*## ", MAKEFILE)) == len(TASKS - STEPS)


def test_tasks_that_texts_name_are_there():
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        named = re.findall(r"`make ([a-z][a-z-]*)", (ROOT / name).read_text())
        assert named
        assert set(named) <= TASKS, name
