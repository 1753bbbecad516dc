"""WebGPU devices and kernels. Everything here needs a browser."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from . import _browser
from ._device import CPU, Device, DLDeviceType, parse_device, webgpu_device
from ._dtype import parse_dtype
from ._tensor import Tensor, default_device, made
from ._views import extents

__all__ = [
    "Kernel",
    "from_image",
    "request_device",
    "share_device",
    "stats",
    "to_canvas",
    "use_device",
]


async def request_device(**limits: Any) -> Device:
    """Asks the browser for a GPUDevice and registers it for tensors.

    limits: WebGPU's names, for example maxBufferSize=2**30 (bytes); those not named are
    WebGPU's defaults, but for maxBufferSize and maxStorageBufferBindingSize, which are
    all that the adapter has. features: a list of WebGPU's names; without it shader-f16,
    subgroups and timestamp-query, as far as the adapter has them.

    BufferError says why there is no device: no WebGPU, no adapter, or a limit above the
    adapter's. TypeError: no such limit.
    """
    promise = _browser.call("requestDevice", _browser.options(limits))
    return webgpu_device(await _browser.finish(promise))


def use_device(js_device: Any) -> Device:
    """Registers a GPUDevice (JsProxy) made elsewhere; the same device gets the same id.

    It stays its maker's: it is never destroyed here.
    """
    return webgpu_device(_browser.call("useDevice", js_device))


async def share_device(**libraries: Any) -> Device:
    """One device for several JavaScript libraries that take it as they start.

    libraries: ort=, tf=, jax= (their modules, JsProxy), three= (a WebGPURenderer that
    has not started). The device is that of a library which has started already, else a
    new one with all that the adapter allows. From then on `from_js` takes the tensors
    of these libraries. BufferError if two run on different devices.
    """
    promise = _browser.call("shareDevice", _browser.options(libraries))
    return webgpu_device(await _browser.finish(promise))


def stats() -> list[dict[str, Any]]:
    """What each registered device holds and has done, in bytes where no unit is said.

    device, lost (why, or None); buffers (their number) and bytes under tensors;
    idleBytes that wait to be used again; created and reused (numbers of buffers); up,
    down and copied: what was uploaded, read back and copied between buffers; copies: in
    how many copies, one for each tensor.
    """
    return _browser.stats()


async def from_image(
    js_source: Any,
    device: str | tuple[int, int] = "webgpu",
    dtype: Any = "uint8",
    channels: int = 4,
) -> Tensor:
    """An image of the page as a Tensor on a WebGPU device; the CPU sees no pixel of it.

    js_source (JsProxy): a canvas, ImageBitmap, ImageData, VideoFrame, <img>, <video>,
    or a GPUTexture of that device (rgba8unorm or bgra8unorm with TEXTURE_BINDING, 2d,
    one layer, one sample). It stays its owner's, who keeps it open until this returns.

    The result has shape (height, width, channels), the first row on top, and is the
    caller's to release. dtype: "uint8" (0 to 255) or "float32" (0 to 1). channels: 4,
    or 3 without alpha. Pixels are sRGB and not premultiplied by alpha. Opaque canvases
    and bitmaps, ImageData, and an ImageBitmap made with premultiplyAlpha="none" keep
    every byte (but the bitmap in Firefox); translucent canvases hold premultiplied
    colours, which have fewer values.

    BufferError for what has no pixels (closed, not loaded, cross-origin), is larger than
    maxTextureDimension2D or a texture of another kind, and for another dtype or device;
    TypeError for other sources, ValueError for other channels.
    """
    target = parse_device(device)
    if target == CPU:
        raise BufferError("an image comes to 'webgpu'; to_host() reads it from there")
    if target is None:
        target = default_device()
    if not _browser.is_js(js_source):
        what = type(js_source).__qualname__
        raise TypeError(f"from_image takes an image of JavaScript, not a {what}")
    options = _browser.options({"dtype": str(parse_dtype(dtype)), "channels": channels})
    make = _browser.method("fromImage")
    return made(await _browser.receive_later(make, js_source, target.id, options))


async def to_canvas(tensor: Tensor, js_canvas: Any) -> None:
    """Draws a Tensor on a canvas (JsProxy); the CPU sees no pixel of it.

    tensor: on WebGPU, shape (height, width, channels), uint8 (0 to 255) or float32 (0 to
    1, clipped); channels: 1 grey, 3 red, green, blue, 4 with alpha, not premultiplied.
    The canvas takes its size, and its "webgpu" context is configured for its device.

    BufferError for other tensors, and for a canvas that has a context of another kind or
    was transferred; TypeError for what is no Tensor or no canvas.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_canvas draws a Tensor, not a {type(tensor).__qualname__}")
    await _browser.finish(_browser.call_with("toCanvas", (tensor,), js_canvas))


