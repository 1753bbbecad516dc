# The rules of tests/wire/rules: the lines of a step are its results. tests/js/wire reads them, too.
import os
import random
import re
import subprocess
from pathlib import Path
from runpy import run_path

import pytest
from player import Player

from dlpack_web_page._wire import receiving, sending

PAGE = Path(__file__).parents[3]
RULES = {}
for path in sorted((PAGE / "tests/wire/rules").glob("*.txt")):
    for rule in path.read_text("utf-8").strip().split("\n\n"):
        title, *steps = re.split(r"\n(?! )", rule)
        RULES[f"{path.stem}: {title.removeprefix('# ')}"] = steps


#: How many tensors and gaps an end keeps, and twice as many. JavaScript plays the rules with these numbers; here,
#: where a frame takes longer, with others.
BOUNDS = {"8192": 16, "16384": 32, "32768": 64}


def test_the_bounds_are_those_of_the_rules():
    assert (receiving._MOST_TENSORS, receiving._MOST_GAPS) == (8192, 16384)


@pytest.mark.parametrize("rule", RULES)
def test_an_end_does_what_the_rule_says(rule, monkeypatch):
    monkeypatch.setattr(receiving, "_MOST_TENSORS", BOUNDS["8192"])
    monkeypatch.setattr(receiving, "_MOST_GAPS", BOUNDS["16384"])
    player = Player()
    for text in RULES[rule]:
        text = re.sub("|".join(BOUNDS), lambda found: f"{BOUNDS[found[0]]}", text)
        line, *more = text.split("\n  ")
        step, *results = re.split(r" → | \| ", line)
        found = player.play(step)
        pattern = re.escape("\n".join(results + more)).replace("…", ".*")
        assert re.fullmatch(pattern, "\n".join(found), re.DOTALL), [step, *found]
    player.play("close")
    assert not player.writes
    assert player.play("state") == ["has nothing; 0 live"]


def test_both_languages_do_the_same(host_python):
    """Random steps, of which `make fuzz` tries more."""
    compare = PAGE.parents[1] / "tests/fuzz/compare_twins.py"
    seconds = int(os.environ.get("WIRE_RUNS", "100")) // 100
    command = [host_python, compare, "--only", "end", "--seed", "1"]
    command += ["--seconds", f"{seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(20))
def test_what_an_end_keeps_is_what_it_counts(seed, monkeypatch):
    """Fewer of each may be kept, so random steps reach the limits."""
    for module, limit, count in [
        (sending, "_MOST_FLYING", 6),
        (sending, "MOST_VERSIONS", 4),
        (receiving, "MOST_VERSIONS", 4),
        (receiving, "_MOST_TENSORS", 4),
        (receiving, "_MOST_GAPS", 4),
        (receiving, "_MOST_ENTRIES", 12),
    ]:
        monkeypatch.setattr(module, limit, count)
    make = run_path(str(PAGE / "tests/twins/ends.py"))["make_end"]
    player = Player()
    for (step,) in make(random.Random(seed)):
        player.play(step)
        check_sending(player.wire._sending)
        check_receiving(player.wire._receiving)


def check_sending(half):
    flights = half._flights.values()
    assert half._bytes == sum(each.last - each.first for each in flights)
    assert len(flights) <= 6 + len([each for each in flights if each.write is None])
    named = {}
    for remote in half._remotes.values():
        named.setdefault(remote.name, []).append(remote)
        assert len(remote._open) == 0 or min(remote._open) == next(iter(remote._open))
    assert half._named == named


def check_receiving(half):
    kept = half._ids
    assert half._held == sum(each.nbytes for each in kept.values()) <= half._limit
    assert half._entries == sum(each.entries for each in kept.values())
    assert len(kept) <= 4
    assert len(half._freed) <= 5
    named = {}
    for id, incoming in kept.items():
        named.setdefault(incoming.name, set()).add(id)
    assert half._named == named
    assert all(id in named[name] for name, id in half._latest.items())
