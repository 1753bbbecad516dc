"""Python for the live page: the reader's program, for every frame.

A program is a Python file with a function `frame(image, result)`. Both are tensors of
float32 on the GPU, of shape (height, width, 4): it launches kernels that read the first
and write the second. It can import `slider` and `onnx` from the module `live`. In a page
without WebGPU both are NumPy arrays of uint8.

A program with an error never replaces one that works, and of several that are loading the
newest counts.
"""

import ast
import asyncio
import inspect
import sys
import time
import traceback
import types

import numpy as np
import page
from pyodide.code import eval_code_async

import dlpack_web as dlw

NAME = "program.py"  # the reader's text, in tracebacks
# What the reader's code may raise: sys.exit(), too.
ERRORS = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)
PATIENCE_S = 3  # for Python code of the reader that does not end
FRAME_S, START_S = 10, 60  # for a frame, and a program, that waits for something


class Slider:
    """A number that the reader moves with a slider."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def value(self) -> float:
        return page.value(self._name)


def slider(name: str, low: float, high: float, start: float) -> Slider:
    """A slider under the picture, which keeps its place when the program changes."""
    if not low <= start <= high:
        raise ValueError(f"slider {name!r}: {start} is not within {low} to {high}")
    page.slider(name, low, high, start)
    return Slider(name)


async def onnx(path: str):
    """A network that takes tensors by name and resolves to its output, all on the GPU."""
    ort = await page.ort()
    adapter = await dlw.adapter("ort", ort)
    await adapter.use_device("webgpu")
    session = await page.session(path)

    async def run(**tensors: dlw.Tensor) -> dlw.Tensor:
        feeds = {name: adapter.to_js(t, copy=False) for name, t in tensors.items()}
        output = await page.infer(session, feeds)
        scores = adapter.from_js(output)
        for each in (*feeds.values(), output):
            each.dispose()
        return scores

    return run


live = types.ModuleType("live")
live.slider, live.onnx = slider, onnx
sys.modules["live"] = live


class BrokenError(Exception):
    """A program with an error; `line` in it, from 1, if known."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class Program:
    """The definitions of a reader's text, after running it."""

    def __init__(self, text: str, names: dict) -> None:
        self.text = text
        self.frame = names.get("frame")
        if not callable(self.frame):
            raise BrokenError(
                "the program has no function frame(image, result): the page calls it for "
                "every frame",
                None,
            )

    async def __call__(self, image: dlw.Tensor, result: dlw.Tensor) -> None:
        with patience():
            found = self.frame(image, result)
        if inspect.iscoroutine(found):
            await within(FRAME_S, found)


async def compiled(text: str, device: dlw.Device | None) -> Program:
    """The program in a text, with its kernels compiled; BrokenError."""
    names = {"__name__": "program"}
    try:
        await within(START_S, eval_code_async(text, names, filename=NAME))
        for kernel in kernels_in(names.values()):
            await kernel.ready(device)
        return Program(text, names)
    except ERRORS as error:
        raise explained(error, text) from None


def kernels_in(values):
    """The kernels among these, and in their lists, tuples and dicts."""
    for value in values:
        if isinstance(value, dlw.webgpu.Kernel):
            yield value
        elif isinstance(value, list | tuple):
            yield from kernels_in(value)
        elif isinstance(value, dict) and "__builtins__" not in value:
            yield from kernels_in(value.values())


class patience:  # noqa: N801, read as a word of the language
    """Ends Python code of the reader that runs too long."""

    def __enter__(self):
        end = time.monotonic() + PATIENCE_S

        def watch(frame, event, _):
            if frame.f_code.co_filename != NAME:
                return None
            if time.monotonic() > end:
                raise TimeoutError(
                    f"it ran for more than {PATIENCE_S} s and was stopped: a frame is drawn many "
                    "times a second"
                )
            return watch

        sys.settrace(watch)

    def __exit__(self, *_):
        sys.settrace(None)


class Patiently:
    """Awaits a coroutine of the reader, with patience for each of its steps."""

    def __init__(self, coroutine) -> None:
        self._coroutine = coroutine

    def __await__(self):
        step, value = self._coroutine.send, None
        while True:
            try:
                with patience():
                    waited_for = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = self._coroutine.send, (yield waited_for)
            except BaseException as error:
                step, value = self._coroutine.throw, error


async def within(seconds: float, coroutine) -> None:
    """Awaits a coroutine of the reader, but not for longer."""
    try:
        async with asyncio.timeout(seconds) as limit:
            await Patiently(coroutine)
    except TimeoutError as error:
        if not limit.expired():
            raise
        late = TimeoutError(f"it waited for more than {seconds} s and was stopped")
        raise late.with_traceback(error.__cause__.__traceback__) from None


def explained(error: BaseException, text: str) -> BrokenError:
    """The error with its place in the reader's text."""
    if isinstance(error, BrokenError):
        return error
    if isinstance(error, dlw.KernelError) and error.line is not None:
        return BrokenError(str(error).split("\ncalled at ")[0], wgsl_line(error, text))
    if isinstance(error, SyntaxError):
        return BrokenError(f"SyntaxError: {error.msg}", error.lineno)
    lines = [
        place.lineno
        for place in traceback.extract_tb(error.__traceback__)
        if place.filename == NAME
    ]
    message = f"{error}"
    if isinstance(error, SystemExit):
        message = (
            "a program runs until another replaces it: return from frame() instead"
        )
    return BrokenError(
        f"{type(error).__name__}: {message}", lines[-1] if lines else None
    )


