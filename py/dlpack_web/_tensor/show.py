"""The repr of a Tensor, and its display in notebooks: properties, and a small picture of
the elements."""

import base64
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._backends import is_loaded, owner_of
from .._core import ReleasedError
from .facts import Facts

if TYPE_CHECKING:
    import numpy as np

SAMPLES = 1 << 16  # elements that a picture samples
SIDE = 96  # pixels of a thumbnail, at most
BINS = 32
SHOWN = 12  # elements that a repr shows, or less of each axis


def escape(text: str) -> str:
    """HTML's escapes. Imported late: with it comes a table of 2,231 names of characters."""
    from html import escape

    return escape(text)


def html(
    title: str,
    facts: Mapping[str, str],
    picture: "np.ndarray[Any, Any] | str",
    elements: str = "",
) -> str:
    """One block of HTML without scripts or styles: a table of properties and, as its
    last rows, a thumbnail of images; else the elements, and a histogram (of numbers)
    or a text instead."""
    rows = "".join(
        f"<tr><th align='left'>{escape(name)}</th>"
        f"<td align='left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    if isinstance(picture, str):
        shown = f"<small>{escape(picture)}</small>"
    elif _is_image(picture):
        shown, elements = _thumbnail(picture), ""
    else:
        shown = _histogram(picture)
    if elements:
        rows += (
            f"<tr><td align='left' colspan='2'><pre>{escape(elements)}</pre></td></tr>"
        )
    return (
        f"<div><table cellpadding='4'><caption>{escape(title)}</caption>{rows}"
        f"<tr><td align='left' colspan='2'>{shown}</td></tr></table></div>"
    )


def array_elements(array: "np.ndarray[Any, Any]", prefix: str) -> str:
    """The elements as in NumPy's repr, shortened to the first and last ones of each
    axis; "" if they are bytes without a meaning, or have too many axes."""
    import numpy as np

    if array.dtype.kind == "V" and not array.dtype.isbuiltin:
        return ""
    if array.ndim > 4 and array.size > SHOWN:
        return ""
    edge = 3 if array.ndim < 2 else 2 if array.ndim == 2 else 1
    return np.array2string(
        array, separator=", ", prefix=prefix, threshold=SHOWN, edgeitems=edge
    )


def size_of(count: int) -> str:
    """1500 -> "1.5 KB" (powers of ten)."""
    power = min(len(str(count)) - 1, 9) // 3
    return f"{count / 1000**power:.4g} {('B', 'KB', 'MB', 'GB')[power]}"


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
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.abs(some) if array.dtype.kind == "c" else some.astype("f8")
    except (TypeError, ValueError):
        return "<small>elements without a numeric dtype in NumPy</small>"
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return "<small>no finite elements</small>"
    low, high = float(finite.min()), float(finite.max())
    # Not np.histogram: it refuses ranges that are too narrow for their numbers, or overflow.
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
    """A view of at most SAMPLES elements, evenly spaced."""
    while array.size > SAMPLES:
        axis = max(range(array.ndim), key=lambda i: array.shape[i])
        step = min(-(-array.size // SAMPLES), array.shape[axis])
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    return array


# Bytes that a picture may read back from a GPU.
_PICTURE_BYTES = 256 << 10


def repr_elements(tensor: Facts) -> str:
    """The elements for a repr, if the CPU reads them at once; else ""."""
    packed = tensor.dtype.bits < 8 and tensor.size > SHOWN  # all would be unpacked
    if not tensor.device.is_host or packed:
        return ""
    try:
        text = array_elements(tensor.numpy(), "Tensor(")
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - no NumPy, a dtype that it lacks: facts will do
        text = ""
    return text and f"{text}, "


def table(tensor: Facts) -> dict[str, str]:
    """The properties, by their names in a notebook."""
    return {
        "dtype": tensor.dtype + (", a byte each" if tensor.padded else ""),
        "shape": str(tensor.shape),
        "strides": f"{tensor.strides}, in elements",
        "device": str(tensor.device),
        "size": size_of(tensor.nbytes),
        "access": "read-only" if tensor.read_only else "read and write",
        "memory of": memory_of(tensor),
    }


def memory_of(tensor: Facts) -> str:
    """The owner of the memory."""
    if not tensor.device.is_host:
        pooled = False
        with suppress(ReleasedError):  # the handle is of no GPUBuffer known here
            pooled = is_loaded() and owner_of(tensor).is_pooled(tensor)
        return "dlpack_web, in its pool" if pooled else "the creator of the GPUBuffer"
    owner = tensor._owner
    if isinstance(owner, bool):
        return "another DLPack producer" if owner else "dlpack_web"
    return f"{type(owner).__module__}.{type(owner).__qualname__}"


def picture(tensor: Facts) -> "np.ndarray[Any, Any] | str":
    """The elements to show, or why they are not shown."""
    if tensor.size == 0:
        return "no elements"
    if not tensor.device.is_host:
        if tensor.nbytes > _PICTURE_BYTES:
            return "on the GPU, and too large to read back only for display: await t.to_host()"
        if not owner_of(tensor).can_block():
            return "on the GPU: await t.to_host()"
    try:
        return tensor.numpy()
    except (BufferError, ImportError) as error:
        if tensor.released:
            raise
        return str(error)
