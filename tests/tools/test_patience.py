"""Limits of tests are guards against what never comes: none is so short that a busy machine
fails it."""

import re

import pytest
from quick import ROOT, git

LIMIT = re.compile(r"\btimeout(?:_s|Ms)?\s*[=:]\s*(\d[\d_]*)\b")
LEAST_S = 60
# Of what never ends, in tests whose subject is a limit: whatever else they do must come in time.
LEAST_OF_LIMITS_S = 2
FILES = [
    name
    for name in git("ls-files", "tests")
    if name.endswith((".py", ".mjs")) and (ROOT / name).is_file()
]
# Whose clock is a model's.
MODELS = {"tests/js/wire/model.test.mjs", "tests/native/wire/test_model.py"}
# Whose subject is a limit.
OF_LIMITS = {
    "tests/js/conformance/conformance.test.mjs",
    "tests/js/conformance/conformance_consumers.mjs",
    "tests/js/conformance/conformance_producers.mjs",
    "tests/js/conformance/stranger.test.mjs",
}


def short(text: str, least_s: float = LEAST_S) -> list[str]:
    """Limits of less than that; numbers from 1000 on are milliseconds."""
    found = []
    for match in LIMIT.finditer(text):
        number = int(match[1].replace("_", ""))
        in_ms = number >= 1000 or "Ms" in match[0]
        if number / (1000 if in_ms else 1) < least_s:
            found.append(match[0])
    return found


@pytest.mark.parametrize(
    "name", sorted({*FILES} - MODELS - {"tests/tools/test_patience.py"})
)
def test_no_limit_is_short(name):
    least = LEAST_OF_LIMITS_S if name in OF_LIMITS else LEAST_S
    assert short((ROOT / name).read_text("utf-8"), least) == []


def test_short_limits_are_found():
    text = 'f(timeout=5); g(timeout=30_000); test("x", { timeout: 5000 }, h)'
    assert short(text) == ["timeout=5", "timeout=30_000", "timeout: 5000"]
    assert short("f(timeout=60); g(timeout=120_000); wait_timeout(3)") == []
    assert short("{ timeoutMs: 100 }; { timeoutMs: 2000 }", 2) == ["timeoutMs: 100"]
