"""tinygrad's WEBGPU device: its buffers are Tensors, its programs are Kernels.

Importing this imports tinygrad. A buffer is a Tensor of uint8, of exactly its bytes, and
tinygrad's allocator hands them to kernels, copies and views. All of them follow one
Device: `use` changes it when the one before was lost.
"""

# mypy: allow-subclassing-any
import math
import os
import shutil
import sys
import time
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from tinygrad import Tensor as TinyTensor
from tinygrad import helpers
from tinygrad.device import Allocator, Compiled, Program
from tinygrad.device import Device as Devices
from tinygrad.dtype import DType as TinyDType
from tinygrad.engine.jit import GraphRunner
from tinygrad.renderer import wgsl
from tinygrad.runtime.ops_python import PythonAllocator, PythonDevice

from dlpack_web import Device, DeviceLostError, DType, Tensor, from_buffer
from dlpack_web.backends import owner
from dlpack_web.internal import refuse_recorded
from dlpack_web.webgpu import Kernel, batch

from . import _numbers
from ._cache import Cache

NAME = "WEBGPU"
_BYTES = DType("uint8")


# What a call is checked for.
_CHECKED = "maxStorageBuffersPerShaderStage", "maxComputeInvocationsPerWorkgroup"


class Place:
    """The Device that tinygrad's uses, and what belongs to it."""

    def __init__(self, device: Device) -> None:
        self.device, self.backend = device, owner(device.id)
        #: The uniform that each of tinygrad's shaders begins with.
        self.infinity = from_buffer(array("f", [math.inf])).to_device(device)
        self._most = {name: self.limit(name) for name in _CHECKED}

    def limit(self, name: str) -> int:
        return self.backend.limit(self.device.id, name)

    def has(self, name: str) -> bool:
        return self.backend.has_feature(self.device.id, name)

    def sizes(self) -> tuple[tuple[int, int, int], int, int]:
        """Most invocations of a workgroup by axis, workgroups, bytes that they share."""
        x, y, z = (self.limit(f"maxComputeWorkgroupSize{axis}") for axis in "XYZ")
        most = self.limit("maxComputeWorkgroupsPerDimension")
        return (x, y, z), most, self.limit("maxComputeWorkgroupStorageSize")

    def check(self, name: str, buffers: int, local_size: Any) -> None:
        """BufferError for a kernel beyond the device's limits."""
        needs = (buffers, "buffers"), (math.prod(local_size or ()), "invocations")
        for (count, what), (limit, most) in zip(needs, self._most.items(), strict=True):
            if count <= most:
                continue
            raise BufferError(
                f"tinygrad's kernel {name!r} has {count} {what}, {self.device} allows "
                f"{most} ({limit}): call dlpack_web_tinygrad.install() before another "
                "device is requested, which gets the adapter's limits, or "
                f'install(await dlpack_web.webgpu.request_device({limit}=float("inf")))'
            )

    def wait(self) -> None:
        if self.backend.can_block():
            self.infinity.tobytes()

    def time(self, kernel: Kernel, args: Any, groups: Any) -> float | None:
        """Runs the kernel; returns the seconds that the GPU took. Without timestamps,
        those from here until the GPU finished; None where Python cannot wait."""
        if not self.backend.can_block():
            kernel(*args, workgroups=groups)
            return None
        if self.has("timestamp-query"):
            spent: float = self.backend.block_on(kernel.time(*args, workgroups=groups))
            return spent / 1e3
        return self.elapsed(lambda: kernel(*args, workgroups=groups))

    def elapsed(self, run: Callable[[], None]) -> float:
        """The seconds until the GPU has finished, where Python can wait."""
        self.wait()
        begin = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - begin


_found: Place | None = None
_cache: Cache | None = None


def place() -> Place:
    assert _found is not None, "use() comes first"
    return _found


def in_use() -> Device:
    """The Device under tinygrad's."""
    return place().device


def move(device: Device) -> bool:
    """Takes another Device from now on; whether it is another one."""
    global _found
    if _found is not None and _found.device == device:
        return False
    _found = Place(device)
    return True


