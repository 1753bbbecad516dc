"""Frees idle buffers of the desktop's devices, in a thread."""

import threading
import time
from contextlib import suppress
from queue import SimpleQueue

from ..model.device.device import Device
from . import wgpu

#: The desktop's devices, by id.
devices: dict[int, Device] = {}

_IDLE_S = 10.0  # after so long without any use, all of them go

#: Wakes the thread that frees idle pools. Buffers are given back wherever Python
#: collects garbage, where waiting for a lock or starting a thread is not safe; putting
#: into a SimpleQueue is.
_given: SimpleQueue[None] = SimpleQueue()
_waiting: list[bool] = []  # not empty: it is awake
_watcher: list[threading.Thread] = []


def wake() -> None:
    if not _waiting:
        _waiting.append(True)
        _given.put(None)


def drop_idle() -> bool:
    """Destroys the idle buffers of devices whose pools were not used since the last
    call. Returns whether others remain; if not, the thread may sleep."""
    for device in [*devices.values()]:
        if not device.is_lost() and not device.pool.used:
            with suppress(*wgpu.failures()):
                device.pool.trim(0)
        device.pool.used = False
    _waiting.clear()  # first: what is given back after it wakes the thread
    if not any(device.pool.idle_bytes for device in [*devices.values()]):
        return False
    _waiting.append(True)
    return True


def _watch() -> None:
    while True:
        _given.get()
        for device in [*devices.values()]:
            device.pool.used = False
        time.sleep(_IDLE_S)
        while drop_idle():
            time.sleep(_IDLE_S)


def start() -> None:
    if not _watcher:
        thread = threading.Thread(target=_watch, name="dlpack_web idle", daemon=True)
        _watcher.append(thread)
        thread.start()
