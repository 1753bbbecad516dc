"""Runs node tests in a Python beside this one, which is started anew where it dies or hangs."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
LIMIT_S = 20


def run(
    python: Path, folder: Path, provider: str, names: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Each name with what became of it."""
    worker: Worker | None = None
    try:
        for name in names:
            worker = worker or Worker(python, folder, provider)
            outcome = worker.ask(name)
            yield name, outcome
            if outcome[0] in {"died", "hung"}:
                worker.end()
                worker = None
    finally:
        if worker:
            worker.end()


class Worker:
    """node_case.py, as its own process."""

    def __init__(self, python: Path, folder: Path, provider: str) -> None:
        self.process = subprocess.Popen(
            [str(python), str(HERE / "node_case.py"), str(folder), provider],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[str] = self.process.stdin
        self.lines: queue.Queue[str] = queue.Queue()
        # A read that can be given up: of a pipe there is none on every system.
        self.reader = threading.Thread(
            target=self.read, args=[self.process.stdout], daemon=True
        )
        self.reader.start()

    def read(self, stdout: IO[str]) -> None:
        with stdout:
            for line in stdout:
                self.lines.put(line)
        self.lines.put("")

    def ask(self, name: str) -> list[str]:
        try:
            self.stdin.write(f"{name}\n")
            self.stdin.flush()
            line = self.lines.get(timeout=LIMIT_S)
        except queue.Empty:
            return ["hung", f"no answer within {LIMIT_S} s"]
        except OSError:
            line = ""
        if not line:
            try:  # it may have closed its output and go on
                return ["died", f"exit status {self.process.wait(LIMIT_S)}"]
            except subprocess.TimeoutExpired:
                return ["hung", f"no answer within {LIMIT_S} s"]
        found: list[str] = json.loads(line)
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join()
        with suppress(OSError):  # of what it did not read
            self.stdin.close()
