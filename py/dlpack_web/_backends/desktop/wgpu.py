"""The package wgpu (wgpu-py), which only this file imports, when it is needed; and its
differences from WebGPU: names, errors and waiting.

Two packages have its interface: wgpu-py itself, over wgpu-native, and wgpudawn, over
Dawn, which replaces it after `wgpudawn.install_as_wgpu()`. The parts that only Dawn has
are in dawn.py.

Both report errors within the call, by exceptions. But wgpu-native ends the process if
commands are submitted over a buffer that is mapped or was destroyed, or on a lost
device. So `unusable` checks buffers before, and `refuse_destroyed` textures.
"""

import re
import sys
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from . import dawn

NEEDED = (0, 32)
_INSTALL = "pip install 'dlpack-web[webgpu]'"


@cache
def wgpu() -> Any:
    """The module; BufferError says what to install."""
    try:
        import wgpu as found
    except ModuleNotFoundError as error:
        if error.name != "wgpu":
            raise
        raise BufferError(
            f"WebGPU outside a browser needs the package wgpu: {_INSTALL}; this is "
            f"{sys.implementation.name} on {sys.platform}, where CPU tensors work"
        ) from None
    except (ImportError, OSError, RuntimeError) as error:
        if "allocate lock" in str(error):  # CPython's message when out of memory
            raise MemoryError from None
        raise BufferError(
            f"the package wgpu is installed but cannot be imported ({error}): "
            f"{_INSTALL} --force-reinstall, or see pygfx's wgpu-py for this platform"
        ) from error
    version = str(getattr(found, "__version__", "0"))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < NEEDED:
        needed = ".".join(map(str, NEEDED))
        raise BufferError(
            f"wgpu {version} is too old; {needed} or newer is needed: {_INSTALL} "
            "--upgrade"
        )
    return found


def errors() -> tuple[type[Exception], ...]:
    """Exceptions for GPU errors."""
    return (wgpu().GPUError,)


def failures() -> tuple[type[Exception], ...]:
    """The same, and wgpu-py's own failures."""
    return (RuntimeError, *errors())


def without_frames(error: Exception) -> Exception:
    """The error without its traceback, whose frames keep objects of wgpu-py alive."""
    return error.with_traceback(None)


def is_lost(error: Exception) -> bool:
    """Whether a GPU error says that the device is lost."""
    return re.search(r'device( ".*")?\]? is lost', str(error).lower()) is not None


def reason(error: Exception) -> str:
    """wgpu-native's message, on one line and without its source."""
    text = str(error).partition("Caused by:")[2] or str(error)
    lines = (line.strip() for line in text.splitlines())
    told = [line for line in lines if line and not re.match(r"In wgpu\w+", line)]
    return "; ".join(told) or str(error)


def why_lost(gpu: Any) -> str | None:
    """WebGPU's reason why a device is lost, as far as known without using it.

    wgpu-py only knows of `gpu.destroy()`, by its polling thread, which is gone then.
    """
    if dawn.has(gpu):
        return dawn.why_lost(gpu)
    return "destroyed" if getattr(gpu, "_poller", gpu) is None else None


def tick(gpu: Any) -> float:
    """Nanoseconds of a unit of timestamps. WebGPU, as Dawn, resolves nanoseconds, and
    wgpu-native the GPU's own ticks."""
    if dawn.has(gpu):
        return 1.0
    queue = gpu.queue._internal
    return float(wgpu().backends.wgpu_native.lib.wgpuQueueGetTimestampPeriod(queue))


def turn() -> AbstractContextManager[Any]:
    """A context for calls that must only raise errors of this thread."""
    return dawn.turn(wgpu())


def device_of(thing: Any) -> Any:
    """The GPUDevice of a GPUBuffer or GPUTexture, which WebGPU does not expose."""
    return thing._device


def refuse_destroyed(gpu: Any, texture: Any) -> None:
    """Raises for a destroyed texture, which wgpu-native does not view."""
    if not dawn.has(gpu):
        texture.create_view()


def unusable(gpu: Any, buffer: Any) -> str | None:
    """Why commands over a buffer must not be submitted; None if they may be.

    The write is of three bytes, no whole word, so it always fails; but other errors of
    the buffer are reported first.
    """
    if buffer.map_state != "unmapped":
        state = "mapped" if buffer.map_state == "mapped" else "being mapped"
        return f"the GPUBuffer is {state}: unmap() it first"
    try:
        if dawn.has(gpu):
            dawn.write_nothing(gpu, buffer)
        else:
            gpu.queue.write_buffer(buffer, 0, b"---")
    except errors() as error:
        text = str(without_frames(error))
    else:
        text = ""
    if "has been destroyed" in text or "while destroyed" in text:
        return "the GPUBuffer was destroyed"
    if "doesn't match" in text or "cannot be used with [" in text:
        return "the GPUBuffer belongs to another device"
    if "unmapped" in text or "while mapped" in text:
        return "the GPUBuffer is mapped: unmap() it first"
    return "Parent device is lost" if is_lost(Exception(text)) else None