class Kernel:
    """A WGSL compute shader whose bindings are tensors, or numbers for uniforms.

    Calling it binds argument i at `@group(0) @binding(i)` and submits; it does not wait.
    The shader is compiled once per device. Errors that WebGPU finds later (WGSL that
    does not compile, say) are raised by the next `await t.to_host()`.
    """

    def __init__(self, wgsl: str, entry: str = "main") -> None:
        self._wgsl, self._entry = wgsl, entry
        # By device id: the JavaScript Kernel and the function that runs it.
        self._compiled: dict[int, tuple[Any, Any]] = {}

    def __call__(
        self, *args: Tensor | float, workgroups: int | Sequence[int] = (1, 1, 1)
    ) -> None:
        """Binds and submits. Numbers, also NumPy's, are for uniforms of f32, i32, u32."""
        device, counts = self._prepare(args, workgroups)
        numbers, values = _arguments(args)
        _browser.invoke(self._compiled[device][1], *counts, numbers, *values)

    async def time(
        self, *args: Tensor | float, workgroups: int | Sequence[int] = (1, 1, 1)
    ) -> float:
        """Runs once; the time that the GPU took for it, in milliseconds.

        BufferError if the device lacks the feature "timestamp-query", which
        `request_device()` asks for where the adapter has it.
        """
        device, counts = self._prepare(args, workgroups)
        kernel, _ = self._compiled[device]
        numbers, values = _arguments(args)
        promise = _browser.call("time", device, kernel, *counts, numbers, *values)
        return float(await _browser.finish(promise))

    def _prepare(
        self, args: Sequence[object], workgroups: int | Sequence[int]
    ) -> tuple[int, tuple[int, ...]]:
        """Id of the device, on which the shader is compiled then; workgroups of 3 axes."""
        counts = _counts(workgroups)
        device = _common_device(args)
        if device not in self._compiled:
            kernel = _browser.call("kernel", self._wgsl, self._entry, device)
            self._compiled[device] = kernel, _browser.call("runner", kernel)
        return device, counts


def _counts(workgroups: Any) -> tuple[int, ...]:
    """Workgroups of three axes; NumPy's integers are ints as well."""
    try:
        counts = extents(workgroups)
    except TypeError:
        raise TypeError(
            f"workgroups must be one to three ints, not {workgroups!r}"
        ) from None
    if not 1 <= len(counts) <= 3:
        raise ValueError(f"workgroups must be one to three counts, not {workgroups!r}")
    return (*counts, 1, 1)[:3]


def _common_device(args: Sequence[object]) -> int:
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    places = {tensor.__dlpack_device__() for tensor in tensors}
    if len(places) == 1 and len(tensors) == len(args):
        ((kind, device_id),) = places
        if kind == 15:  # kDLWebGPU; enum members are slow to look up
            return device_id
    devices = set()
    for position, arg in enumerate(args):
        if isinstance(arg, Tensor) or not isinstance(arg, Real):
            devices.add(_device_of(position, arg))
    if not devices:
        raise TypeError("a kernel needs at least one tensor")
    if len(devices) > 1:
        names = ", ".join(f"webgpu:{device}" for device in sorted(devices))
        raise BufferError(f"the tensors of one kernel must share a device, not {names}")
    return devices.pop()


def _arguments(args: Sequence[Any]) -> tuple[int, list[int | float]]:
    """Which arguments are numbers, as bits, and what JavaScript gets of each."""
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    if len(tensors) == len(args):
        return 0, list(map(id, args))
    numbers = 0
    values: list[int | float] = []
    for position, arg in enumerate(args):
        if isinstance(arg, Tensor):
            values.append(id(arg))
        else:
            numbers |= 1 << position
            values.append(_number(arg))
    return numbers, values


def _number(arg: Any) -> int | float:
    value: int | float = arg.item() if hasattr(arg, "item") else arg  # NumPy's scalars
    return value


def _device_of(position: int, tensor: object) -> int:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"argument {position} is a {type(tensor).__qualname__}; a kernel takes "
            "Tensors, for example dlpack_web.from_dlpack(x, device='webgpu'), and numbers"
        )
    kind, device_id = tensor.__dlpack_device__()
    if kind != DLDeviceType.kDLWebGPU:
        raise BufferError(
            f"argument {position} is on {tensor.device}; a kernel takes WebGPU "
            "tensors: use t.to_device('webgpu')"
        )
    return device_id