def wgsl_line(error: dlw.KernelError, text: str) -> int | None:
    """The program's line that contains a line of WGSL, in one of its strings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines = node.value.split("\n")
            said = lines[error.line - 1] if error.line <= len(lines) else ""
            if said.strip() and f"\n{said}\n" in str(error):
                return node.lineno + error.line - 1
    return None


class Newest:
    """Loads programs; each ends the loading of the one before."""

    task: asyncio.Task[Program] | None = None

    async def newest(self, loading) -> Program | None:
        """What a coroutine gives; None if another one came meanwhile."""
        if self.task is not None:
            self.task.cancel()
        task = self.task = asyncio.ensure_future(loading)
        await asyncio.gather(task, return_exceptions=True)
        return task.result() if task is self.task else None


class Show(Newest):
    """Runs the frames of a source, and then of the next, through the program to the
    canvas."""

    def __init__(self, gpu) -> None:
        self.device = dlw.webgpu.use_device(gpu)
        self.program: Program | None = None
        self.wanted: Program | None = None  # compiled; the next frame tries it
        self.result: dlw.Tensor | None = None

    async def take(self, text: str) -> None:
        """Runs a text from the next frame on; BrokenError: the old program
        continues."""
        self.wanted = await self.newest(compiled(text, self.device)) or self.wanted

    async def run(self, source, canvas) -> None:
        """Shows the frames of a source until they end, or the page stops them."""
        with dlw.webgpu.frames(source, self.device, np.float32) as frames:
            page.running(frames.stop)
            async for image in frames:
                await self.draw(image, canvas)
                page.shown(frames.stats)
                if page.paused():
                    await page.resumed()

    async def draw(self, image: dlw.Tensor, canvas) -> None:
        if self.result is None or self.result.shape != image.shape:
            self.result = dlw.empty(image.shape, device=self.device)
        if self.wanted is not None:
            await self.try_wanted(image)
        if self.program is None:
            return
        try:
            await self.program(image, self.result)
            await dlw.webgpu.to_canvas(self.result, canvas)
        except dlw.DeviceLostError:
            raise
        except ERRORS as error:
            tell(explained(error, self.program.text))

    async def try_wanted(self, image: dlw.Tensor) -> None:
        """The new program draws an invisible frame; if it succeeds, it replaces the old
        one."""
        program, self.wanted = self.wanted, None
        trial = dlw.empty(image.shape, device=self.device)
        try:
            await program(image, trial)
            await trial[0, 0].to_host()  # one pixel, which reports the faults of all
        except dlw.DeviceLostError:
            raise
        except ERRORS as error:
            tell(explained(error, program.text))
            return
        self.program, self.result = program, trial
        page.took(program.text)


class ShowOnCpu(Newest):
    """Runs frames through the program in NumPy arrays; the page has views of them."""

    def __init__(self, width: int, height: int) -> None:
        self.image, self.result = np.zeros((2, height, width, 4), np.uint8)
        self.program: Program | None = None

    async def take(self, text: str) -> None:
        """Runs a text from the next frame on; BrokenError: the old program
        continues."""
        program = await self.newest(self.tried(text))
        if program is not None:
            self.program = program
            page.took(text)

    async def tried(self, text: str) -> Program:
        program = await compiled(text, None)
        try:
            await program(self.image, np.empty_like(self.result))
        except ERRORS as error:
            raise explained(error, text) from None
        return program

    async def draw(self) -> None:
        """One frame; as it is, while there is no program."""
        if self.program is None:
            self.result[:] = self.image
            return
        try:
            await self.program(self.image, self.result)
        except ERRORS as error:
            tell(explained(error, self.program.text))


def tell(error: BrokenError) -> None:
    page.broken(str(error), error.line)


async def take(show: Show | ShowOnCpu, text: str) -> None:
    try:
        await show.take(text)
    except BrokenError as error:
        tell(error)


# --- the usual way, for comparison ------------------------------------------------------


def usual_edges(pixels, height, width, strength, colour):
    """The program edges.py in NumPy, on a copy of a 2d canvas's pixels."""
    image = np.asarray(pixels.to_py()).reshape(height, width, 4)
    image = image[..., :3] * np.float32(1 / 255)
    light = image @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    g = np.pad(light, 1, mode="edge")
    x = g[:, 2:] - g[:, :-2]
    y = g[2:] - g[:-2]
    slope = np.hypot(
        x[:-2] + 2 * x[1:-1] + x[2:], y[:, :-2] + 2 * y[:, 1:-1] + y[:, 2:]
    )
    line = strength * slope[..., None] * (1 - colour + colour * 1.6 * image)
    result = np.full((height, width, 4), 255, np.uint8)
    result[..., :3] = np.round(255 * line.clip(0, 1))
    return page.copied(result.reshape(-1))


async def measured(gpu, source, canvas, text: str, count: int) -> list[float]:
    """The times of `count` frames through a program, in ms."""
    show = Show(gpu)
    page.quiet(True)
    try:
        await show.take(text)
    finally:
        page.quiet(False)
    times = []
    queue = show.device.gpu.queue
    with dlw.webgpu.frames(source, show.device, np.float32) as frames:
        async for image in frames:
            began = time.perf_counter()
            await show.draw(image, canvas)
            await queue.onSubmittedWorkDone()
            times.append(1000 * (time.perf_counter() - began))
            if len(times) > count:
                break
    return times[1:]  # the first compiles
