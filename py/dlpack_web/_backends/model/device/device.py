"""Registered GPUDevices: what is known of each, and what its driver does."""

from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Literal

from .... import _core
from .. import messages
from ..buffers.pool import COPY_DST, COPY_SRC, STORAGE, UNIFORM, Pool

_ids = count()


def new_id() -> int:
    """An id for a device. Each is used once, whatever its backend."""
    return next(_ids)


class Device:
    """A registered GPUDevice. limits and features: by WebGPU's names. options: those of
    request_device(); None for a device that was made elsewhere."""

    #: The usage of buffers made here: everything that tensors need.
    usage = STORAGE | UNIFORM | COPY_SRC | COPY_DST

    def __init__(
        self,
        gpu: Any,
        limits: dict[str, int],
        features: Any,
        options: dict[str, Any] | None = None,
        adapter_limits: dict[str, int] | None = None,
    ) -> None:
        self.id = -1  # until it is registered
        self.gpu, self.limits, self.features = gpu, limits, features
        self.options, self.adapter_limits = options, adapter_limits
        self.lost: str | None = None
        self.pool = Pool()
        self.up = self.down = self.copied = self.copies = self.exposed = 0
        #: Errors that came after the call that caused them: buffers may be invalid.
        self.error_count = 0

    def __str__(self) -> str:
        """ "webgpu:0" with the device's label, for messages."""
        label = self.gpu.label
        return f"webgpu:{self.id}" + (f' ("{label}")' if label else "")

    @staticmethod
    def way_to_larger(size: int) -> str:
        """What to do if a buffer must be larger than the device allows."""
        return messages.larger_buffer(size)

    def size_for(self, nbytes: int) -> int:
        """The size of a buffer for `nbytes`: padded to a multiple of 16, and never 0.
        BufferError: larger than the device allows."""
        size = max(-(-nbytes // 16) * 16, 16)
        limit = self.limits["maxBufferSize"]
        if size > limit:
            most = self.adapter_limits and self.adapter_limits["maxBufferSize"]
            of_adapter = f" and its adapter {most}" if most else ""
            way = self.way_to_larger(size)
            if most and size > most:
                way = messages.no_larger_buffer()
            raise BufferError(
                messages.buffer_too_large(size, self, limit, of_adapter, way)
            )
        return size

    def check_alive(self) -> None:
        """DeviceLostError unless the device works."""
        if self.is_lost():
            raise self.lost_error()

    def lost_error(self) -> _core.DeviceLostError:
        return _core.DeviceLostError(messages.lost(f"webgpu:{self.id}", self.lost))

    def is_lost(self) -> bool:
        """Asks the device, which may run any finalizers. Do not call it with the table
        locked; read `lost` there."""
        return self.lost is not None

    def lose(self, why: str) -> None:
        self.lost = self.lost or why
        self.pool.clear()

    def count(self, way: Literal["up", "down", "copied"], nbytes: int) -> None:
        vars(self)[way] += nbytes
        self.copies += 1

    # --- the driver's, of a GPU that this process uses itself -------------------------

    # Buffers have WebGPU's `size` and `usage`, and destroy().

    def errors(self) -> tuple[type[Exception], ...]:
        """Exceptions for GPU errors."""
        return ()

    def reason(self, error: Exception) -> str | None:
        """What a GPU error says, without its frames; None: the device is lost now."""
        return str(error)

    def turn(self) -> AbstractContextManager[Any]:
        """A context for calls that must only raise errors of this thread."""
        return nullcontext()

    def unusable(self, buffer: Any) -> str | None:
        """Why commands over a foreign buffer must not be submitted, if so."""
        return None

    def check_buffer(self, buffer: Any) -> None:
        """TypeError for what is no GPUBuffer, BufferError for one of another device."""
        raise NotImplementedError

    def dropped(self, slot: Any) -> None:
        """No tensor has the buffer: called from any finalizer, perhaps twice."""

    def make(self, size: int, usage: int) -> Any:
        """A new buffer of zeros."""
        raise NotImplementedError

    def write(self, buffer: Any, offset: int, memory: Any) -> None:
        """Writes bytes, padding the last word with zeros."""
        raise NotImplementedError

    def flush(self) -> None:
        """Starts what was written: its staging memory can be reused."""

    def clear(self, buffer: Any, start: int, end: int) -> None:
        """Writes zeros to whole words."""
        raise NotImplementedError

    def copy(
        self, source: Any, start: int, target: Any, offset: int, nbytes: int
    ) -> None:
        """Copies bytes to another buffer; the rest of their last word becomes 0."""
        raise NotImplementedError

    def stage(
        self, what: str, copies: list[tuple[Any, int, int, int]], nbytes: int
    ) -> "Staged":
        """Begins to read whole words: each from a buffer and offset, to an offset of
        `nbytes`, and how many bytes. what: for errors."""
        raise NotImplementedError

    def settle(self) -> None:
        """Waits until the GPU has finished all submitted work."""
        raise NotImplementedError


class Staged:
    """Bytes on their way back."""

    def wait(self) -> None:
        raise NotImplementedError

    async def finish(self) -> None:
        """The same, while the event loop runs."""
        self.wait()

    def memory(self, offset: int, length: int) -> memoryview:
        """Some of the bytes, until `end`."""
        raise NotImplementedError

    def end(self) -> None:
        pass
