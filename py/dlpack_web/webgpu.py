"""WebGPU devices and kernels: in a browser, or on the desktop with the package wgpu
(`pip install 'dlpack-web[webgpu]'`). The same program runs in both.

>>> device = await dlw.webgpu.request_device()
>>> with dlw.from_dlpack(np.arange(3.0), device=device) as t:
...     await t.to_host()
array([0., 1., 2.])
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, Unpack

from ._backends import default, javascript, owner
from ._backends import stats as all_stats
from ._backends.calls import refuse_recorded
from ._formulas.elementwise import ElementwiseKernel
from ._formulas.reduction import ReductionKernel
from ._kernels.batch import Batch, batch
from ._kernels.kernel import Kernel
from ._layout import DeviceOptions
from ._layout.dtype import parse_dtype
from ._layout.text import type_of
from ._layout.views import extents
from ._tensor.device import (
    CPU,
    Device,
    await_default_device,
    default_device,
    parse_device,
    webgpu_device,
)
from ._tensor.hints import awaited
from ._tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np


__all__ = [
    "Batch",
    "DeviceOptions",
    "ElementwiseKernel",
    "Frames",
    "Kernel",
    "ReductionKernel",
    "batch",
    "frames",
    "from_image",
    "from_wgpu",
    "request_device",
    "share_device",
    "stats",
    "to_canvas",
    "to_image",
    "use_device",
]


@awaited("the device is not requested", "dlw.webgpu.request_device(…)")
async def request_device(**limits: Unpack[DeviceOptions]) -> Device:
    """A GPUDevice of the browser, or of wgpu, registered for tensors.

    Without options it returns the default device, which "webgpu" means: the first
    registered device that is not lost, or a new one if there is none. With options it
    returns the device that the same options gave before, unless it is lost, else a new
    one. So you can run a notebook's cell twice, and label="second" requests a separate
    device.

    Parameters
    ----------
    **limits : DeviceOptions
        Limits by WebGPU's names, for example maxBufferSize=2**30 (bytes). Limits that
        you do not name have WebGPU's defaults, except maxBufferSize and
        maxStorageBufferBindingSize, which are the adapter's; on the desktop they are all
        the adapter's. Also features, label and the other options that `DeviceOptions`
        lists.

    Returns
    -------
    Device
        Its `gpu` is the GPUDevice.

    Raises
    ------
    BufferError
        No WebGPU, no package wgpu or too old a version, no adapter, or a limit above the
        adapter's.
    TypeError
        No such limit.

    Examples
    --------
    >>> device = await dlw.webgpu.request_device(maxBufferSize=2**28)
    >>> device.gpu.limits.maxBufferSize == 2**28
    True
    """
    return webgpu_device(await default().request_device({**limits}))


def use_device(gpu_device: Any) -> Device:
    """Registers a GPUDevice made elsewhere; the same device gets the same id.

    You keep ownership: the device is never destroyed here.

    Parameters
    ----------
    gpu_device : GPUDevice
        In the browser a JsProxy, or the device of wgpu-py or webgpu over one; on the
        desktop a wgpu.GPUDevice.

    Returns
    -------
    Device
        A value for `device=`.

    Examples
    --------
    >>> import js
    >>> adapter = await js.navigator.gpu.requestAdapter()
    >>> device = dlw.webgpu.use_device(await adapter.requestDevice())
    >>> dlw.empty(3, device=device).device == device
    True
    """
    return webgpu_device(default().use_device(gpu_device))


@awaited("the device is not requested", "dlw.webgpu.share_device(…)")
async def share_device(
    *,
    ort: Any = None,
    tf: Any = None,
    jax: Any = None,
    litert: Any = None,
    three: Any = None,
) -> Device:
    """One device for several JavaScript libraries, which take it when they start. Afterwards
    `from_js` takes the tensors of these libraries.

    Parameters
    ----------
    ort, tf, jax, litert : JsProxy, optional
        Their modules; LiteRT.js must be loaded.
    three : JsProxy, optional
        A WebGPURenderer that has not started.

    Returns
    -------
    Device
        That of a library that has already started, else a new one with everything that the
        adapter supports.

    Raises
    ------
    BufferError
        Two of them run on different devices.

    Examples
    --------
    >>> device = await dlw.webgpu.share_device(ort=ort)  # the module of onnxruntime-web
    >>> dlw.empty(3, device=device).device == device
    True
    """
    given = {"ort": ort, "tf": tf, "jax": jax, "litert": litert, "three": three}
    libraries = {
        name: library for name, library in given.items() if library is not None
    }
    share = javascript.calls().adapters.shareDevice
    promise = javascript.invoke(share, javascript.options(libraries))
    return webgpu_device(await javascript.finish(promise))


def stats() -> list[dict[str, Any]]:
    """Memory and work of each registered device.

    Returns
    -------
    list of dict
        A row for each device:

        - device, lost: its name, and why it was lost or None.
        - buffers, bytes: number of the tensors' buffers, and their bytes.
        - idleBytes: pooled for reuse.
        - created, reused: numbers of buffers.
        - up, down, copied: bytes uploaded, read back and copied between buffers.
        - copies: how many copies those took, one for each tensor.
        - taken: buffers handed out by `gpu_buffer`, which the garbage collector frees.

    Examples
    --------
    >>> device = await dlw.webgpu.request_device(label="counted")
    >>> t = dlw.from_dlpack(np.arange(3.0), device=device)
    >>> [row["up"] for row in dlw.webgpu.stats() if row["device"] == str(device)]
    [24]
    """
    return all_stats()


@awaited("the image is not uploaded", "dlw.webgpu.from_image(…)")
async def from_image(
    source: Any,
    device: str | tuple[int, int] = "webgpu",
    dtype: Any = "uint8",
    channels: int = 4,
) -> Tensor:
    """An image as a Tensor on a WebGPU device; in a page no pixel passes through the CPU.

    The pixels are as the user sees them: all that the file has, however densely a srcset shows
    an <img>, turned as its EXIF data says, which Pillow does not do itself (Firefox 153
    scales an <img> by the density in it). A page shows files of 16 bits with 8; ImageData of
    float16 raises BufferError. On the desktop files of 16 bits do, as Pillow's modes "I;16",
    "I" and "F" do: scale their values first.

    Pixels are sRGB and not premultiplied by alpha. Opaque canvases and bitmaps, ImageData,
    and an ImageBitmap made with premultiplyAlpha="none" keep every byte (except that bitmap
    in Firefox); translucent canvases hold premultiplied colours, which have fewer values.

    Parameters
    ----------
    source : JsProxy, ndarray, Pillow image or texture
        You keep ownership; keep it open until this returns. In a page: a canvas, ImageBitmap,
        ImageData, VideoFrame, <img>, <video>, or a GPUTexture of that device (rgba8unorm or
        bgra8unorm with TEXTURE_BINDING, 2d, one layer, one sample). On the desktop: an array
        of uint8 of shape (height, width) or (height, width, 1, 3 or 4), a Pillow image of 8
        bits, or a wgpu.GPUTexture with COPY_SRC.
    device : str or Device
        A WebGPU device.
    dtype : str
        "uint8" (0 to 255) or "float32" (0 to 1).
    channels : int
        4, or 3 without alpha.

    Returns
    -------
    Tensor
        Of shape (height, width, channels), the top row first; for you to release.

    Raises
    ------
    BufferError
        The source has no pixels (closed, not loaded, cross-origin), is larger than
        maxTextureDimension2D, or is a texture of another kind; or another dtype or device.
    TypeError, ValueError
        Other sources; other channels.

    Examples
    --------
    >>> import js
    >>> canvas = js.OffscreenCanvas.new(4, 2)
    >>> context = canvas.getContext("2d")
    >>> device = await dlw.webgpu.request_device()
    >>> image = await dlw.webgpu.from_image(canvas, device)
    >>> image.shape, image.dtype
    ((2, 4, 4), 'uint8')
    """
    target, wanted = _target(device), parse_dtype(dtype)
    target = target or await await_default_device()
    return await owner(target.id).from_image(source, target.id, wanted, channels)


def _target(device: str | tuple[int, int]) -> Device | None:
    """The device for an image; None: the default."""
    target = parse_device(device)
    if target is CPU:
        raise BufferError("images are uploaded to 'webgpu'; to_host() reads them back")
    return target


def frames(
    source: Any,
    device: str | tuple[int, int] = "webgpu",
    dtype: Any = "uint8",
    channels: int = 4,
) -> "Frames":
    """A Tensor for each picture of a video, a camera or a canvas, at the display's rate; no
    pixel passes through the CPU. Only in a page.

    A video gives each new picture once, a canvas one for each frame of the display. Pictures
    that arrive while the loop or the GPU is busy are skipped, as are those that a video no
    longer has when they are taken (an error after 30 in a row). A new one is taken only when
    the GPU has finished the one before the last. A hidden tab gets none; the loop goes on
    when it is shown.

    Parameters
    ----------
    source : JsProxy
        A source for `from_image`, or a MediaStreamTrack or MediaStream with video.
    device, dtype, channels
        As for `from_image`.

    Returns
    -------
    Frames
        An asynchronous iterator. Each Tensor is released when the loop asks for the next. The
        loop ends with the video or track, or with `stop()`, which a `with` block calls.

    Raises
    ------
    BufferError
        As for `from_image`; a video that cannot be played.
    DeviceLostError
        The device was lost.

    Examples
    --------
    >>> import js
    >>> canvas = js.OffscreenCanvas.new(4, 2)
    >>> context = canvas.getContext("2d")
    >>> device = await dlw.webgpu.request_device()
    >>> with dlw.webgpu.frames(canvas, device) as frames:
    ...     async for image in frames:
    ...         break
    >>> frames.stats["frames"], frames.stats["bytes"]
    (1, 32)
    """
    target, wanted = _target(device) or default_device(), parse_dtype(dtype)
    return Frames(owner(target.id).frames(source, target.id, wanted, channels))


class Frames:
    """The result of `frames`: an asynchronous iterator of Tensors.

    >>> import js
    >>> canvas = js.OffscreenCanvas.new(4, 2)
    >>> context = canvas.getContext("2d")
    >>> frames = dlw.webgpu.frames(canvas, await dlw.webgpu.request_device())
    >>> (await anext(frames)).shape
    (2, 4, 4)
    >>> frames.stop()
    """

    def __init__(self, kept: Any) -> None:
        self._kept = kept  # JavaScript's, which end when this is collected
        self._last: Tensor | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Tensor:
        self._let_go()
        found = await javascript.finish(javascript.invoke(self._kept.js.next))
        if found is None:
            raise StopAsyncIteration
        take = javascript.calls().tensors.fromJs
        self._last = javascript.receive(take, found)
        return self._last

    def stop(self) -> None:
        """Ends the iteration, even while the loop waits for a frame.

        >>> import js
        >>> canvas = js.OffscreenCanvas.new(4, 2)
        >>> frames = dlw.webgpu.frames(canvas, await dlw.webgpu.request_device())
        >>> frames.stop()
        >>> [image async for image in frames]
        []
        """
        self._kept.js.release()
        self._let_go()

    @property
    def stats(self) -> dict[str, float]:
        """Statistics.

        - frames: number of frames returned.
        - skipped: pictures of a video that were not taken.
        - fps: frames a second, over the last second.
        - ms: from taking a frame until the GPU finished the work submitted for it.
        - late: the most frames that were unfinished when another was taken, at most 1.
        - bytes: of a frame.
        - moved: bytes of tensors that the device uploaded and read back during the last frame.

        >>> import js
        >>> canvas = js.OffscreenCanvas.new(4, 2)
        >>> frames = dlw.webgpu.frames(canvas, await dlw.webgpu.request_device())
        >>> frames.stats["frames"]
        0
        >>> frames.stop()
        """
        return dict(self._kept.js.stats().to_py())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _let_go(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.release()


async def to_canvas(tensor: Tensor, js_canvas: Any) -> None:
    """Draws a Tensor on a canvas; no pixel passes through the CPU.

    Parameters
    ----------
    tensor : Tensor
        On WebGPU, shape (height, width, channels), uint8 (0 to 255) or float32 (0 to 1,
        clipped). Channels: 1 grey, 3 red, green, blue, 4 with alpha, not premultiplied.
    js_canvas : JsProxy
        Gets the tensor's size; its "webgpu" context is configured for the tensor's device.

    Raises
    ------
    BufferError
        Another tensor; a canvas that has another kind of context or was transferred.
    TypeError
        Another object.

    Examples
    --------
    >>> import js
    >>> canvas = js.OffscreenCanvas.new(1, 1)
    >>> device = await dlw.webgpu.request_device()
    >>> grey = dlw.from_dlpack(np.full((2, 4, 1), 128, np.uint8), device=device)
    >>> await dlw.webgpu.to_canvas(grey, canvas)
    >>> canvas.width, canvas.height
    (4, 2)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_canvas draws a Tensor, not {type_of(tensor)}")
    refuse_recorded(tensor, False)
    draw = javascript.calls().images.toCanvas
    promise = javascript.invoke(draw, javascript.site(), id(tensor), js_canvas)
    await javascript.finish(promise)