async def finish(promise: Any) -> Any:
    """Awaits a promise; blocks if there is no event loop that wgpu supports."""
    if sys.get_asyncgen_hooks()[0] is None:
        with turn():
            return promise.sync_wait()
    awaited: Awaitable[Any] = promise
    try:
        return await awaited
    except BaseException:
        # Given up: wgpu-py would call the loop when the GPU is done, open or not.
        promise._call_soon_threadsafe = None
        raise


# --- names --------------------------------------------------------------------------------


def limit_name(name: str) -> str:
    """wgpu's name for a limit of WebGPU: maxBufferSize -> max-buffer-size."""
    return re.sub(r"(?<!\d)(?=[A-Z\d])", "-", name).lower()


def limits(holder: Any) -> dict[str, int]:
    """The limits of an adapter or device, by WebGPU's names."""
    return {
        re.sub(r"-(\d?\w)", lambda found: found[1].upper(), name): limit
        for name, limit in holder.limits.items()
    }


def features(holder: Any) -> frozenset[str]:
    """The features of an adapter or device, by WebGPU's names."""
    found = {name if name != "subgroup" else "subgroups" for name in holder.features}
    return frozenset(found)


def feature_name(name: str) -> str:
    """wgpu-py's name for a feature of WebGPU (wgpu-py#721)."""
    return "subgroup" if name == "subgroups" and not dawn.is_it(wgpu()) else name


# --- shaders ------------------------------------------------------------------------------

# What does not parse is in "wgsl", an invalid type in a file of the shader's label.
_PLACE = re.compile(r"(?:┌─ .*|wgsl):(\d+):(\d+)")


def shader_error(error: Exception) -> tuple[int, int, str] | None:
    """The compiler's error: line and column, from 1, and message; None: no position."""
    text = str(error)
    found = dawn.shader_error(text)
    if found is not None:
        return found
    place = _PLACE.search(text)
    if place is None:
        return None
    told = [row.strip() for row in text[: place.start()].splitlines() if row.strip()]
    drawn = [row for row in told if not re.match(r"[┌─│ ]*$", row)]
    said = drawn[-1].partition("error: ")[2] or drawn[-1] if drawn else text
    reasons = re.findall(r"^ *= (.+)", text, re.MULTILINE)
    notes = reasons or re.findall(r"\^+ (.+)", text)
    if notes:
        said += f" ({notes[0]})"
    return int(place[1]), int(place[2]), said


# --- devices ------------------------------------------------------------------------------


async def adapter_of(asked: dict[str, Any], *, blocking: bool) -> Any:
    """An adapter; BufferError if there is none. asked: options by WebGPU's names."""
    gpu = wgpu().gpu
    options = {re.sub("(?=[A-Z])", "_", name).lower(): x for name, x in asked.items()}
    try:
        if blocking or dawn.is_it(wgpu()):  # its instance is for one thread at a time
            with turn():
                return gpu.request_adapter_sync(**options)
        return await finish(gpu.request_adapter_async(**options))
    except failures() as error:
        raise BufferError(
            f"WebGPU found no adapter ({reason(error)}): install a driver for Vulkan, on "
            "Debian and Ubuntu `apt install mesa-vulkan-drivers`, whose lavapipe needs no "
            "GPU"
        ) from error


async def device_from(
    adapter: Any,
    label: str,
    features: list[str],
    required: dict[str, int],
    *,
    blocking: bool,
) -> Any:
    """A device; BufferError if the adapter provides none."""
    descriptor = {
        "label": label,
        "required_features": [*map(feature_name, features), *dawn.needed(adapter)],
        "required_limits": {limit_name(name): n for name, n in required.items()},
    }
    try:
        if blocking or dawn.is_it(wgpu()):
            with turn():
                return dawn.outlive_the_loop(adapter.request_device_sync(**descriptor))
        return await finish(adapter.request_device_async(**descriptor))
    except KeyError as error:
        raise TypeError(f"no such feature: {error.args[0]}") from None
    except failures() as error:
        raise BufferError(f"the adapter gave no device: {reason(error)}") from error


def is_buffer(buffer: Any) -> bool:
    return isinstance(buffer, wgpu().GPUBuffer)
