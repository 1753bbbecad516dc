"""Ends calls of Playwright that a browser never answers, and reports the reason.

Playwright waits without a limit in `evaluate`, and for a renderer that crashed while a page opened
or closed. A thread looks for Chromium's crash reports and for calls that take too long. It writes
to stderr and to build/hangs, and kills the browser: the calls then raise Playwright's errors.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.request import urlopen

from playwright._impl._sync_base import SyncBase

FOLDER = Path(__file__).resolve().parents[2] / "build" / "hangs"
ANSWER_S = 5
REPORTS: list[tuple[str, str]] = []  # the running test, and the reason
EXCEPTION, THREADS, MODULES = 6, 3, 4  # streams of a minidump
# Asked of pages and workers. The harness of the tests has Pyodide in `harness.context`.
QUESTIONS = (
    "`heap: ${globalThis.performance.memory?.usedJSHeapSize}`",
    "new Promise((resolve) => setTimeout(resolve, 0, 'timers work'))",
    """globalThis.harness?.context.pyodide.runPython(`
import asyncio, os, sys, traceback
frames = map(traceback.format_stack, sys._current_frames().values())
tasks = map(repr, asyncio.all_tasks(asyncio.get_event_loop()))
"\\\\n".join([os.environ.get("PYTEST_CURRENT_TEST", ""), *sum(frames, []), *tasks])`)""",
)


def describe(dump: bytes) -> str:
    """Which process of Chromium wrote a minidump, its signal, and its address."""

    def read(form: str, at: int) -> tuple[Any, ...]:
        return struct.unpack_from(f"<{form}", dump, at)

    def rows(stream: int, size: int, form: str) -> Iterator[tuple[Any, ...]]:
        for i in range(*read("I", at[stream])):
            yield read(form, at[stream] + 4 + size * i)

    def name(place: int) -> str:
        (size,) = read("I", place)
        return dump[place + 4 : place + 4 + size].decode("utf-16-le")

    def where(value: int) -> str:
        for begin, size, what in places:
            if 0 <= value - begin < size:
                return f"0x{value:x}, 0x{value - begin:x} within {what}"
            if value - begin == size:
                return f"0x{value:x}, at the end of {what}"
        return f"0x{value:x}, in no stack or module"

    _, count, start = read("QII", 0)
    parts = [read("III", start + 12 * i) for i in range(count)]
    at = {kind: place for kind, _, place in parts}
    thread, code, address, context = read("I4xI12xQ132xI", at[EXCEPTION])
    (counter,) = read("Q", context + 0xF8)  # of x86-64
    places = [
        (begin, size, f"the stack of thread {number}")
        for number, begin, size in rows(THREADS, 48, "I20xQI")
    ]
    places += [
        (begin, size, name(at)) for begin, size, at in rows(MODULES, 108, "QI8xI")
    ]
    kind = re.search(rb"ptype\0+.\0{3}([\w-]+)", dump, re.DOTALL)
    with suppress(ValueError):  # Chromium's own codes are no signals
        code = signal.Signals(code).name
    return (
        f"{kind[1].decode() if kind else 'browser'} crashed: {code} at {where(address)}; "
        f"thread {thread} ran {where(counter)}"
    )


class DevTools:
    """Asks a browser, beside Playwright, what its pages and workers do."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.last = connection, 0
        self.events: list[dict[str, Any]] = []

    def receive(self) -> dict[str, Any]:
        self.events.append(json.loads(self.connection.recv(timeout=ANSWER_S)))
        return self.events[-1]

    def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        self.last += 1
        order = {"id": self.last, "method": method, "params": params}
        of = {"sessionId": session} if session else {}
        self.connection.send(json.dumps(order | of))
        while self.receive().get("id") != self.last:
            pass
        return self.events[-1].get("result", self.events[-1])

    def report(self) -> Iterator[str]:
        for target in self.call("Target.getTargets")["targetInfos"]:
            if target["type"] == "page":
                self.call(
                    "Target.attachToTarget", targetId=target["targetId"], flatten=True
                )
        for event in self.events:  # grows: pages attach to their workers
            if event.get("method") == "Target.attachedToTarget":
                session, target = (
                    event["params"]["sessionId"],
                    event["params"]["targetInfo"],
                )
                yield f"--- {target['type']} {target['url']}"
                for step in (self.values, self.promises, self.stack):
                    try:
                        yield from step(session)
                    except (TimeoutError, KeyError) as error:
                        yield f"{step.__name__}: no answer ({error!r})"

    def values(self, session: str) -> Iterator[str]:
        options = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
        self.call("Target.setAutoAttach", session, **options)
        options = {"awaitPromise": True, "returnByValue": True}
        for question in QUESTIONS:
            found = self.call(
                "Runtime.evaluate", session, expression=question, **options
            )
            yield str(found["result"].get("value", found["result"].get("description")))

    def promises(self, session: str) -> Iterator[str]:
        kind = self.call("Runtime.evaluate", session, expression="Promise.prototype")
        of = {"prototypeObjectId": kind["result"]["objectId"]}
        found = self.call("Runtime.queryObjects", session, **of)["objects"]["objectId"]
        options = {"objectId": found, "ownProperties": True, "generatePreview": True}
        listed = self.call("Runtime.getProperties", session, **options)["result"]
        states = Counter(
            part["value"]
            for each in listed
            for part in each.get("value", {}).get("preview", {}).get("properties", [])
            if part["name"] == "[[PromiseState]]"
        )
        yield f"promises: {dict(states)}"

    def stack(self, session: str) -> Iterator[str]:
        """No answer where nothing runs."""
        self.call("Debugger.enable", session)
        self.call("Debugger.pause", session)
        while self.receive().get("method") != "Debugger.paused":
            pass
        for frame in self.events[-1]["params"]["callFrames"]:
            yield f"  {frame['functionName']} {frame['url']}:{frame['location']['lineNumber']}"
        self.call("Debugger.resume", session)


