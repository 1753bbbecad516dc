"""Runs the blocks of a page: IPython, whose output goes to the page."""

import ast
import asyncio
import base64
import importlib
import io
import itertools
import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any


def embed(**_: object) -> None:
    raise OSError("embed() needs a terminal, which a page has not: run blocks")


# IPython imports its terminal for embed() alone, which takes longer than the rest of it.
# Whoever imports IPython.terminal gets it.
TERMINAL = "IPython.terminal.embed"
sys.modules[TERMINAL] = ModuleType(TERMINAL)
sys.modules[TERMINAL].embed = embed  # type: ignore[attr-defined]
importlib.import_module("IPython")
del sys.modules[TERMINAL]

from IPython.core import completer
from IPython.core.completer import provisionalcompleter
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.inputtransformer2 import tr as escapes
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

try:
    import dlpack_web as dlw
except ImportError:  # the worker has reported the reason
    dlw = None

# Set by worker.eval.mjs: functions that send a message to the page, as JSON, and a
# picture; one that waits a moment while the page has much to show; and the hosts that
# the policy blocked for Python.
post: Callable[[str], None] = print
send_picture: Callable[[int, Any], None] = print
is_ahead: Callable[[], bool] = bool
refused: list[str] = []
begins = False  # a cell, which does not run yet
stopped = False  # it was interrupted before that

PIP_OPTIONS = {"-q", "-qq", "--quiet", "-U", "--upgrade"}  # which have no effect here
# IPython's call of a magic that runs Python: its last argument.
MAGIC = re.compile(
    r"^(\s*)get_ipython\(\)\.run_(?:line_magic\('(?:time|timeit|prun)'|cell_magic\(.*)"
    r", ('.*'|\".*\")\)$",
    re.MULTILINE,
)
SLICE_S = 0.02
STEP = 1 << 16  # characters of a stream in one message
CONFIG = Config()
CONFIG.HistoryManager.enabled = False
CONFIG.InteractiveShell.colors = "nocolor"  # none of its themes fits light and dark
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


def send(kind: str, **content: Any) -> None:
    if kind != "stream":  # keeps outputs in order
        sys.stdout.flush()
        sys.stderr.flush()
    message = {"type": kind} | content
    try:
        text = json.dumps(message, default=_as_text, allow_nan=False)
    except ValueError:  # JSON has no NaN: its name
        loose = json.dumps(message, default=_as_text)
        text = json.dumps(json.loads(loose, parse_constant=str))
    while is_ahead():
        _check_signals()
    post(text)


