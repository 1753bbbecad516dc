"""How a Tensor is shown: repr(), str(), and in notebooks its properties with a small picture
of the elements.

str() has the elements, also those on a GPU where Python may wait for them. Of a large tensor
only the ends of each axis are read and shown, as NumPy shows them.
"""

import base64
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from math import prod
from typing import Any

from .. import _core
from .._backends import is_loaded, owner_of
from .._backends.calls import refuse_recorded
from .._core import ReleasedError, Tensor
from .._layout.dtype import Array
from .arrays import is_raw, numbers, view_array
from .transfer import like

SAMPLES = 1 << 16  # elements that a picture samples
SIDE = 96  # pixels of a thumbnail, at most
BINS = 32
SHOWN = 12  # elements that a repr shows, or less of each axis
_WIDE = " colspan='2'"


def escape(text: str) -> str:
    """HTML's escapes. Imported late: with it comes a table of 2,231 names of characters."""
    from html import escape

    return escape(text)


def cell(tag: str, inside: str, more: str = "") -> str:
    """A cell of a table. JupyterLab's styles align cells to the right, but not a block in
    them; pages may forbid styles."""
    return f"<{tag}{more}><div align='left'>{inside}</div></{tag}>"


def html(
    title: str,
    facts: Mapping[str, str],
    picture: Array | str,
    elements: str = "",
) -> str:
    """One block of HTML without scripts or styles: a table of properties and, as its
    last rows, a thumbnail of images; else the elements, and a histogram (of numbers)
    or a text instead."""
    rows = "".join(
        f"<tr>{cell('th', escape(name))}{cell('td', escape(value))}</tr>"
        for name, value in facts.items()
    )
    if isinstance(picture, str):
        shown = f"<small>{escape(picture)}</small>"
    elif _is_image(picture):
        shown, elements = _thumbnail(picture), ""
    else:
        shown = _histogram(picture)
    if elements:
        rows += f"<tr>{cell('td', f'<pre>{escape(elements)}</pre>', _WIDE)}</tr>"
    return (
        f"<div><table cellpadding='4'><caption>{escape(title)}</caption>{rows}"
        f"<tr>{cell('td', shown, _WIDE)}</tr></table></div>"
    )


def size_of(count: int) -> str:
    """1500 -> "1.5 KB" (powers of ten)."""
    power = min(len(str(count)) - 1, 9) // 3
    return f"{count / 1000**power:.4g} {('B', 'KB', 'MB', 'GB')[power]}"


def _is_image(array: Array) -> bool:
    kind, shape = array.dtype.kind, array.shape
    if min(shape[:2], default=0) < 8 or kind not in "bfu":
        return False
    if len(shape) == 2:
        return array.dtype.name in ("uint8", "bool")
    return len(shape) == 3 and shape[2] in (1, 3, 4) and array.dtype.itemsize <= 4


def _thumbnail(array: Array) -> str:
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


def _png(pixels: Array) -> bytes:
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


def _histogram(array: Array) -> str:
    import numpy as np

    try:
        some = _thin(numbers(array))
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


