#!/usr/bin/env python3
"""run.py: changes single lines, and looks whether a test notices.

A mutant is a line with one small change, by the rules of universalmutator; each is built and
tested in a folder of its own below build/mutants, and is killed when a test fails, or when it
hangs, crashes, or takes too much. What survives shows what no test looks at. A run that was
ended goes on where it was; what survived is tried again when tests have changed.
"""

import argparse
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import sampling
from c_core import CCore
from js_library import JsLibrary
from limits import EndedError, end_all
from model import BUILD, EQUIVALENT, KILLED, ROOT, SURVIVED, Mutant, Outcome, Part
from py_package import PyPackage
from results import Results, report, write_report

PARTS: dict[str, Callable[[float], Part]] = {
    "c": CCore,
    "py": PyPackage,
    "js": JsLibrary,
}
Tried = list[tuple[Mutant, Outcome]]


def one(part: Part, mutant: Mutant, results: Results) -> Outcome:
    key = mutant.key((ROOT / mutant.file).read_text())
    tests = part.tests_digest()
    if found := results.get(key, tests):
        return found
    start, folder = time.monotonic(), BUILD / "runs" / key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        outcome = part.try_out(mutant, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.tests, outcome.seconds = tests, round(time.monotonic() - start, 1)
    results.put(key, mutant, outcome)
    return outcome


def in_order(
    work: Callable[[Mutant], Outcome], mutants: Iterable[Mutant], workers: int
) -> Iterator[tuple[Mutant, Outcome]]:
    """Several at a time, told in the order of the mutants."""
    left, pending = iter(mutants), deque[tuple[Mutant, Future[Outcome]]]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                for mutant in left:
                    pending.append((mutant, pool.submit(work, mutant)))
                    if len(pending) >= workers:
                        break
                if not pending:
                    return
                mutant, future = pending.popleft()
                yield mutant, future.result()
        finally:
            for _, future in pending:
                future.cancel()


def say(mutant: Mutant, outcome: Outcome) -> None:
    how = f" ({outcome.by})" if outcome.by else ""
    print(f"{mutant.file}:{mutant.line}: {outcome.status}{how}", flush=True)
    if outcome.status == SURVIVED:
        print(f"  - {mutant.before.strip()}")
        for line in mutant.after.splitlines() or [""]:
            print(f"  + {line.strip()}", flush=True)


def try_all(part: Part, mutants: Iterable[Mutant], count: int, workers: int) -> Tried:
    """As many of them as it takes until `count` are killed or survive."""
    results, listed = Results(), sampling.equivalent()

    def work(mutant: Mutant) -> Outcome:
        after = sampling.without_indents(mutant.after)
        if (mutant.file, mutant.line, after) in listed:
            return Outcome(EQUIVALENT, "listed in equivalent.toml")
        return one(part, mutant, results)

    tried: Tried = []
    counted = 0
    for mutant, outcome in in_order(work, mutants, workers):
        tried.append((mutant, outcome))
        counted += outcome.status in (KILLED, SURVIVED)
        if outcome.status in (KILLED, SURVIVED):
            say(mutant, outcome)
        if counted == count:
            break
    return tried


def chosen(part: Part, options: argparse.Namespace) -> tuple[list[Mutant], str]:
    """The mutants in their order, and a sentence on how they were chosen."""
    if options.known:
        return sampling.known(part.name), "The list of tests/mutants/known.toml."
    mutants = [
        mutant
        for file in part.files()
        for mutant in sampling.generated(part.name, part.rules, file)
    ]
    how = f"{options.count} mutants of all lines, SEED={options.seed}."
    if options.changed:
        lines = sampling.changed_lines(options.changed)
        mutants = [it for it in mutants if it.line in lines.get(it.file, ())]
        how = f"{options.count} mutants at most of the lines that changed since {options.changed}."
    return sampling.ordered(mutants, options.seed), how


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--changed", metavar="COMMIT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of tests for a mutant"
    )
    return parser.parse_args()


def end(*_: object) -> None:
    end_all()
    raise KeyboardInterrupt


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    for name in options.part or PARTS:
        part = PARTS[name](options.budget)
        if lacks := part.missing():
            print(f"[skip] mutants of {name}: this machine has no {lacks}")
            continue
        mutants, how = chosen(part, options)
        if not mutants:
            print(f"[mutants] {name}: no line to change")
            continue
        # The repository's says that all JavaScript below it is modules.
        (BUILD / "package.json").write_text("{}\n")
        part.prepare()
        tried = try_all(part, mutants, options.count, options.workers)
        text = report(name, how, tried)
        if not options.changed:
            write_report(name if not options.known else f"{name}-known", text)
        print(text.splitlines()[0].lstrip("# "))


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, EndedError):
        sys.exit(130)
    finally:
        end_all()
