"""Reads a Tensor back from a GPU, into new memory or an array."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._backends import owner_of
from .._backends.calls import refuse_recorded
from .._layout.dtype import DType, np_dtype
from .._layout.words import type_of
from .arrays import named_dtype, view_array
from .facts import Facts

if TYPE_CHECKING:
    import numpy as np

AWAIT = "use `await t.to_host()`"


def like(tensor: Facts) -> _core.Tensor:
    """New CPU memory for the elements of a tensor."""
    return _core._empty(tensor.shape, tensor._dtype, tensor.padded)


def read_blocking(tensor: Facts) -> _core.Tensor:
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


async def read(tensors: Any, outs: Any) -> "list[np.ndarray[Any, Any]]":
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
        result = view_array(array) if isinstance(array, _core.Tensor) else array
        if out is not None and out is not result:
            out[...] = result
        results.append(result if out is None else out)
    return results


async def read_into(
    sources: Sequence[_core.Tensor], targets: Sequence[_core.Tensor]
) -> None:
    """Reads WebGPU tensors of any backends into row-major CPU tensors."""
    places = {id(place): place for place in map(owner_of, sources)}
    for place in places.values():
        pairs = [
            pair
            for pair in zip(sources, targets, strict=True)
            if owner_of(pair[0]) is place
        ]
        await place.read([source for source, _ in pairs], [to for _, to in pairs])


def _landing(
    tensor: Facts, out: Any
) -> "tuple[_core.Tensor, np.ndarray[Any, Any] | _core.Tensor]":
    """The target of a readback as a Tensor, and its result: an array (`out` if
    possible), or a Tensor to make one of when the elements have arrived."""
    import numpy as np

    dtype = np_dtype(tensor.dtype)
    packed = tensor.dtype.bits < 8 and not tensor.padded  # not as in `out`
    if (
        out is not None
        and not packed
        and (out.flags.c_contiguous and out.flags.aligned)
    ):
        same = out if dtype is not None else out.reshape(-1).view(np.uint8)
        return _core.from_buffer(same), out
    if dtype is None:
        target = like(tensor)
        return target, target
    array = np.empty(tensor.shape, dtype)
    return _core.from_buffer(array), array


def _check_out(tensor: Facts, out: "np.ndarray[Any, Any]") -> None:
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
        way = "" if wanted else ": use the dtype of what to_host() gives"
        raise ValueError(
            f"out has shape {out.shape} and dtype {given or out.dtype}; the tensor has "
            f"{tensor.shape} and {tensor.dtype}{axis}{way}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass a writable array")
