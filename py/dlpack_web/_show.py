"""Tensors as notebooks show them: facts, and a small picture of the elements."""

import base64
import struct
import zlib
from html import escape
from typing import TYPE_CHECKING, Any

from . import _browser
from ._device import CPU
from ._errors import ReleasedError

if TYPE_CHECKING:
    import numpy as np

    from ._tensor import Tensor

# What a picture may read back from a GPU, and how many elements it looks at.
READ_BYTES = 256 << 10
SAMPLES = 1 << 16
SIDE = 96  # pixels of a thumbnail, at most
BINS = 32


def html(tensor: "Tensor") -> str:
    """The tensor as HTML without scripts or styles: a table and, where it is cheap, a
    thumbnail (of images) or histogram (of numbers)."""
    if tensor.released:
        return f"<code>{escape(repr(tensor))}</code>"
    facts = {
        "dtype": tensor.dtype + (", a byte each" if tensor.padded else ""),
        "shape": str(tensor.shape),
        "strides": f"{tensor.strides}, in elements",
        "device": str(tensor.device),
        "size": size_of(tensor.nbytes),
        "access": "read-only" if tensor.read_only else "read and write",
        "memory of": _owner(tensor),
    }
    rows = "".join(
        f"<tr><th align='left'>{name}</th><td align='left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return (
        f"<table><caption>dlpack_web.Tensor</caption>{rows}</table>{_picture(tensor)}"
    )


def _owner(tensor: "Tensor") -> str:
    if tensor.device != CPU:
        pooled = _browser.call_with("isPooled", (tensor,))
        return "dlpack_web, in its pool" if pooled else "whoever made the GPUBuffer"
    owner = tensor._owner
    if isinstance(owner, bool):
        return "another DLPack producer" if owner else "dlpack_web"
    return f"{type(owner).__module__}.{type(owner).__qualname__}"


def size_of(count: int) -> str:
    """1500 -> "1.5 KB" (powers of ten)."""
    power = min(len(str(count)) - 1, 9) // 3
    return f"{count / 1000**power:.4g} {('B', 'KB', 'MB', 'GB')[power]}"


def _picture(tensor: "Tensor") -> str:
    if tensor.size == 0:
        return "<small>no elements</small>"
    if tensor.device != CPU:
        if tensor.nbytes > READ_BYTES:
            what = "on the GPU, and more than is read back only to be shown"
            return f"<small>{what}: await t.to_host()</small>"
        if not _browser.can_block():
            return "<small>on the GPU: await t.to_host()</small>"
    try:
        array = tensor.numpy()
    except (BufferError, ImportError, ReleasedError) as error:
        return f"<small>{escape(str(error))}</small>"
    if _is_image(array):
        return _thumbnail(array)
    return _histogram(array)


def _is_image(array: "np.ndarray[Any, Any]") -> bool:
    kind, shape = array.dtype.kind, array.shape
    if min(shape[:2], default=0) < 8 or kind not in "bfu":
        return False
    if len(shape) == 2:
        return array.dtype.name in ("uint8", "bool")
    return len(shape) == 3 and shape[2] in (1, 3, 4) and array.dtype.itemsize <= 4


def _thumbnail(array: "np.ndarray[Any, Any]") -> str:
    """Every n-th pixel, as PNG. Floats are 0 to 1."""
    import numpy as np

    height, width = array.shape[:2]
    step = -(-max(height, width) // SIDE)
    pixels = array[::step, ::step]
    if array.dtype.name != "uint8":
        with np.errstate(invalid="ignore"):
            pixels = (np.nan_to_num(pixels.astype("f4")).clip(0, 1) * 255).astype("u1")
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    png = _png(np.ascontiguousarray(pixels))
    source = base64.b64encode(png).decode()
    rows, columns, _ = pixels.shape
    zoom = max(1, SIDE // max(rows, columns))
    return (
        f"<img alt='thumbnail, every {step} pixels' width='{columns * zoom}' "
        f"height='{rows * zoom}' src='data:image/png;base64,{source}'>"
    )


def _png(pixels: "np.ndarray[Any, Any]") -> bytes:
    """Bytes of shape (height, width, 1 grey | 3 RGB | 4 RGBA) as a PNG file (RFC 2083)."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each with filter "none"

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IEND", b"")


def _histogram(array: "np.ndarray[Any, Any]") -> str:
    import numpy as np

    some = _thin(array)
    try:
        values = np.abs(some) if array.dtype.kind == "c" else some.astype("f8")
    except (TypeError, ValueError):
        return "<small>elements that NumPy has no numbers for</small>"
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return "<small>no finite elements</small>"
    low, high = float(finite.min()), float(finite.max())
    # Not np.histogram: it refuses ranges that are narrow for their numbers, or overflow.
    part = (finite / 2 - low / 2) / ((high / 2 - low / 2) or 1)
    counts = np.bincount((BINS * part).astype(int).clip(0, BINS - 1), minlength=BINS)
    bars = "".join(
        f"<rect x='{3 * i}' y='{40 - h:.1f}' width='2' height='{h:.1f}'/>"
        for i, h in enumerate(40 * counts / counts.max())
        if h
    )
    told = [f"{low:.4g} to {high:.4g}"]
    if array.dtype.kind == "c":
        told.append("absolute values")
    if some.size < array.size:
        told.append(f"{some.size} of {array.size} elements")
    if finite.size < values.size:
        told.append(f"{values.size - finite.size} not finite")
    caption = ", ".join(told)
    return (
        f"<svg width='{3 * BINS}' height='40' fill='currentColor' role='img' "
        f"aria-label='histogram: {caption}'>{bars}</svg><br><small>{caption}</small>"
    )


def _thin(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """A view of at most SAMPLES elements, evenly out of all."""
    while array.size > SAMPLES:
        axis = max(range(array.ndim), key=lambda i: array.shape[i])
        step = min(-(-array.size // SAMPLES), array.shape[axis])
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    return array
