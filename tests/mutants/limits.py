"""Runs commands that may hang, crash, or take all memory or disk, and ends what they started."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from model import ROOT

GIB = 1 << 30
FILE_BYTES = 1 * GIB
TIMED_OUT = "time limit"
# What tests import of others; what an environment lacks is left out.
IMPORTED = (
    "numpy",
    "pytest",
    "hypothesis",
    "hypothesis.strategies",
    "ml_dtypes",
    "tvm_ffi",
)

_running: set[int] = set()  # process groups
_lock = threading.RLock()  # a signal may come while it is held
_ended = threading.Event()


class EndedError(Exception):
    """Everything was ended: how this command ended says nothing."""


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def end_all() -> None:
    """Ends all commands; none starts any more."""
    _ended.set()
    with _lock:
        for group in _running:
            _kill(group)


@contextlib.contextmanager
def _group(child: subprocess.Popen[bytes]) -> Iterator[None]:
    with _lock:
        _running.add(child.pid)
    if _ended.is_set():  # end_all() may not have seen it
        _kill(child.pid)
    try:
        yield
    finally:
        _kill(child.pid)  # what it started and left
        child.wait()
        with _lock:
            _running.discard(child.pid)


def run(
    command: Sequence[str | Path],
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path,
    address_bytes: int | None = 12 * GIB,
) -> int | str:
    """The exit status, negative for a signal, or TIMED_OUT. Output goes to `log`, which is
    bounded like every file. `address_bytes`: None where a sanitizer reserves terabytes."""

    limits = f"ulimit -c 0; ulimit -f {FILE_BYTES // 1024};"
    if address_bytes:
        limits += f" ulimit -v {address_bytes // 1024};"
    with log.open("wb") as output:
        child = subprocess.Popen(
            ["bash", "-c", f'{limits} exec "$@"', "limited", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
        )
        with _group(child):
            try:
                status: int | str = child.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                status = TIMED_OUT
    if _ended.is_set():
        raise EndedError
    return status


class Warm:
    """A process of warm.py, for one run at a time."""

    def __init__(self, python: Path, env: Mapping[str, str]):
        command = [python, Path(__file__).with_name("warm.py"), *IMPORTED]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(env),
            cwd=ROOT,
            start_new_session=True,
            text=True,
        )
        with _lock:
            _running.add(self.process.pid)

    def run(
        self,
        arguments: Sequence[str],
        seconds: float,
        *,
        path: Path,
        env: Mapping[str, str],
        log: Path,
        address_bytes: int | None,
    ) -> int | str:
        """As run(), for pytest with these arguments."""
        limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": FILE_BYTES}
        if address_bytes:
            limits["RLIMIT_AS"] = address_bytes
        request = {
            "path": str(path),
            "arguments": list(arguments),
            "env": dict(env),
            "log": str(log),
            "limits": limits,
        }
        started, answered = self.process.stdin, self.process.stdout
        assert started is not None
        assert answered is not None
        try:
            started.write(json.dumps(request) + "\n")
            started.flush()
            group = int(answered.readline())
        except (OSError, ValueError):
            if _ended.is_set():
                raise EndedError from None
            raise
        with _lock:
            _running.add(group)
        if _ended.is_set():
            _kill(group)
        late = threading.Event()
        timer = threading.Timer(seconds, lambda: (late.set(), _kill(group)))
        timer.start()
        try:
            status = answered.readline()
        finally:
            timer.cancel()
            _kill(group)  # what it started and left
            with _lock:
                _running.discard(group)
        if _ended.is_set():
            raise EndedError
        return TIMED_OUT if late.is_set() else int(status)

    def close(self) -> None:
        with self.process:  # without input, it ends
            pass
        with _lock:
            _running.discard(self.process.pid)


class Asked:
    """A command that answers each line on its stdin with one on its stdout. It is started again
    when it took too long, or has ended."""

    def __init__(
        self, command: Sequence[str | Path], env: Mapping[str, str], log: Path
    ):
        self.command, self.env, self.log = command, env, log
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self.env),
                cwd=ROOT,
                start_new_session=True,
                text=True,
            )
        with _lock:
            _running.add(process.pid)
        return process

    def ask(self, line: str, seconds: float) -> str:
        """Its answer, or TIMED_OUT, or "" when it ended without one."""
        if self.process is None:
            self.process = self.start()
        if _ended.is_set():  # end_all() may not have seen it
            _kill(self.process.pid)
        asked, answered = self.process.stdin, self.process.stdout
        assert asked is not None
        assert answered is not None
        late = threading.Event()
        group = self.process.pid
        timer = threading.Timer(seconds, lambda: (late.set(), _kill(group)))
        timer.start()
        try:
            asked.write(line + "\n")
            asked.flush()
            answer = answered.readline().strip()
        except OSError:  # it has ended
            answer = ""
        finally:
            timer.cancel()
        if _ended.is_set():
            raise EndedError
        if not answer:
            self.close()
        return TIMED_OUT if late.is_set() else answer

    def close(self) -> None:
        if self.process is None:
            return
        _kill(self.process.pid)
        with contextlib.suppress(OSError), self.process:
            pass
        with _lock:
            _running.discard(self.process.pid)
        self.process = None
