"""Runs the cells of the notebook page: IPython, whose output goes to the page."""

import asyncio
import base64
import builtins
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from IPython.core.completer import provisionalcompleter
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

try:
    import dlpack_web as dlw
except ImportError:  # the worker has said why
    dlw = None

# Set by worker.eval.mjs: sends a message to the page, as JSON.
post: Callable[[str], None] = print

PIP = re.compile(r"^(\s*)[%!]pip install +(.*)")
CONFIG = Config()
CONFIG.HistoryManager.enabled = False
CONFIG.InteractiveShell.colors = "nocolor"  # no theme of it fits light and dark
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


def send(kind: str, **content: Any) -> None:
    if kind != "stream":  # outputs stay in their order
        sys.stdout.flush()
        sys.stderr.flush()
    post(json.dumps({"type": kind} | content, default=_as_text))


def _as_text(value: object) -> str:
    """Images come as bytes, and are base64 in notebooks; metadata may be anything."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


class Stream(io.TextIOBase):
    """stdout or stderr: whole lines go to the page at once, the rest when flushed."""

    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self.stream, self.waiting = name, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.waiting += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self.waiting:
            send("stream", name=self.stream, text=self.waiting)
            self.waiting = ""


class Publisher(DisplayPublisher):
    """What display(...) calls."""

    def publish(self, data: Any, metadata: Any = None, **_: Any) -> None:
        send("display", data=data, metadata=metadata or {})

    def clear_output(self, wait: bool = False) -> None:
        send("clear", wait=wait)


class Hook(DisplayHook):
    """What a cell's last expression goes through."""

    def write_output_prompt(self) -> None:
        """The page has its own."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        send("result", data=format_dict, metadata=md_dict or {})


class Shell(InteractiveShell):
    """IPython as the page needs it."""

    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)
    task: asyncio.Task[Any] | None = None

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        name, text = etype.__name__, str(evalue)
        if etype is asyncio.CancelledError:
            name, text, stb = "KeyboardInterrupt", "the cell was interrupted", []
        elif etype is KeyboardInterrupt:
            text = text or "the cell was interrupted"
        send("error", ename=name, evalue=text, traceback=stb)


def no_input(*_: object) -> None:
    raise RuntimeError("this notebook has no input(): set a variable in a cell")


async def execute(code: str) -> bool:
    """Run a cell; its output goes to the page. True where nothing was raised."""
    before = dlw and dlw.inspect()
    shell.task = asyncio.current_task()
    count = shell.execution_count
    send("start", count=count)
    try:
        result = await shell.run_cell_async(
            code,
            store_history=True,
            transformed_cell=shell.transform_cell(_pip(code)),
        )
    finally:
        shell.task.uncancel()
        shell.task = None
        sys.stdout.flush()
        sys.stderr.flush()
    if dlw:
        now = dlw.inspect()
        new = now.since(before)
        left = [str(row) for row in new.tensors]
        if new.elsewhere:
            left.append(f"{new.elsewhere} held by arrays, capsules and JavaScript")
        send("memory", html=now._repr_html_(), left=left, count=count)
    return bool(result.success)


def interrupt() -> bool:
    """Ends a cell that awaits something; False if it runs or waits otherwise."""
    if shell.task is None or shell.task._fut_waiter is None:
        return shell.task is None
    shell.task.cancel()
    return True


def on_signal(_number: int, _frame: object) -> None:
    """SIGINT: raises in a cell that runs. In the loop's own code an exception would be lost,
    and with it what wakes the cell: that is cancelled, as asyncio.Runner does it."""
    task = shell.task
    if task is None or asyncio.current_task() is task:
        raise KeyboardInterrupt
    task.cancel()


def complete(code: str, position: int) -> list[dict[str, Any]]:
    """What may stand at a position of a cell: text, and where it begins."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(code, position))
    return [
        {"text": each.text, "start": each.start, "type": each.type}
        for each in found[:100]
    ]


def _pip(code: str) -> str:
    """`%pip install` as micropip does it, which can be awaited."""

    def instead(match: re.Match[str]) -> str:
        names = [word for word in match[2].split() if not word.startswith("-")]
        return f"{match[1]}import micropip; await micropip.install({names!r})"

    return "\n".join(PIP.sub(instead, line) for line in code.split("\n"))


sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")  # type: ignore[assignment]
builtins.input = no_input  # type: ignore[assignment]
shell = Shell.instance(config=CONFIG)
signal.signal(signal.SIGINT, on_signal)