@awaited("the image is not read", "dlw.webgpu.to_image(…)")
async def to_image(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """The pixels of a Tensor as Pillow and others take them. On a page, `to_canvas` draws
    without the CPU.

    Parameters
    ----------
    tensor : Tensor
        Shape (height, width, channels), uint8 (0 to 255) or float32 (0 to 1, clipped).
        Channels: 1 grey, 3 red, green, blue, 4 with alpha.

    Returns
    -------
    ndarray of uint8
        Shape (height, width, channels), without the last axis if there is one channel:
        `Image.fromarray` takes it.

    Raises
    ------
    BufferError
        Another tensor.

    Examples
    --------
    >>> device = await dlw.webgpu.request_device()
    >>> grey = dlw.from_dlpack(np.full((2, 4, 1), 0.5, "float32"), device=device)
    >>> (await dlw.webgpu.to_image(grey)).tolist()
    [[128, 128, 128, 128], [128, 128, 128, 128]]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_image takes a Tensor, not {type_of(tensor)}")
    if tensor.dtype not in ("uint8", "float32"):
        raise BufferError(
            f"{tensor._facts_alone()} as an image is not supported: use uint8 (0 to "
            "255) or float32 (0 to 1)"
        )
    if tensor.ndim != 3 or tensor.shape[2] not in (1, 3, 4):
        raise BufferError(
            f"{tensor._facts_alone()} is not an image: its shape must be (height, "
            "width, channels), channels being 1, 3 or 4"
        )
    import numpy as np

    pixels = await tensor.to_host()
    if pixels.dtype != np.uint8:
        scaled = np.nan_to_num(pixels).clip(0, 1) * 255
        pixels = np.round(scaled).astype(np.uint8)
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def from_wgpu(
    buffer: Any,
    shape: SupportsIndex | Iterable[int],
    dtype: Any,
    *,
    byte_offset: int = 0,
) -> Tensor:
    """A Tensor over a wgpu.GPUBuffer; no copy. Registers the buffer's device if needed. In
    Pyodide also over a Buffer of the package webgpu, on that package's device.

    You keep ownership of the buffer, and must neither map nor destroy it while the Tensor is
    in use: on the desktop that raises BufferError at once, in the browser reading the result
    reports a fault. Operations that need a usage that the buffer lacks raise an error that
    names it.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        In the browser one of wgpu-py's backend for browsers, which is only a stub in all
        releases so far (wgpu-py#753).
    shape, dtype
        Of the elements.
    byte_offset : int
        Of element 0.

    Raises
    ------
    ValueError
        The elements do not fit.
    TypeError
        Not such a buffer.

    Examples
    --------
    >>> buffer = device.create_buffer(size=64, usage="STORAGE")  # doctest: +SKIP
    >>> dlw.webgpu.from_wgpu(buffer, (4, 4), "float32").shape  # doctest: +SKIP
    (4, 4)
    """
    raw, device_id = default().from_wgpu(buffer)
    wanted, sizes = parse_dtype(dtype), extents(shape)
    adopt = owner(device_id).from_gpu_buffer
    # The package webgpu destroys buffers that Python collects, so this one is kept.
    keep = [buffer].clear
    return adopt(raw, sizes, wanted, device_id, byte_offset, keep)


if not TYPE_CHECKING:  # or type checkers would find every name

    def __getattr__(name: str) -> object:
        there = name in getattr(sys.modules[__package__], "__all__", ())
        hint = f": use dlw.{name}" if there else ""
        text = f"module {__name__!r} has no attribute {name!r}{hint}"
        raise AttributeError(text, name=name, obj=sys.modules[__name__])