class WGSLRenderer(wgsl.WGSLRenderer):
    """tinygrad's, with the device's limits, and with NaN. Buffers that a kernel does
    not write are declared so: they may be read-only, may be bound twice, and are not
    spoilt by a fault of the kernel."""

    code_for_op = _numbers.code_for_op
    string_rewrite = _numbers.string_rewrite
    extra_matcher = _numbers.extra_matcher

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.local_max, most, self.shared_max = place().sizes()
        self.global_max = (most,) * 3

    def render(self, uops: Any) -> str:
        try:
            source: str = super().render(uops)
        except KeyError as error:  # of its table of types
            if not isinstance(error.args[0], TinyDType):
                raise
            raise TypeError(
                f"WGSL has no {error.args[0].name}: cast the tensor to float32 or float16 "
                "(which needs the device's feature shader-f16) before it comes to "
                f"{NAME}"
            ) from None
        if _cache is not None:
            _cache.soon()
        return source

    def render_kernel(
        self, function_name: Any, kernel: Any, bufs: Any, *more: Any, **named: Any
    ) -> str:
        source: str = super().render_kernel(function_name, kernel, bufs, *more, **named)
        source = _numbers.with_functions(source)
        for name, (_, written) in bufs:
            if not written:
                source = _read_only(source, name)
        return source


def _read_only(source: str, name: str) -> str:
    """The shader with a storage buffer as one that it only reads, not atomic."""
    before, after = f"var<storage,read_write>{name}:", f"var<storage,read>{name}:"
    source = source.replace(f"{before}array<atomic<u32>>", f"{after}array<u32>")
    source = source.replace(f"atomicLoad(&{name}[", f"({name}[")
    return source.replace(before, after)


class Memory(Allocator):
    """Tensors of bytes, of our pool. WebGPU's memory is zeros at first."""

    def _alloc(self, size: int, options: Any) -> Tensor:
        if options is not None and options.external_ptr is not None:
            raise BufferError(
                f"{NAME} has no addresses: Tensor.from_blob() takes device='CPU'; "
                "dlpack_web_tinygrad.from_dlpack() shares GPU memory"
            )
        try:
            here = place()
            return here.backend.empty((size,), _BYTES, here.device.id)
        except DeviceLostError:
            raise
        except BufferError as error:  # tinygrad adds what it has allocated
            raise MemoryError(str(error)) from error

    def _free(self, opaque: Tensor, options: Any) -> None:
        opaque.release()

    def _copyin(self, dest: Tensor, src: memoryview) -> None:
        dest.write(src.cast("B"))

    def _copyout(self, dest: memoryview, src: Tensor) -> None:
        gpu = place().backend
        if not gpu.can_block():
            raise BufferError(
                "the elements are on the GPU and Python cannot wait for them here (that "
                "needs JSPI and a call from async Python): use "
                "`await dlpack_web_tinygrad.to_host(t)`"
            )
        refuse_recorded(src, False)
        with from_buffer(dest.cast("B")) as target:
            gpu.read_blocking([src], [target])

    def _transfer(self, dest: Tensor, src: Tensor, sz: int, **_: Any) -> None:
        dest.write(src)

    def _offset(self, buf: Tensor, size: int, offset: int) -> Tensor:
        return buf[offset : offset + size]


class Shader(Program):
    """A Kernel for WGSL of tinygrad; the same source is compiled once."""

    _kernels: ClassVar[Any] = WeakValueDictionary()  # by name and source

    def __init__(self, dev: Any, obj: Any) -> None:
        self.name, source = obj.name, obj.lib.decode()
        kernel = self._kernels.get((self.name, source))
        if kernel is None:
            kernel = Kernel(source, self.name, check=False)
            self._kernels[self.name, source] = kernel
        self.kernel = kernel

    def __call__(
        self,
        *bufs: Tensor,
        global_size: Any = (1, 1, 1),
        local_size: Any = (1, 1, 1),
        vals: tuple[int, ...] = (),
        wait: bool = False,
        **_: Any,
    ) -> float | None:
        here = place()
        here.check(self.name, len(bufs), local_size)
        groups = tuple(map(int, global_size))
        args: tuple[Tensor | int, ...] = here.infinity, *bufs, *vals
        if wait:
            return here.time(self.kernel, args, groups)
        self.kernel(*args, workgroups=groups)
        return None


