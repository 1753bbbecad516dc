"""The parts that only Dawn has of the package wgpudawn, which has wgpu-py's interface
(wgpu.py).

Dawn lets one thread at a time use a device, unless the device has the feature
"implicit-device-synchronization", as devices made here have. The package keeps the
errors of all threads in one list, and the next call that returns raises the first. So
our calls take turns, and each gets its own errors.
"""

import re
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

_ONE_AT_A_TIME = RLock()  # reentrant, for finalizers that run within one of the calls
_SYNCHRONIZED = "implicit-device-synchronization"


def is_it(module: Any) -> bool:
    """Whether the module imported as wgpu is wgpudawn."""
    return _is_of(module.GPUError)


def has(gpu: Any) -> bool:
    """Whether a device is Dawn's."""
    return _is_of(type(gpu))


def _is_of(kind: type) -> bool:
    return kind.__module__.startswith("wgpudawn.")


def turn(module: Any) -> AbstractContextManager[Any]:
    return _ONE_AT_A_TIME if is_it(module) else nullcontext()


def needed(adapter: Any) -> list[str]:
    """Features of every device made here."""
    return [_SYNCHRONIZED] if _SYNCHRONIZED in adapter.features else []


def outlive_the_loop(gpu: Any) -> Any:
    """The device, detached from the event loop that requested it: at its loss wgpudawn
    would else log that this loop is closed."""
    if has(gpu):
        gpu._get_lost_async()._call_soon_threadsafe = None
    return gpu


def extras() -> Any:
    from wgpudawn.backends.dawn import extras as found

    return found


def why_lost(gpu: Any) -> str | None:
    """WebGPU's reason; None: no known loss. Dawn reports it when it processes events,
    which costs a few microseconds."""
    lost = gpu._get_lost_async()
    if lost._state == "pending":
        extras().process_events()
    if lost._state == "pending":
        return None
    why: str = lost.sync_wait().reason
    return "destroyed" if why == "destroyed" else "unknown"


def host_alignment(gpu: Any) -> int | None:
    """The alignment that a device needs of CPU memory; None: it cannot use any."""
    if not has(gpu) or "host-mapped-pointer" not in gpu.features:
        return None
    step: int = extras().get_host_memory_alignment(gpu)
    return step


def buffer_over(gpu: Any, memory: Any, usage: int) -> Any:
    """A GPUBuffer over CPU memory. It holds `memory` until the buffer is dropped, the
    GPU has finished with it, and `free_host_memory` is called."""
    return extras().create_buffer_from_host_memory(gpu, memory, usage=usage)


def free_host_memory(gpu: Any) -> None:
    """Releases what the GPU has finished with, now or when `why_lost` is next called;
    this may run any finalizers."""
    # Dawn frees unused host memory when it processes events after a submit.
    gpu.queue.submit([])
    extras().process_events()


def write_nothing(gpu: Any, buffer: Any) -> None:
    """Raises Dawn's error for using a buffer in the queue, if any."""
    # wgpudawn takes a size of 0 for the whole buffer, and int(0.5) for the size.
    gpu.queue.write_buffer(buffer, 0, bytes(4), 0, 0.5)


def shader_error(text: str) -> tuple[int, int, str] | None:
    """Line, column and message of an error of Tint's."""
    found = re.search(r":(\d+):(\d+) error: (.+)", text)
    return (int(found[1]), int(found[2]), found[3]) if found else None
