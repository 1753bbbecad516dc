"""A driver of dlpack_web.backends over NumPy arrays in memory: a GPU that does at once
what it is asked. Shaders are functions of Python."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from dlpack_web import backends
from dlpack_web.backends import Request, fault_of

LIMITS = {
    "maxBufferSize": 2**28,
    "maxStorageBufferBindingSize": 2**27,
    "maxUniformBufferBindingSize": 65536,
    "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
    "maxComputeWorkgroupsPerDimension": 65535,
}


class GPUError(Exception):
    """What this GPU reports."""


class GPUBuffer:
    def __init__(self, gpu: "GPUDevice", size: int, usage: int) -> None:
        self.gpu, self.size, self.usage = gpu, size, usage
        self.bytes = np.zeros(size, "u1")
        self.destroyed = False

    def destroy(self) -> None:
        self.destroyed = True


class GPUDevice:
    def __init__(self, label: str, limits: dict[str, int]) -> None:
        self.label, self.limits = label, limits
        self.features: frozenset[str] = frozenset()
        self.destroyed = False

    def create_buffer(self, size: int, usage: int) -> GPUBuffer:
        return GPUBuffer(self, size, usage)

    def destroy(self) -> None:
        self.destroyed = True


class Device(backends.Device):
    def __init__(
        self, gpu: GPUDevice, compile: Any, options: dict[str, Any] | None = None
    ) -> None:
        super().__init__(gpu, gpu.limits, gpu.features, options, LIMITS)
        self.compile = compile

    def is_lost(self) -> bool:
        if self.gpu.destroyed:
            self.lose("destroyed")
        return self.lost is not None

    def errors(self) -> tuple[type[Exception], ...]:
        return (GPUError,)

    def unusable(self, buffer: GPUBuffer) -> str | None:
        return "the GPUBuffer was destroyed" if buffer.destroyed else None

    def check_buffer(self, buffer: Any) -> None:
        if not isinstance(buffer, GPUBuffer):
            raise TypeError(f"a GPUBuffer is needed, not {buffer!r}")
        if buffer.gpu is not self.gpu:
            raise BufferError(f"the GPUBuffer belongs to another device, not to {self}")

    def make(self, size: int, usage: int) -> GPUBuffer:
        return GPUBuffer(self.gpu, size, usage)

    def write(self, buffer: GPUBuffer, offset: int, memory: Any) -> None:
        buffer.bytes[offset : offset + len(memory)] = np.frombuffer(memory, "u1")
        end = offset + len(memory)
        buffer.bytes[end : end + -end % 4] = 0

    def clear(self, buffer: GPUBuffer, start: int, end: int) -> None:
        buffer.bytes[start:end] = 0

    def copy(
        self, source: GPUBuffer, start: int, target: GPUBuffer, offset: int, nbytes: int
    ) -> None:
        self.write(target, offset, source.bytes[start : start + nbytes])

    def stage(
        self, what: str, copies: list[tuple[GPUBuffer, int, int, int]], nbytes: int
    ) -> "Staged":
        staged = Staged(nbytes)
        for buffer, start, offset, length in copies:
            staged.bytes[offset : offset + length] = buffer.bytes[start:][:length]
        return staged

    def settle(self) -> None:
        pass


class Staged(backends.Staged):
    def __init__(self, nbytes: int) -> None:
        self.bytes = np.empty(nbytes, "u1")

    def wait(self) -> None:
        pass

    async def finish(self) -> None:
        """It takes a few turns of the event loop."""
        for _ in range(9):
            await asyncio.sleep(0)

    def memory(self, offset: int, length: int) -> memoryview:
        return memoryview(self.bytes)[offset : offset + length]


class Kernel(backends.Kernel):
    _device: Device

    def _compile(self, source: Any) -> None:
        """GPUError is what the GPU refuses: the kernel's fault."""
        try:
            self.shader = self._device.compile(source.wgsl, source.entry)
        except GPUError as error:
            self.fault = fault_of(
                self._device, f"compiling {self.what}", error, self.label
            )

    def _dispatch(self, bound: Any, groups: tuple[int, ...], timestamps: Any) -> None:
        self.run_bound(bound, groups)

    def run_bound(self, bound: Any, groups: tuple[int, ...]) -> None:
        self.shader(
            groups,
            *(one.slot.buffer.bytes[one.offset :][: one.size] for one in bound),
        )
        for one in bound:
            if one.back is not None:
                view, words = one.back, -(-one.back.nbytes // 4) * 4
                there = view.slot.buffer.bytes[view.start :]
                there[:words] = one.slot.buffer.bytes[:words]
                self._device.count("copied", view.nbytes)


class Batch(backends.Batch):
    def _submit(self, calls: Any) -> None:
        for call in calls:
            for view, one in call.copies:
                source = view.slot.buffer.bytes[view.start :][: view.nbytes]
                one.slot.buffer.bytes[: view.nbytes] = source
                one.slot.buffer.bytes[view.nbytes :] = 0
                if view.nbytes:
                    self._device.count("copied", view.nbytes)
            call.kernel.run_bound(call.bound, call.groups)


class Memory(backends.Backend):
    """The backend. Other devices than those requested are made by `GPUDevice`. compile:
    gives, for WGSL and the name of its entry point, a function that is called with the
    workgroups and an array of the bytes of each binding."""

    kernel_type, batch_type = Kernel, Batch

    def __init__(self, compile: Callable[[str, str], Callable[..., None]]) -> None:
        super().__init__()
        self._compile = compile

    def features(self) -> dict[str, Any]:
        return {"browser": False, "webgpu": {"available": True}, "canBlock": True}

    async def request_device(self, options: dict[str, Any]) -> int:
        return self.request_device_blocking(options)

    def request_device_blocking(self, options: dict[str, Any]) -> int:
        asked = Request(options)
        found = self.requested(asked.options)
        if found is None:
            gpu = GPUDevice(asked.label, LIMITS | asked.limits(LIMITS))
            made = Device(gpu, self._compile, asked.options)
            found = self.register(gpu, lambda: made, asked.options)
        return found.id

    def use_device(self, gpu: Any) -> int:
        if not isinstance(gpu, GPUDevice):
            raise TypeError(f"a GPUDevice is needed, not {gpu!r}")
        return self.register(gpu, lambda: Device(gpu, self._compile)).id
