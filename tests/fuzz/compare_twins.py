"""compare_twins.py --seed N --seconds S: the same random input for the parts that this library has in
both languages. Python runs them here, Node beside it (twins/other.mjs). Each difference fails: another
result, one that refuses what the other takes, another message where both have the same words, and
any error that is not for users. twins/listed.toml has those that are known, with the reason.

  compare_twins.py --one JSON   one input, of which the results are printed
"""

import argparse
import gc
import json
import random
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

from twins import archives, devices, files, kernels, shaders

import dlpack_web as dlw

TWINS = Path(__file__).parent / "twins"
#: Of each subject: how often, what makes an input, what Python makes of it.
SUBJECTS: dict[str, tuple[int, Callable[..., Any], Callable[[Any], Any]]] = {
    **shaders.SUBJECTS,
    **kernels.SUBJECTS,
    **devices.SUBJECTS,
    **files.SUBJECTS,
    **archives.SUBJECTS,
}
for twin in sorted(TWINS.parents[2].glob("packages/*/tests/twins/*.py")):
    SUBJECTS |= run_path(str(twin))["SUBJECTS"]
#: Subjects whose messages are the same in both languages.
SAME_WORDS = {"elementwise", "reduction", "fit"}
LISTED = tomllib.loads((TWINS / "listed.toml").read_text("utf-8"))["listed"]
BATCH = 200

type Input = tuple[str, Any]
type Result = dict[str, Any]


class Node:
    """The other language. Batches are sent ahead, so both work at the same time."""

    def __init__(self) -> None:
        command = ["node", TWINS / "other.mjs"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def send(self, inputs: list[Input]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(inputs) + "\n")
        self._process.stdin.flush()

    def results(self) -> list[Result]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Node ended with {self._process.wait()}")
        found: list[Result] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


KINDS = {
    TypeError: "type",
    ValueError: "value",
    IndexError: "value",
    BufferError: "data",
}


def result_of(one: Input) -> Result:
    subject, given = one
    try:
        return {"is": SUBJECTS[subject][2](given)}
    except Exception as error:  # noqa: BLE001 - each is compared
        kind = KINDS.get(type(error), repr(error))
        return {"error": kind, "message": str(error)}


def is_same(subject: str, ours: Result, theirs: Result) -> bool:
    if "is" in ours or "is" in theirs:
        return ours == theirs
    kinds = [ours["error"], theirs["error"]]
    if not set(kinds) <= set(KINDS.values()):
        return False
    if subject == "dtype":  # TypeError in Python, UnsupportedError in JavaScript
        return True
    if subject in SAME_WORDS and plain(ours["message"]) != plain(theirs["message"]):
        return False
    return kinds[0] == kinds[1]


def plain(message: str) -> str:
    """The words, with Python's names for the same things."""
    message = re.sub(
        r"-?\bInfinity\b", lambda found: found[0].replace("Infinity", "inf"), message
    )
    return message.replace("NaN", "nan")


def is_listed(subject: str, given: Any, ours: Result, theirs: Result) -> bool:
    """Whether a difference is in listed.toml. Never one that is an error of ours."""
    if not {ours.get("error"), theirs.get("error")} <= {None, *KINDS.values()}:
        return False
    text, both = json.dumps(given), f"{json.dumps(ours)} {json.dumps(theirs)}"
    return any(
        each["subject"] == subject
        and re.search(each.get("input", ""), text)
        and re.search(each.get("results", ""), both)
        and (not each.get("values") or have_same_values(ours, theirs))
        for each in LISTED
    )


def have_same_values(ours: Result, theirs: Result) -> bool:
    """Whether tensors that both read are the same."""
    if "is" not in ours or "is" not in theirs:
        return True
    read = {
        name: facts for name, *facts in theirs["is"]["found"] if facts[-1] is not None
    }
    return all(
        facts == read.get(name, facts)
        for name, *facts in ours["is"]["found"]
        if facts[-1] is not None
    )


def difference(one: Input, theirs: Result, ours: Result | None = None) -> str | None:
    subject, given = one
    ours = result_of(one) if ours is None else ours
    if is_same(subject, ours, theirs) or is_listed(subject, given, ours, theirs):
        return None
    return f"{subject} of {json.dumps(given)}\nPython: {ours}\nJavaScript: {theirs}"


# --- making a found input smaller -----------------------------------------------------------


def smaller(given: Any) -> Iterator[Any]:
    """Inputs with less: of a text a part, of a list of steps a step."""
    if isinstance(given, str) and len(given) > 4:
        step = 2 if re.fullmatch("([0-9a-f]{2})+", given) else 1
        size = len(given) // 2
        while size >= step:
            size -= size % step
            for at in range(0, len(given), size):
                yield given[:at] + given[at + size :]
            size //= 2
    elif isinstance(given, list) and all(isinstance(each, list) for each in given):
        for i in range(len(given)):
            yield given[:i] + given[i + 1 :]
    elif isinstance(given, dict):
        for key, each in given.items():
            if key in ("pass", "type", "kinds", "identity", "declared", "dtype"):
                continue
            for less in smaller(each):
                yield {**given, key: less}


def shrunk(node: Node, one: Input, seconds: float = 10) -> Input:
    end, go_on = time.monotonic() + seconds, one[0] != "npz"  # less is a damaged one
    while go_on:
        go_on = False
        for less in smaller(one[1]):
            if time.monotonic() > end:
                return one
            node.send([(one[0], less)])
            if difference((one[0], less), node.results()[0]) is not None:
                one, go_on = (one[0], less), True
                break
    return one


# --- all of it ------------------------------------------------------------------------------


def batch_of(chance: random.Random, only: str | None) -> list[Input]:
    names = [name for name in SUBJECTS if only in (None, name)]
    weights = [SUBJECTS[name][0] for name in names]
    chosen = chance.choices(names, weights, k=BATCH)
    return [(name, SUBJECTS[name][1](chance)) for name in chosen]


def compare(seed: int, seconds: float, only: str | None, go_on: bool) -> int:
    chance, node, counts = random.Random(seed), Node(), Counter[str]()
    taken, failed = Counter[str](), 0
    end = time.monotonic() + seconds
    before = dlw.live_tensors()
    while time.monotonic() < end:
        batch = batch_of(chance, only)
        node.send(batch)
        mine = [result_of(one) for one in batch]
        for one, ours, theirs in zip(batch, mine, node.results(), strict=True):
            counts[one[0]] += 1
            taken[one[0]] += "is" in ours
            if difference(one, theirs, ours) is None:
                continue
            failed += 1
            less = shrunk(node, one)
            node.send([less])
            print(difference(less, node.results()[0]), flush=True)
            print("found", json.dumps(less), flush=True)
            if not go_on:
                return 1
    node.close()
    gc.collect()
    assert dlw.live_tensors() == before, "a tensor leaked"
    each = ", ".join(f"{name} {counts[name]} ({taken[name]} taken)" for name in counts)
    print(
        f"done: {counts.total()} inputs, {counts.total() / seconds:.0f} a second: {each}"
    )
    return 1 if failed else 0


def show(text: str) -> int:
    one = tuple(json.loads(text))
    node = Node()
    node.send([one])
    found = difference(one, node.results()[0])
    node.close()
    print(found or "no difference")
    return 0 if found is None else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", choices=SUBJECTS)
    parser.add_argument("--all", action="store_true", help="goes on after a difference")
    parser.add_argument("--one", help="subject and input, as JSON")
    options = parser.parse_args()
    if options.one:
        return show(options.one)
    return compare(options.seed, options.seconds, options.only, options.all)


if __name__ == "__main__":
    sys.exit(main())
