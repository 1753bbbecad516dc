"""A GPUDevice of wgpu-py: what it does for the model (../model/device)."""

import asyncio
from contextlib import AbstractContextManager, suppress
from typing import Any

from ..model.buffers.pool import COPY_DST, MAP_READ
from ..model.buffers.table import Slot
from ..model.device import device as model
from ..model.errors.operations import attempt
from . import dawn, idle, wgpu

_ZEROS = bytes(4096)


class Device(model.Device):
    def __init__(
        self,
        gpu: Any,
        adapter_limits: dict[str, int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        limits, features = wgpu.limits(gpu), wgpu.features(gpu)
        super().__init__(gpu, limits, features, options, adapter_limits)
        self.pool.wake = idle.wake
        idle.start()
        #: A buffer over CPU memory was dropped, and the GPU may still use the memory.
        self.frees = False
        #: Pipelines that clear the end of a last word, by the number of its bytes to
        #: keep.
        self.masks: dict[int, Any] = {}

    def is_lost(self) -> bool:
        if self.frees and self.lost is None:
            self.frees = False
            with suppress(*wgpu.failures()):
                dawn.free_host_memory(self.gpu)
        why = wgpu.why_lost(self.gpu) if self.lost is None else None
        if why is not None:
            self.lose(why)
        return self.lost is not None

    def errors(self) -> tuple[type[Exception], ...]:
        return wgpu.errors()

    def reason(self, error: Exception) -> str | None:
        wgpu.without_frames(error)
        if wgpu.is_lost(error):
            self.lose(wgpu.why_lost(self.gpu) or "unknown")
            return None
        return wgpu.reason(error)

    def turn(self) -> AbstractContextManager[Any]:
        return wgpu.turn()

    def unusable(self, buffer: Any) -> str | None:
        return wgpu.unusable(self.gpu, buffer)

    def check_buffer(self, buffer: Any) -> None:
        if not wgpu.is_buffer(buffer):
            raise TypeError(f"a wgpu.GPUBuffer is needed, not {buffer!r}")
        self.check_alive()
        if wgpu.device_of(buffer) is not self.gpu:
            raise BufferError(
                f"the GPUBuffer belongs to another device, not to {self}: devices do not "
                "share buffers; pass device=use_device(...) of its own device"
            )

    def dropped(self, slot: Slot) -> None:
        if slot.hosts is not None:
            self.frees = True
            idle.wake()

    def make(self, size: int, usage: int) -> Any:
        return self.gpu.create_buffer(size=size, usage=usage)

    def write(self, buffer: Any, offset: int, memory: Any) -> None:
        words, queue = len(memory) & ~3, self.gpu.queue
        if words:
            queue.write_buffer(buffer, offset, memory, 0, words)
        if words < len(memory):
            tail = bytes(memory[words:]).ljust(4, b"\0")
            queue.write_buffer(buffer, offset + words, tail)

    def flush(self) -> None:
        self.gpu.queue.submit([])

    def clear(self, buffer: Any, start: int, end: int) -> None:
        if end - start > 4 * len(_ZEROS):
            encoder = self.gpu.create_command_encoder()
            encoder.clear_buffer(buffer, start, end - start)
            self.gpu.queue.submit([encoder.finish()])
            return
        for at in range(start, end, len(_ZEROS)):
            count = min(len(_ZEROS), end - at)
            self.gpu.queue.write_buffer(buffer, at, _ZEROS, 0, count)

    def copy(
        self, source: Any, start: int, target: Any, offset: int, nbytes: int
    ) -> None:
        encoder = self.gpu.create_command_encoder()
        self.encode_copy(encoder, source, start, target, offset, nbytes)
        self.gpu.queue.submit([encoder.finish()])

    def encode_copy(
        self,
        encoder: Any,
        source: Any,
        start: int,
        target: Any,
        offset: int,
        nbytes: int,
    ) -> None:
        length = -(-nbytes // 4) * 4
        encoder.copy_buffer_to_buffer(source, start, target, offset, length)
        if nbytes % 4 != 0:
            self._mask_tail(encoder, target, offset, nbytes)

    def _mask_tail(self, encoder: Any, buffer: Any, offset: int, nbytes: int) -> None:
        """Sets to 0 the rest of the word in which `nbytes` from `offset` end."""
        gpu, pipeline = self.gpu, self.masks.get(nbytes % 4)
        if pipeline is None:
            mask = (1 << 8 * (nbytes % 4)) - 1
            module = gpu.create_shader_module(code=_MASK.replace("MASK", f"{mask}u"))
            pipeline = self.masks[nbytes % 4] = gpu.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )
        word = offset + nbytes - nbytes % 4
        start = word - word % self.limits["minStorageBufferOffsetAlignment"]
        resource = {"buffer": buffer, "offset": start, "size": word + 4 - start}
        group = gpu.create_bind_group(
            layout=pipeline.get_bind_group_layout(0),
            entries=[{"binding": 0, "resource": resource}],
        )
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
        compute.end()

    def stage(
        self, what: str, copies: list[tuple[Any, int, int, int]], nbytes: int
    ) -> "Staged":
        staged = Staged(self, nbytes)

        def calls() -> None:
            encoder = self.gpu.create_command_encoder()
            for buffer, start, offset, length in copies:
                encoder.copy_buffer_to_buffer(
                    buffer, start, staged.buffer, offset, length
                )
            self.gpu.queue.submit([encoder.finish()])

        attempt(self, what, calls)
        staged.map(what)
        return staged

    def settle(self) -> None:
        """It maps a few bytes, because wgpu-py 0.32's on_submitted_work_done fails."""
        fence, what = Staged(self, 16), "waiting for the device"

        def calls() -> None:
            encoder = self.gpu.create_command_encoder()
            encoder.clear_buffer(fence.buffer, 0, 16)
            self.gpu.queue.submit([encoder.finish()])

        attempt(self, what, calls)
        fence.map(what)
        attempt(self, what, fence.mapped.sync_wait)
        fence.end()


_MASK = """
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1)
fn main() {
  words[arrayLength(&words) - 1] &= MASK;
}"""


class Staged(model.Staged):
    def __init__(self, owner: Device, nbytes: int) -> None:
        """A buffer for so many bytes. Powers of two can be reused for more reads;
        nothing reads the bytes after the elements."""
        self.device, self.nbytes = owner, nbytes
        size = min(1 << (nbytes - 1).bit_length(), owner.limits["maxBufferSize"])
        usage = MAP_READ | COPY_DST
        found = owner.pool.take(size, usage)
        self.buffer = (
            found[0]
            if found is not None
            else attempt(
                owner,
                f"createBuffer for reading {nbytes} bytes",
                lambda: owner.make(size, usage),
            )
        )

    def map(self, what: str) -> None:
        # Not map_async(MapMode.READ), which would submit again.
        self.mapped = attempt(
            self.device,
            what,
            lambda: self.buffer.map_async("READ_NOSYNC", 0, self.nbytes),
        )

    def wait(self) -> None:
        attempt(self.device, "reading back", self.mapped.sync_wait)

    async def finish(self) -> None:
        """DeviceLostError if the device is destroyed: wgpu-py never resolves then."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # another library's loop, or none
            await wgpu.finish(self.mapped)
            return
        waiting = asyncio.ensure_future(wgpu.finish(self.mapped))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=0.2)
                if not waiting.done():
                    self.device.check_alive()
            try:
                waiting.result()
            except RuntimeError as error:
                self.device.check_alive()
                raise BufferError(
                    f"reading back failed on {self.device}: {error}"
                ) from error
        finally:
            waiting.cancel()

    def memory(self, offset: int, length: int) -> memoryview:
        found: memoryview = self.buffer.read_mapped(offset, length, copy=False)
        return found

    def end(self) -> None:
        self.buffer.unmap()
        self.device.pool.give(self.buffer, 0)