class Guard:
    """Watches a browser, which it may kill."""

    def __init__(self, patient_s: float) -> None:
        self.patient_s = patient_s
        self._dumps = Path(tempfile.mkdtemp(prefix="crashes-"))
        # Of the browser: Chromium's name for the folder of its crash reports.
        self.environment = {"BREAKPAD_DUMP_LOCATION": str(self._dumps)}
        self._seen: set[Path] = set()
        self._waits: dict[int, float] = {}  # when calls of Playwright began
        self._crash = ""  # as Playwright reports it
        self._killed, self._lock = False, Lock()
        self._end, self._thread = Event(), Thread(target=self._watch, daemon=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def __enter__(self) -> Self:
        original = self._original = SyncBase._sync

        def bounded(playwrights: SyncBase, call: Any) -> Any:
            self._waits[id(call)] = time.monotonic()
            try:
                return original(playwrights, call)
            finally:
                del self._waits[id(call)]

        SyncBase._sync = bounded
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        SyncBase._sync = self._original
        self._end.set()
        self._thread.join()
        self._look()
        shutil.rmtree(self._dumps)

    def has_killed(self) -> bool:
        """Whether it has killed the browser, since the last call."""
        with self._lock:
            killed, self._killed = self._killed, False
        return killed

    def crashed(self, page: Any) -> None:
        """A listener for "crash" of pages."""
        self._crash = f"renderer crashed: that of {page.url}"

    def _watch(self) -> None:
        while not self._end.wait(1):
            late = time.monotonic() - min(list(self._waits.values()), default=math.inf)
            if self._look():
                self._kill()
            elif late > self.patient_s:
                self._tell(f"no answer in {late:.0f} s", self._ask())
                self._kill()

    def _look(self) -> bool:
        """Reports crashes; whether there was one."""
        if self._crash:
            time.sleep(2)  # Chromium's report says more
        found = set(self._dumps.glob("pending/*.dmp")) - self._seen
        self._seen |= found
        reasons = [describe(path.read_bytes()) for path in found] or [self._crash]
        self._crash = ""
        for reason in filter(None, reasons):
            self._tell(reason)
        for path in found:
            shutil.copy(path, FOLDER)
        return any(reasons)

    def _tell(self, reason: str, more: str = "") -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", " ".join(sys.argv))
        REPORTS.append((test, reason))
        FOLDER.mkdir(parents=True, exist_ok=True)
        text = f"[browser] {test}: {reason}\n{more}"
        with (FOLDER / "reports.txt").open("a") as file:
            file.write(text)
        print(text, end="", file=sys.stderr, flush=True)

    def _ask(self) -> str:
        """What processes, pages and workers do."""
        from websockets.sync.client import connect

        lines = [*self._processes().values()]
        try:
            address = f"http://127.0.0.1:{self.port}/json/version"
            with urlopen(address, timeout=ANSWER_S) as answer:
                url = json.load(answer)["webSocketDebuggerUrl"]
            with connect(url, max_size=None, open_timeout=ANSWER_S) as connection:
                lines.extend(DevTools(connection).report())
        except Exception as error:  # noqa: BLE001, it tells why something is broken
            lines.append(f"no DevTools: {error!r}")
        return "".join(f"  {line}\n" for line in lines)

    def _processes(self) -> dict[int, str]:
        """Of the browser, as ps shows them with their memory."""
        order = ["ps", "-eo", "pid=,ppid=,stat=,rss=,args="]
        listed = subprocess.run(order, capture_output=True, text=True, check=True)
        found: dict[int, str] = {}
        for line in listed.stdout.splitlines():  # parents first
            pid, parent, *_ = line.split()
            with suppress(OSError):
                environment = Path("/proc", pid, "environ").read_bytes()
                if int(parent) in found or str(self._dumps).encode() in environment:
                    found[int(pid)] = line[:200]
        return found

    def _kill(self) -> None:
        with self._lock:
            for pid in self._processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._crash, self._killed = "", True
