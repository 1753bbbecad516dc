"""Limits of tests are guards against what never comes: none is so short that a busy machine
fails it."""

import re

import pytest
from quick import ROOT, git

LIMIT = re.compile(r"\btimeout(?:_s|Ms)?\s*[=:]\s*(\d[\d_]*)\b")
LEAST_S = 60
FILES = [
    name
    for name in git("ls-files", "tests")
    if name.endswith((".py", ".mjs")) and (ROOT / name).is_file()
]
# Whose subject is a limit.
OF_LIMITS = {
    "tests/js/conformance.test.mjs",
    "tests/js/conformance_consumers.mjs",
    "tests/js/conformance_producers.mjs",
    "tests/toolchain/test_patience.py",
}


def short(text: str) -> list[str]:
    """Limits of less than a minute; numbers from 1000 on are milliseconds."""
    found = []
    for match in LIMIT.finditer(text):
        number = int(match[1].replace("_", ""))
        if number / (1000 if number >= 1000 else 1) < LEAST_S:
            found.append(match[0])
    return found


@pytest.mark.parametrize("name", sorted({*FILES} - OF_LIMITS))
def test_no_limit_is_short(name):
    assert short((ROOT / name).read_text("utf-8")) == []


def test_short_limits_are_found():
    text = 'f(timeout=5); g(timeout=30_000); test("x", { timeout: 5000 }, h)'
    assert short(text) == ["timeout=5", "timeout=30_000", "timeout: 5000"]
    assert short("f(timeout=60); g(timeout=120_000); wait_timeout(3)") == []
