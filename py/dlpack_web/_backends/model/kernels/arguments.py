"""Checks a kernel's arguments against its shader's declarations."""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import ceil
from operator import mul
from typing import Any

from ...._layout import NARROWER
from ...._layout.dtype import DType
from ...checks import way_to
from .. import messages
from ..buffers.buffers import allocate, copy_of
from ..buffers.table import Slot
from ..buffers.views import Part, View, round_up
from ..device.device import Device
from ..errors.operations import attempt
from .wgsl import Binding


@dataclass
class Bound:
    """One argument, ready to bind."""

    slot: Slot
    offset: int
    size: int
    #: Whether the shader may write to it.
    written: bool
    #: Whether the slot is only for this: a number's, or a copy's.
    temporary: bool = False
    #: For a copy: where to copy the shader's output after the pass.
    back: View | None = None
    #: Whether it cannot be bound in place: a copy is, instead.
    needs_copy: bool = False

    def part(self) -> Part:
        """The bytes that are bound."""
        return Part(self.slot, self.offset, self.offset + self.size)

    def resource(self) -> dict[str, Any]:
        """As WebGPU takes it."""
        return {"buffer": self.slot.buffer, "offset": self.offset, "size": self.size}


_COMPUTE = 4  # GPUShaderStage.COMPUTE


def layout_entries(bindings: Sequence[Binding]) -> list[dict[str, Any]]:
    """The layout of the bind groups of a shader."""
    return [
        {"binding": each.index, "visibility": _COMPUTE, "buffer": {"type": each.type}}
        for each in bindings
    ]


# WGSL's scalars by DLPack's code and bits of a lane; complex numbers are pairs.
_SCALARS = {
    (2, 32): "f32",
    (2, 16): "f16",
    (0, 32): "i32",
    (1, 32): "u32",
    (5, 64): "f32",
    (5, 32): "f16",
}
_TENSORS = {"f32": "float32", "f16": "float16", "i32": "int32", "u32": "uint32"}


def check_dtype(dtype: DType, binding: Binding, what: str) -> None:
    """BufferError if the shader would interpret the elements as another type."""
    scalar, code, bits = binding.scalar, dtype.code, dtype.bits
    if scalar is None or _SCALARS.get((code, bits)) == scalar:
        return  # structures are checked by size
    # Narrower types are passed as words, several elements in each; WGSL has no type for them.
    whole = binding.atomic and code < 2 and bits == 32
    if (scalar == "u32" and (bits < 32 or whole)) or (scalar == "i32" and whole):
        return
    way = _way_out(dtype, scalar)
    raise BufferError(messages.misread(what, dtype, binding.value, scalar, way))


def _way_out(dtype: DType, scalar: str) -> str:
    to = NARROWER.get(dtype.scalar)
    if to is not None:
        return way_to(to)
    return messages.other_type(_TENSORS[scalar])


def _bound_size(view: View, binding: Binding | None, check: bool, what: str) -> int:
    """Bytes to bind; BufferError: they do not fit the shader's type."""
    nbytes = view.nbytes
    # A binding must be at least one element, and a uniform's size a multiple of 16.
    least = max(binding.stride, 4) if binding is not None and binding.runtime else 4
    uniform = check and binding is not None and binding.type == "uniform"
    usual = max(round_up(nbytes, 16 if uniform else 4), least)
    if not check or binding is None or binding.stride == 0:
        return usual
    stride, element = binding.stride, binding.element
    if element:
        _check_elements(view, binding, what)
    if not binding.runtime and nbytes < stride:
        raise BufferError(messages.too_few_bytes(what, nbytes, binding.value, stride))
    # Zeros fill the last element: without them arrayLength would leave it out.
    whole = element and stride + round_up(nbytes - stride, element)
    return max(usual, round_up(whole, 4))


def _check_elements(view: View, binding: Binding, what: str) -> None:
    """BufferError unless the last axes of a tensor are whole elements of the shader's
    array (or columns of its matrix): the last axis is one or several, or the last axes
    are together one. The only axis may be any numbers if they are flat, such as those of
    vec4f. Narrow elements in words of u32 have no axes for a shader."""
    stride, element, align = binding.stride, binding.element, binding.align
    dtype, flat = view.dtype, binding.align == 0
    if view.nbytes == 0 or (flat and binding.scalar == "u32" and dtype.bits < 32):
        return
    axes = [*view.shape, dtype.lanes]
    while axes and axes[-1] == 1:
        axes.pop()
    item = view.step / dtype.lanes
    row = item * (axes.pop() if axes else 1)
    if flat or (view.nbytes - stride) % element == 0:
        if not axes or row % element == 0:
            return
        sizes = accumulate(reversed(axes), mul, initial=row)
        if (flat or row % align == 0) and element in sizes:
            return
    inner = len(axes) > 1 and row < align
    to = align if inner else stride + round_up(row - stride, element)
    own = _SCALARS.get((dtype.code, dtype.bits), "u32")
    shown = int(row) if row == int(row) else row
    raise BufferError(
        messages.no_whole_elements(
            what, shown, binding.value, element, ceil(to / item), own
        )
    )


