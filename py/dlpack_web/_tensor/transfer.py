"""Moves and converts the elements of a Tensor: to a device, to a dtype, into another
Tensor, back from a GPU into new memory or an array."""

from typing import Any

from .. import _core
from .._backends import owner, owner_of
from .._backends.calls import refuse_recorded
from .._backends.checks import Tensors
from .._core import CopyError, Tensor
from .._layout.dtype import Array, DType, misfit_of, np_dtype, parse_dtype
from .._layout.text import type_of
from .arrays import named_dtype, view_array
from .device import CPU, default_device, parse_device

AWAIT = "use `await t.to_host()`"


def to_device(
    tensor: Tensor, device: Any, stream: Any, copy: bool | None, dtype: Any
) -> Tensor:
    """See Tensor.to_device."""
    if stream is not None:
        raise ValueError(
            f"stream must be None, not {stream!r}: the CPU has no streams, and a "
            "WebGPU device has one queue"
        )
    wanted = tensor.dtype if dtype is None else parse_dtype(dtype)
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy must be True, False or None, not {copy!r}")
    target, here = parse_device(device), tensor.device
    if target is None:
        target = default_device() if here.is_host else here
    if here.is_host and target is CPU:
        return _on_host(tensor, wanted, copy)
    if not here.is_host and wanted != tensor.dtype:
        raise BufferError(
            f"only uploads convert: {tensor.dtype} on {here} cannot become {wanted} on "
            f"{target}; convert with NumPy on the CPU"
        )
    if target == here and not copy:
        return _core.from_dlpack(tensor)
    if copy is False:
        if wanted != tensor.dtype:
            raise CopyError(f"{tensor.dtype} to {wanted} makes a copy")
        if here.is_host:
            return owner(target.id).share(tensor, target.id)
        if target is CPU:
            refuse_recorded(tensor, False)
            shared = owner(here.id).on_host(tensor)
            if shared is not None:
                return shared
        raise CopyError(f"moving a tensor from {here} to {target} copies it")
    if target is CPU:
        return read_blocking(tensor)
    if not here.is_host:
        raise BufferError(
            f"cannot copy from {here} to {target}: WebGPU buffers do not leave "
            f"their device; {AWAIT} and upload the result"
        )
    return owner(target.id).upload(tensor, target.id, wanted)


def _on_host(tensor: Tensor, dtype: DType, copy: bool | None) -> Tensor:
    if dtype != tensor.dtype:
        if copy is False:
            raise CopyError(f"{tensor.dtype} to {dtype} makes a copy")
        return _core._convert(tensor, dtype._packed, False)
    if tensor.device == CPU:
        return _core.from_dlpack(tensor, copy=copy)
    return _core._from_dlpack_on(tensor, CPU, copy, False)


def write(tensor: Tensor, source: object, convert: bool) -> None:
    """See Tensor.write."""
    with _core._hold(source) as other:
        if not tensor.device.is_host:
            refuse_recorded(tensor, True)
            if not other.device.is_host:
                refuse_recorded(other, False)
            owner_of(tensor).write(tensor, other, convert)
            return
        _check_write(tensor, other, convert)
        packed: Tensor = other
        if other.dtype != tensor.dtype or other.padded != tensor.padded:
            packed = _core._convert(other, tensor._dtype, tensor.padded)
        elif not other._row_major():
            packed = _core.from_dlpack(other, copy=True)
        target, elements = (memoryview(_core._raw(t)[0]) for t in (tensor, packed))
        _overwrite(target, elements, tensor._bits())


def _check_write(tensor: Tensor, source: Tensor, convert: bool) -> None:
    misfit = misfit_of(source, tensor)
    if misfit and not (convert and source.shape == tensor.shape):
        raise BufferError(
            f"{source._facts_alone()} cannot be written over {tensor._facts_alone()}: "
            f"{misfit}"
        )
    if not source.device.is_host:
        raise BufferError(f"the source is on {source.device}: {AWAIT} of it first")
    if tensor.read_only or not tensor._row_major():
        raise BufferError(
            f"{tensor._facts_alone()} cannot be written to: it is read-only or strided"
        )


def _overwrite(target: memoryview, source: memoryview, bits: int) -> None:
    """Copies the first `bits` of the bytes; later bits may belong to other elements."""
    whole, rest = divmod(bits, 8)
    mask = (1 << rest) - 1
    # Read before writing: source and target may overlap.
    last = [target[whole] & ~mask | source[whole] & mask] if rest else []
    target[:whole] = source[:whole]
    target[whole : whole + len(last)] = bytes(last)


