"""str() of a Tensor: its elements, also those on a GPU where Python may wait for them. Of
a large tensor only the ends of each axis are read and shown, as NumPy shows them."""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from .. import _core
from .._backends import owner_of
from .arrays import view_array

# What str() reads of a large tensor, at most; all that it reads of a GPU.
_ELEMENTS, _BYTES = 1000, 8 << 10
_NEAR = 8  # neighbours at most this far apart are read together, with what is between


class _NotShownError(Exception):
    """Says how to get the elements."""


def text(tensor: Any) -> str:
    """`Tensor(elements, properties)`. Without elements it ends with how to get them, or
    why they cannot be read. ReleasedError for a released tensor."""
    facts = tensor._said_facts()
    try:
        shown, note = _elements(tensor)
        return f"Tensor({shown}, {facts}){note}"
    except MemoryError:
        raise
    except _NotShownError as how:
        return f"Tensor({facts}), {how}"
    except Exception as error:  # noqa: BLE001 - of the GPU, or of the memory's owner
        return f"Tensor({facts}), not readable: {type(error).__name__}: {error}"


def elements(tensor: Any) -> str:
    """The elements alone; "" if they cannot be shown."""
    try:
        return "".join(_elements(tensor, ""))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the picture's place says why
        return ""


def _elements(tensor: Any, prefix: str = "Tensor(") -> tuple[str, str]:
    """The elements, and a note on them."""
    on_gpu = not tensor.device.is_host
    way = "await t.to_host()" if on_gpu else "t.numpy()"
    if on_gpu and tensor.size and not owner_of(tensor).can_block():
        raise _NotShownError(f"on the GPU: {way}")
    edge = _edge_of(tensor)
    if edge == 0:
        raise _NotShownError(f"too many to show: {way}")
    shown = tensor if edge is None else _ends(tensor, edge)
    if edge is None and on_gpu:
        shown = tensor._read_blocking() if tensor.size else _like(tensor, tensor.shape)
    try:
        import numpy as np
    except ImportError:
        return _plain(shown, edge), ""
    return _as_numpy_does(np, shown, edge, prefix)


def _element_bits(tensor: Any) -> int:
    dtype = tensor.dtype
    return 8 if tensor.padded else dtype.bits * dtype.lanes


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
    size, bits = tensor.size, _element_bits(tensor)
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


def _like(tensor: Any, shape: tuple[int, ...]) -> Any:
    return _core._empty(shape, tensor._dtype, tensor.padded)


def _ends(tensor: Any, edge: int) -> Any:
    """A CPU tensor of shape `_short(tensor.shape)` with the elements at the ends of each
    axis. The others have no meaning."""
    # Axes in the order of memory, and the last one has near neighbours.
    order = sorted(range(tensor.ndim), key=lambda axis: -abs(tensor.strides[axis]))
    source = tensor.permute_dims(order)
    target = _like(tensor, _short(source.shape, edge))
    pairs = list(_runs(source.shape, source.strides[-1], edge))
    sources = [source[there] for there, _ in pairs]
    targets = [target[here] for _, here in pairs]
    if tensor.device.is_host:
        for one, other in zip(sources, targets, strict=True):
            other.write(one)
    else:
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
    if array.dtype.kind == "V" and not array.dtype.isbuiltin:  # and without ml_dtypes
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