def count_of(view: View, binding: Binding) -> int | None:
    """Number of elements that the shader sees in a tensor; None: unknown."""
    if binding.stride == 0 or not binding.runtime:
        return None
    return -(-view.nbytes // binding.stride)


def bind(
    device: Device, view: View, index: int, declared: Binding | None, check: bool
) -> Bound:
    """What to bind for a tensor, after checking this argument alone; `check_aliasing` then
    checks it against the others."""
    view.check_on(device)
    view.check_row_major()
    kind = declared.type if declared else None
    what = f"binding {index}: {view}"
    if check and declared:
        check_dtype(view.dtype, declared, what)
    # Without a parsed declaration it may be either; WebGPU then reports what is missing.
    if kind:
        flag = "UNIFORM" if kind == "uniform" else "STORAGE"
        view.check_usage(flag, f"binding {index}")
    if view.read_only and kind == "storage":
        raise BufferError(messages.read_only(what))
    size = _bound_size(view, declared, check, what)
    limits = device.limits
    space = "Uniform" if kind == "uniform" else "Storage"
    limit = f"max{space}BufferBindingSize"
    most = limits[limit]
    if size > most:
        raise BufferError(messages.too_large_to_bind(what, size, most, limit))
    bindable = view.start % limits[f"min{space}BufferOffsetAlignment"] == 0
    written = kind in ("storage", None)
    needs_copy = not bindable or size > view.capacity()
    return Bound(view.slot, view.start, size, written, needs_copy=needs_copy)


def bind_copy(view: View, size: int, written: bool) -> Bound:
    """A copy in its own buffer, followed by zeros: for a tensor at an offset that
    cannot be bound, or one that shares its last word or element with others."""
    slot = copy_of(view, size)
    return Bound(slot, 0, size, written, True, view if written else None)


def _check_copy(view: View, written: bool, what: str) -> None:
    view.check_copy_source("binding")
    if not written:
        return
    view.check_usage("COPY_DST", what)
    if round_up(view.nbytes, 4) > view.capacity():
        raise BufferError(messages.shared_word(what))


_PACK = {"f32": "<f", "i32": "<i", "u32": "<I"}


def pack_number(value: float, index: int, declared: Binding | None) -> bytes:
    """A number as the uniform that the shader declares."""
    single = declared is not None and declared.type == "uniform"
    scalar = declared.scalar if declared is not None and single else None
    if scalar not in _PACK or (declared is not None and declared.stride != 4):
        raise TypeError(messages.no_number(f"binding {index}"))
    fits = scalar == "f32" or (math.isfinite(value) and value == int(value))
    try:
        number: Any = value if scalar == "f32" else int(value) if fits else None
        return struct.pack(_PACK[scalar], number)
    except (struct.error, OverflowError):
        shown = int(value) if math.isfinite(value) and value == int(value) else value
        raise ValueError(messages.wrong_number(index, shown, scalar)) from None


def bind_number(
    device: Device, value: float, index: int, declared: Binding | None
) -> Bound:
    """A number for a uniform, in a buffer until the submit."""
    data = pack_number(value, index, declared)
    slot = allocate(device, 16, zeros=True)
    attempt(
        device,
        f"writing binding {index}",
        lambda: device.write(slot.buffer, 0, data),
    )
    return Bound(slot, 0, 16, False, True)


def check_aliasing(views: Sequence[Any], bound: Mapping[int, Bound]) -> list[int]:
    """Raises if two that are written overlap, or one cannot be copied. Returns those that
    must be: they cannot be bound in place, or are read from a buffer that is also bound
    for writing."""
    written = [i for i, one in bound.items() if one.written]
    for j, i in combinations(written, 2):
        if _overlap(bound[j], views[j], bound[i], views[i]):
            raise BufferError(messages.overlap(j, i))
    direct = [bound[i].slot.buffer for i in written if not bound[i].needs_copy]
    to_copy = [
        i
        for i, one in bound.items()
        if one.needs_copy or (not one.written and one.slot.buffer in direct)
    ]
    for i in to_copy:
        _check_copy(views[i], bound[i].written, f"binding {i}: {views[i]}")
    return to_copy


def _overlap(a: Bound, a_view: View, b: Bound, b_view: View) -> bool:
    if a.slot.buffer is not b.slot.buffer:
        return False
    return max(a.offset, b.offset) < min(_end(a, a_view), _end(b, b_view))


def _end(one: Bound, view: View) -> int:
    """The end of what the shader may write: padding only if it is bound in place."""
    return one.offset + (view.nbytes if one.needs_copy else one.size)