def place(x: Any, device: Any, copy: bool | None, dtype: Any) -> Tensor:
    """`from_dlpack(x, device=device, copy=copy, dtype=dtype)` with a device or a dtype.
    x itself only has to make CPU copies; uploads happen here."""
    target = None if device is None else parse_device(device)
    asked = CPU if target is CPU else None
    uploads = device is not None and target is not CPU
    if dtype is None and not uploads:
        tensor = _core._from_dlpack_on(x, asked, copy, False)
        if tensor.device == CPU:
            return tensor
        with tensor:  # the producer ignored the device; it did copy
            return to_device(tensor, CPU, None, None if copy else copy, None)
    # The source of a copy may be misaligned.
    with _core._from_dlpack_on(x, asked, None if copy else copy, True) as tensor:
        if not uploads and tensor.device.is_host and parse_dtype(dtype) == tensor.dtype:
            here = CPU if target is CPU else tensor.device
            return _core._from_dlpack_on(tensor, here, copy, False)
        where = tensor.device if device is None else device
        return to_device(tensor, where, None, copy, dtype)


# --- back from a GPU -----------------------------------------------------------------------


def like(tensor: Tensor) -> Tensor:
    """New CPU memory for the elements of a tensor."""
    return _core._empty(tensor.shape, tensor._dtype, tensor.padded)


def read_blocking(tensor: Tensor) -> Tensor:
    """A CPU copy of a WebGPU tensor."""
    place = owner_of(tensor)
    if not place.can_block():
        raise BufferError(
            f"the tensor is on {tensor.device}{place.cannot_block}; {AWAIT}"
        )
    refuse_recorded(tensor, False)
    target = like(tensor)
    place.read_blocking([tensor], [target])
    return target


async def read(tensors: Any, outs: Any) -> list[Array]:
    """The elements of each tensor, in its `out` if there is one: all in one submit."""
    arrays, sources, targets = [], [], []
    for tensor, out in zip(tensors, outs, strict=True):
        if out is not None:
            _check_out(tensor, out)
        if tensor.device.is_host:
            arrays.append(tensor)
            continue
        refuse_recorded(tensor, False)
        target, array = _landing(tensor, out)
        sources.append(tensor)
        targets.append(target)
        arrays.append(array)
    try:
        await read_into(sources, targets)
    except BaseException:
        for target in targets:
            target.release()  # the traceback has it, too
        raise
    results = []
    for out, array in zip(outs, arrays, strict=True):
        result = view_array(array) if isinstance(array, Tensor) else array
        if out is not None and out is not result:
            out[...] = result
        results.append(result if out is None else out)
    return results


async def read_into(sources: Tensors, targets: Tensors) -> None:
    """Reads WebGPU tensors of any backends into row-major CPU tensors."""
    places = {id(place): place for place in map(owner_of, sources)}
    for place in places.values():
        pairs = [
            pair
            for pair in zip(sources, targets, strict=True)
            if owner_of(pair[0]) is place
        ]
        await place.read([source for source, _ in pairs], [to for _, to in pairs])


def _landing(tensor: Tensor, out: Any) -> tuple[Tensor, Array | Tensor]:
    """The target of a readback as a Tensor, and its result: an array (`out` if
    possible), or a Tensor to make one of when the elements have arrived."""
    import numpy as np

    dtype = np_dtype(tensor.dtype)
    packed = tensor.dtype.bits % 8 and not tensor.padded  # not as in `out`
    if (
        out is not None
        and not packed
        and (out.flags.c_contiguous and out.flags.aligned)
        and not owner_of(tensor).reads_in_parts  # `out` has all of them, or none
    ):
        same = out if dtype is not None else out.reshape(-1).view(np.uint8)
        return _core.from_buffer(same), out
    if dtype is None:
        target = like(tensor)
        return target, target
    array = np.empty(tensor.shape, dtype)
    return _core.from_buffer(array), array


def _check_out(tensor: Tensor, out: Array) -> None:
    """Raises unless `out` has the shape and dtype of what is read without it."""
    import numpy as np

    if not isinstance(out, np.ndarray):
        raise TypeError(
            f"out must be a NumPy array, not {type_of(out)}: make one of the tensor's "
            "shape and dtype, np.empty(t.shape, …)"
        )
    _core._check_mask(out)
    scalar, lanes = DType(tensor.dtype.scalar), tensor.dtype.lanes
    shape = tensor.shape + ((lanes,) if lanes > 1 else ())
    given, wanted = named_dtype(out.dtype), np_dtype(scalar)
    same = given == scalar if wanted is None else wanted == out.dtype
    if out.shape != shape or not same:
        axis = f" ({lanes} lanes are a last axis)" if lanes > 1 else ""
        way = "" if wanted else ": use the dtype that to_host() returns"
        raise ValueError(
            f"out has shape {out.shape} and dtype {given or out.dtype}; the tensor has "
            f"{tensor.shape} and {tensor.dtype}{axis}{way}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass a writable array")