def _thin(array: Array) -> Array:
    """A view of at most SAMPLES elements, evenly spaced."""
    while array.size > SAMPLES:
        axis = max(range(array.ndim), key=lambda i: array.shape[i])
        step = min(-(-array.size // SAMPLES), array.shape[axis])
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    return array


# Bytes that a picture may read back from a GPU.
_PICTURE_BYTES = 256 << 10
TOO_LARGE = "on the GPU, and too large to read back only for display: await t.to_host()"


def repr_elements(tensor: Tensor) -> str:
    """The elements for a repr as in NumPy's, shortened to the first and last ones of each
    axis; "" if the CPU does not read them at once, or they have too many axes."""
    many = tensor.size > SHOWN
    packed = tensor.dtype.bits % 8 and many  # all would be unpacked
    if not tensor.device.is_host or packed or (tensor.ndim > 4 and many):
        return ""
    try:
        import numpy as np

        array = tensor.numpy()
        if is_raw(array):
            return ""
        edge = 3 if array.ndim < 2 else 2 if array.ndim == 2 else 1
        shown: dict[str, Any] = {"threshold": SHOWN, "edgeitems": edge}
        return f"{np.array2string(array, separator=', ', prefix='Tensor(', **shown)}, "
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - no NumPy, a dtype that it lacks: facts will do
        return ""


def table(tensor: Tensor) -> dict[str, str]:
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


def memory_of(tensor: Tensor) -> str:
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


def picture(tensor: Tensor) -> Array | str:
    """The elements to show, or why they are not shown."""
    if tensor.size == 0:
        return "no elements"
    if not tensor.device.is_host:
        if tensor.nbytes > _PICTURE_BYTES:
            return TOO_LARGE
        if not owner_of(tensor).can_block():
            return "on the GPU: await t.to_host()"
    try:
        return tensor.numpy()
    except (BufferError, ImportError) as error:
        if tensor.released:
            raise
        return str(error)


# --- str() ----------------------------------------------------------------------------------

# What str() reads of a large tensor, at most; all that it reads of a GPU.
_ELEMENTS, _BYTES = 1000, 8 << 10
_NEAR = 8  # neighbours at most this far apart are read together, with what is between


class _NotShownError(Exception):
    """Says how to get the elements."""


def text(tensor: Any) -> str:
    """`Tensor(elements, properties)`. Without elements it ends with how to get them, or
    why they cannot be read. ReleasedError for a released tensor."""
    facts = tensor._said_facts()
    shown, note, why = _elements(tensor, "Tensor(")
    if shown is None:
        return f"Tensor({facts}), {note}{why}"
    return f"Tensor({shown}, {facts}){note}"


def elements(tensor: Any, picture: Array | str = "") -> str:
    """The elements alone, or why they cannot be read unless the picture says it: a read
    that failed counts as reported. "" if the picture says how to get them."""
    shown, note, why = _elements(tensor, "")
    if shown is not None:
        return shown + note
    _ = tensor.shape  # raises ReleasedError if this tensor was released
    said = isinstance(picture, str) and picture and picture in why
    return "" if said else why


def _elements(tensor: Any, prefix: str) -> tuple[str | None, str, str]:
    """The elements and a note on them; or None, and how to get them, or why they cannot
    be read."""
    try:
        return *_read(tensor, prefix), ""
    except MemoryError:
        raise
    except _NotShownError as how:
        return None, str(how), ""
    except Exception as error:  # noqa: BLE001 - of the GPU, or of the memory's owner
        return None, "", f"not readable: {type(error).__name__}: {error}"


def _read(tensor: Any, prefix: str) -> tuple[str, str]:
    on_gpu = not tensor.device.is_host
    way = "await t.to_host()" if on_gpu else "t.numpy()"
    if on_gpu and tensor.size and not owner_of(tensor).can_block():
        raise _NotShownError(f"on the GPU: {way}")
    edge = _edge_of(tensor)
    if edge == 0:
        raise _NotShownError(f"too many to show: {way}")
    shown = tensor if edge is None else _ends(tensor, edge)
    if edge is None and on_gpu:
        shown = tensor._read_blocking() if tensor.size else like(tensor)
    try:
        import numpy as np
    except ImportError:
        return _plain(shown, edge), ""
    return _as_numpy_does(np, shown, edge, prefix)


def _edge_of(tensor: Any) -> int | None:
    """How many elements at both ends of an axis are shown. None: all; 0: none."""
    threshold: float = 1000  # these are NumPy's defaults
    edge = 3
    try:
        import numpy as np
    except ImportError:
        pass
    else:
        options = np.get_printoptions()
        threshold, edge = options["threshold"], options["edgeitems"]
    size, dtype = tensor.size, tensor.dtype
    bits = 8 if tensor.padded else dtype.bits * dtype.lanes
    whole = size <= threshold or not tensor.ndim
    if whole and (tensor.device.is_host or size * bits <= 8 * _BYTES):
        return None
    if bits % 8:  # elements that share bytes have no strides
        return 0
    most = min(_ELEMENTS, 8 * _BYTES // bits)
    fits = (n for n in range(edge, 0, -1) if prod(_short(tensor.shape, n)) <= most)
    return next(fits, 0)


def _short(shape: tuple[int, ...], edge: int) -> tuple[int, ...]:
    """The shape of what is shown: in place of all between the ends, one element more,
    which makes array2string() write "..."."""
    return tuple(min(extent, 2 * edge + 1) for extent in shape)


def _ends(tensor: Any, edge: int) -> Any:
    """A CPU tensor of shape `_short(tensor.shape)` with the elements at the ends of each
    axis. The others have no meaning."""
    # Axes in the order of memory, and the last one has near neighbours.
    order = sorted(range(tensor.ndim), key=lambda axis: -abs(tensor.strides[axis]))
    source = tensor.permute_dims(order)
    short = _short(source.shape, edge)
    target = _core._empty(short, tensor._dtype, tensor.padded)
    pairs = list(_runs(source.shape, source.strides[-1], edge))
    sources = [source[there] for there, _ in pairs]
    targets = [target[here] for _, here in pairs]
    if tensor.device.is_host:
        for one, other in zip(sources, targets, strict=True):
            other.write(one)
    else:
        refuse_recorded(tensor, False)
        owner_of(tensor).read_blocking(sources, targets)
    return target.permute_dims([order.index(axis) for axis in range(tensor.ndim)])


def _runs(shape: tuple[int, ...], step: int, edge: int) -> Iterator[tuple[Any, Any]]:
    """Keys of what is read together in the tensor, and of its place in what is shown."""

    def places(extent: int) -> Iterator[tuple[int, int]]:
        (short,) = _short((extent,), edge)
        for here in range(short):
            if extent <= 2 * edge or here < edge:
                yield here, here
            elif here > edge:
                yield here + extent - short, here

    *outer, last = map(list, map(places, shape))
    near = abs(step) <= _NEAR
    whole = near and len(last) == shape[-1]
    size = len(last) if whole else edge if near else 1
    for places_before in product(*outer):
        there = tuple(place for place, _ in places_before)
        here = tuple(place for _, place in places_before)
        for first in range(0, len(last), size):
            (begin, short) = last[first]
            yield (
                (*there, slice(begin, begin + size)),
                (*here, slice(short, short + size)),
            )


def _as_numpy_does(
    np: Any, shown: Any, edge: int | None, prefix: str
) -> tuple[str, str]:
    array, note = view_array(shown), ""
    options: dict[str, Any] = {"threshold": array.size}
    if edge is not None:
        options = {"threshold": 0, "edgeitems": edge}
    if is_raw(array):
        width = array.dtype.itemsize
        array, kind = array.view(f"u{width}"), shown.dtype.scalar
        if kind == "bfloat16":  # the upper half of a float32
            array = (array.astype("u4") << 16).view("f4")
        elif kind.startswith(("int", "uint")):  # of less than a byte
            sign = 1 << (shown.dtype.bits - 1) if kind.startswith("int") else 0
            array = (array ^ sign).astype("i2") - sign
        else:
            note = ", bytes: ml_dtypes has their numbers"
            options["formatter"] = {"int": lambda x: f"0x{x:0{2 * width}x}"}
    return np.array2string(array, separator=", ", prefix=prefix, **options), note


def _plain(shown: Any, edge: int | None) -> str:
    """Without NumPy."""
    try:
        values = memoryview(shown).tolist()
    except (BufferError, NotImplementedError):
        raise _NotShownError(f"NumPy is needed to show {shown.dtype}") from None

    def write(value: Any) -> str:
        if not isinstance(value, list):
            short = isinstance(value, float) and shown.dtype.bits <= 32
            return f"{value:.8g}" if short else repr(value)
        parts = list(map(write, value))
        if edge is not None and len(value) > 2 * edge:
            parts[edge] = "..."
        return f"[{', '.join(parts)}]"

    return write(values)