class Graph(GraphRunner):
    """Recorded kernels, whose changed inputs, numbers and sizes are updated first."""

    def __init__(self, linear: Any, input_uops: tuple[Any, ...] = ()) -> None:
        super().__init__(linear, input_uops)
        #: (call, position of the argument, number of the input, the tensor there)
        self._inputs: list[tuple[int, int, int, Tensor | None]] = []
        #: For each call how many buffers come before its numbers.
        self._buffers: list[int] = []
        with batch() as self._batch:
            for call, (_, ast, bufs, fixed) in enumerate(self.calls):
                program = ast.arg
                values = dict.fromkeys((*self.vars, *program.runtimevars), 1) | fixed
                sizes, local = program.launch_dims(values)
                tensors = [bufs[i]._buf for i in program.globals]
                self.runtimes[call](
                    *tensors,
                    global_size=sizes,
                    local_size=local,
                    vals=program.vals(values),
                )
                self._buffers.append(len(tensors))
                for position, number in self.uop_replace[call]:
                    if position in program.globals:
                        at = program.globals.index(position)
                        self._inputs.append((call, at, number, tensors[at]))

    def __call__(
        self, input_uops: tuple[Any, ...], var_vals: dict[str, int], wait: bool = False
    ) -> float | None:
        changes: dict[int, dict[int, Any]] = {}
        inputs: list[tuple[int, int, int, Tensor | None]] = []
        for call, at, number, before in self._inputs:
            tensor = input_uops[number].buffer.ensure_allocated()._buf
            if tensor is not before:
                changes.setdefault(call, {})[1 + at] = tensor
            inputs.append((call, at, number, tensor))
        for call, i, value in self.updated_vars(var_vals):
            changes.setdefault(call, {})[1 + self._buffers[call] + i] = value
        sizes = {call: size for call, size, _ in self.updated_launch_dims(var_vals)}
        # After an update that fails, the next call sends all tensors again.
        self._inputs = [(*each[:3], None) for each in self._inputs]
        for call in {*changes, *sizes}:
            groups = tuple(map(int, sizes[call])) if call in sizes else None
            self._batch.update(call, changes.get(call), workgroups=groups)
        self._inputs = inputs
        if wait:
            return place().elapsed(self._batch.run)
        self._batch.run()
        return None


class WebGpuDevice(Compiled):
    """The device that tinygrad opens under the name WEBGPU."""

    def __init__(self, device: str) -> None:
        if device != NAME:
            raise BufferError(
                f"dlpack_web_tinygrad has one device, {NAME}: no {device}"
            )
        super().__init__(
            device, Memory(self), [WGSLRenderer], Shader, Graph, arch=_arch()
        )

    def synchronize(self) -> None:
        """Waits for the GPU where Python may wait; its queue keeps the order."""
        place().wait()


def _arch() -> str:
    return "shader-f16" if place().has("shader-f16") else ""


class InterpretedMemory(PythonAllocator):
    """tinygrad's memory of its interpreter, and memory at an address."""

    def _alloc(self, size: int, options: Any) -> Any:
        if options is None or options.external_ptr is None:
            return super()._alloc(size, options)
        return helpers.to_mv(options.external_ptr, size)


class CPUDevice(PythonDevice):
    """tinygrad's interpreter, for its CPU device."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.allocator = InterpretedMemory(self)


def has_compiler() -> bool:
    """Whether tinygrad's CPU device has the C compiler that even its copies need."""
    return shutil.which(os.environ.get("CC", "clang")) is not None


def _provide(name: str, kind: Any) -> None:
    """Makes a class tinygrad's device of that name, in place of tinygrad's own."""
    path = f"tinygrad.runtime.ops_{name.lower()}"
    module = sys.modules[path] = ModuleType(path)
    vars(module)[kind.__name__] = kind
    type(Devices).get_class.cache_clear()


def use(device: Device) -> None:
    """Makes `device` tinygrad's WEBGPU device, and that its default. Processes are for
    the environment to allow: pages have none, and a GPU device survives no fork.
    Without a compiler Python interprets what tinygrad does on the CPU: reading a
    constant is that, too."""
    global _cache
    opened = Devices[NAME] if NAME in Devices._opened_devices else None
    if opened is not None and not isinstance(opened, WebGpuDevice):
        raise BufferError(
            f"tinygrad has opened its own {NAME} device: call "
            "dlpack_web_tinygrad.install() before the first use of tinygrad"
        )
    if move(device):
        # Those on the device before are of no use.
        TinyTensor.manual_seed(TinyTensor._seed)
        if opened is not None:
            opened.arch = _arch()
            opened.cached_renderer.clear()
    _provide(NAME, WebGpuDevice)
    _numbers.teach()
    if not has_compiler() and "CPU" not in Devices._opened_devices:
        _provide("CPU", CPUDevice)
    if not helpers.DEV.device:
        helpers.DEV.value = NAME
    helpers.PARALLEL.value = int(os.environ["PARALLEL"])
    helpers.JIT_BATCH_SIZE.value = int(os.environ["JIT_BATCH_SIZE"])
    facts = _arch(), place().sizes()
    if _cache is None or _cache.facts != facts:
        _cache = Cache(WGSLRenderer, facts)
        _cache.load()
