#!/usr/bin/env python3
"""measure.py NAME COMMAND...: run a suite, and print its time and its maximum memory,
with all processes that it started. The line also goes to build/suites/NAME.txt.

Memory is what processes do not share (of files, libraries and shared memory), sampled
every other second; without /proc, only the time is printed.
"""

import contextlib
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROC = Path("/proc")


def tree(pid: int) -> set[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # "pid (name) state ppid": the name may contain any characters.
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry.name))
    found, left = set(), [pid]
    while left:
        found.add(left[-1])
        left += children.get(left.pop(), [])
    return found


def memory(pids: set[int]) -> int:
    """Bytes; processes that end meanwhile are not counted."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            _, resident, shared, *_ = (PROC / str(pid) / "statm").read_text().split()
            pages += int(resident) - int(shared)
    return pages * resource.getpagesize()


def main() -> int:
    name, *command = sys.argv[1:]
    start, most, ended = time.monotonic(), 0, threading.Event()
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def watch() -> None:
        nonlocal most
        while not ended.wait(2):
            most = max(most, memory(tree(child.pid)))

    if PROC.is_dir():
        threading.Thread(target=watch, daemon=True).start()
    try:
        status = child.wait()
    except KeyboardInterrupt:
        status = child.wait()
    ended.set()
    line = f"[suite] {name}: {time.monotonic() - start:.0f} s"
    if most:
        line += f", {most / (1 << 30):.1f} GiB at most"
    print(line, flush=True)
    kept = ROOT / "build" / "suites"
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{name}.txt").open("a") as file:  # for targets with several suites
        file.write(line + "\n")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