def _as_text(value: object) -> str:
    """Images are bytes here, and base64 in notebooks; metadata may be anything."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


class Stream(io.TextIOBase):
    """stdout or stderr: whole lines go to the page at once, the rest at a flush; stdin,
    which a page has not."""

    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self.stream, self.waiting = name, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.waiting += text
        if "\n" in text or len(self.waiting) > STEP:
            self.flush()
        return len(text)

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, ""
        for start in range(0, len(waiting), STEP):
            send("stream", name=self.stream, text=waiting[start : start + STEP])

    def readline(self, *_: object) -> Any:
        """Called by input()."""
        raise StdinNotImplementedError(
            "a block cannot ask for input: assign the value in the block, or press Open, "
            "since JupyterLite can ask"
        )

    read = readline


class Publisher(DisplayPublisher):
    """Called by display(...)."""

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        *,
        transient: Any = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        kind = "update" if update else "display"
        name = (transient or {}).get("display_id")
        send(kind, data=data, metadata=metadata or {}, display_id=name)

    def clear_output(self, wait: bool = False) -> None:
        send("clear", wait=wait)


class Hook(DisplayHook):
    """Displays the value of a cell's last expression."""

    def write_output_prompt(self) -> None:
        """The page has its own."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        send("result", data=format_dict, metadata=md_dict or {})


class Shell(InteractiveShell):
    """IPython for the page."""

    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)
    task: asyncio.Task[Any] | None = None
    # Pyodide calls it for errors that pass through JavaScript; IPython's shows those
    # that the block catches, too.
    excepthook = staticmethod(lambda *_: None)

    def ask_exit(self) -> None:
        """quit() and exit(): the page ends Python."""
        send("quit")

    def enable_matplotlib(self, gui: str | None = None) -> tuple[str, str]:
        """%matplotlib inline is what the page has anyway."""
        if gui not in (None, "auto", "inline", "agg"):
            raise UsageError(
                f"%matplotlib {gui} needs a window or widgets: figures are images on this "
                "page. Use %matplotlib inline, or leave the line out"
            )
        return "inline", "inline"

    def system(self, command: str) -> None:
        """!command"""
        raise UsageError(f"{command}: a browser has no other programs, use Python")

    def getoutput(self, command: str, split: bool = True, depth: int = 0) -> Any:
        """x = !command"""
        return self.system(command)

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        name, text = etype.__name__, str(evalue)
        if text == f"No module named {getattr(evalue, 'name', None)!r}":
            module = evalue.name.partition(".")[0]
            if module not in sys.modules:
                stb = [*stb, f"To install a package: %pip install {module}"]
        if etype is asyncio.CancelledError:
            name, text, stb = "KeyboardInterrupt", "the block was interrupted", []
        elif etype is KeyboardInterrupt:
            text = text or "the block was interrupted"
        send("error", ename=name, evalue=text, traceback=stb)


async def execute(code: str) -> bool:
    """Run a block; its output goes to the page. True unless it raised."""
    global begins
    task, ok = asyncio.current_task(), False
    count = shell.execution_count
    send("start", count=count)
    try:
        shell.task, begins = task, False
        if stopped:
            raise KeyboardInterrupt
        result = await shell.run_cell_async(
            code, store_history=True, transformed_cell=shell.transform_cell(code)
        )
        shell.events.trigger("post_execute")  # figures are shown here
        shell.events.trigger("post_run_cell", result)
        ok = bool(result.success)
    except KeyboardInterrupt as error:  # outside the cell's own code
        shell.task = None
        shell._showtraceback(KeyboardInterrupt, error, [])
    finally:
        shell.task = None
        task.uncancel()
        sys.stdout.flush()
        sys.stderr.flush()
    return ok


def interrupt() -> bool:
    """Stops a cell that does not run yet, cancels one that awaits something; False if it
    runs or waits otherwise."""
    global stopped
    stopped = begins
    if shell.task is None or shell.task._fut_waiter is None:
        return shell.task is None
    shell.task.cancel()
    return True


def on_signal(_number: int, _frame: object) -> None:
    """SIGINT: raises in a cell that runs, stops one that does not run yet. In the event
    loop's own code, an exception and the wake-up of the cell would be lost; there the cell
    is cancelled, as by asyncio.Runner. A cell that has ended needs nothing."""
    global stopped
    if begins:
        stopped = True
    elif shell.task is not None:
        if asyncio.current_task() is shell.task:
            raise KeyboardInterrupt
        shell.task.cancel()


def complete(code: str, position: int) -> list[dict[str, Any]]:
    """Completions at a position of a cell: text, and where it starts."""
    if not completer.JEDI_INSTALLED:
        completer.jedi = importlib.import_module("jedi")
        completer.jedi.settings.case_insensitive_completion = False
        completer.JEDI_INSTALLED = shell.Completer.use_jedi = True
    with provisionalcompleter():
        found = list(shell.Completer.completions(code, position))
    return [
        {"text": each.text, "start": each.start, "type": each.type}
        for each in found[:100]
    ]


def imports(code: str) -> str:
    """A cell in plain Python, in which Pyodide finds what the cell imports."""
    return MAGIC.sub(
        lambda match: match[1] + ast.literal_eval(match[2]), shell.transform_cell(code)
    )


def _escape(sign: str) -> Callable[[str], str]:
    """IPython's translation of a line that begins with the sign, but for `%pip install`:
    micropip has to be awaited."""
    translate = escapes[sign]

    def instead(line: str) -> str:
        if match := re.match(r"pip install +(.*)", line):
            return f"await __import__('shell').install({match[1]!r})"
        return translate(line)

    return instead


async def install(line: str) -> None:
    """The output of `%pip install`; an error names the host that the policy blocks."""
    import pyodide_js

    await pyodide_js.loadPackage("micropip")
    import micropip

    words = shlex.split(line, comments=True)
    names = [word for word in words if word not in PIP_OPTIONS]
    options = [word for word in names if word.startswith("-")]
    if options:
        raise ValueError(
            f"%pip install does not support {options[0]} here: pass names, versions "
            "(name==1.0) or addresses of wheels"
        )
    refused.clear()
    try:
        await micropip.install(names)
    except Exception as error:
        await asyncio.sleep(0.1)  # the policy's report arrives a little later
        if not refused:
            raise
        raise RuntimeError(
            f"{' '.join(names)} would come from {refused[0]}, and this site allows no "
            "requests to other hosts. Its owner can allow them with `make serve OUTSIDE=1` "
            "or `python web/serve.py --outside`; or put a wheel on this site and install its "
            "address"
        ) from error


# --- pictures -------------------------------------------------------------------------

PICTURE = "application/vnd.dlpack-web.picture+json"
_pictures = itertools.count(1)
_canvases: dict[str, Any] = {}  # by device: a canvas has a context for only one


def show_tensor(tensor: Any, **_: object) -> dict[str, Any]:
    """A Tensor as the page shows it: an image on the GPU is drawn there, in full
    size."""
    if not _is_drawable(tensor):
        shown: dict[str, Any] = tensor._repr_mimebundle_()
        return shown
    number = next(_pictures)
    _draw(tensor, number)
    height, width, _channels = tensor.shape
    facts = {"number": number, "width": width, "height": height}
    return {"text/plain": repr(tensor), PICTURE: facts}


def html_of_tensor(tensor: Any) -> str | None:
    """None for drawn tensors: a thumbnail would read them back."""
    return None if _is_drawable(tensor) else tensor._repr_html_()


def _is_drawable(tensor: Any) -> bool:
    try:
        shape, on_gpu = tensor.shape, not tensor.device.is_host
    except dlw.ReleasedError:
        return False
    image = len(shape) == 3 and min(shape[:2]) >= 8 and shape[2] in (1, 3, 4)
    return image and on_gpu and tensor.dtype in ("uint8", "float32")


def _draw(tensor: Any, number: int) -> None:
    """Draws its current content. It waits if Python can block, or a loop could run ahead
    of the GPU."""
    import js
    from pyodide.ffi import can_run_sync, run_sync

    from dlpack_web._backends import javascript

    name = str(tensor.device)
    canvas = _canvases.get(name) or js.OffscreenCanvas.new(1, 1)
    _canvases[name] = canvas
    drawn = javascript.invoke(
        javascript.calls().images.toCanvas, javascript.site(), id(tensor), canvas
    )
    if can_run_sync():
        run_sync(javascript.finish(drawn))
    else:
        drawing = asyncio.ensure_future(javascript.finish(drawn))
        drawing.add_done_callback(_drawn)
    send_picture(number, canvas.transferToImageBitmap())


def _drawn(drawing: "asyncio.Future[Any]") -> None:
    if not drawing.cancelled() and (error := drawing.exception()):
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


# --- waiting --------------------------------------------------------------------------

_sleep = time.sleep


def sleep(seconds: float, /) -> None:
    """Like time.sleep(), but can be interrupted."""
    if not seconds > SLICE_S:
        return _sleep(seconds)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _sleep(min(left, SLICE_S))
        _check_signals()
    return None


def _check_signals() -> None:
    for _ in range(100):  # Python checks for signals every so many steps
        pass


escapes |= {sign: _escape(sign) for sign in "%!"}
sys.stdout, sys.stderr, sys.stdin = map(Stream, ("stdout", "stderr", "stdin"))
time.sleep = sleep
shell = Shell.instance(config=CONFIG)
if dlw:
    formats = shell.display_formatter
    formats.mimebundle_formatter.for_type(dlw.Tensor, show_tensor)
    formats.formatters["text/html"].for_type(dlw.Tensor, html_of_tensor)
signal.signal(signal.SIGINT, on_signal)
