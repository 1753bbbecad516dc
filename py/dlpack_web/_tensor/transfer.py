"""Moves and converts the elements of a Tensor: to a device, to a dtype, into another
Tensor."""

from typing import Any, cast

from .. import _core
from .._backends import owner, owner_of
from .._backends.calls import refuse_recorded
from .._core import CopyError
from .._layout.dtype import DType, misfit_of, parse_dtype
from .device import CPU, default_device, parse_device
from .facts import Facts
from .reading import AWAIT, read_blocking


def to_device(
    tensor: Facts, device: Any, stream: Any, copy: bool | None, dtype: Any
) -> _core.Tensor:
    """See Tensor.to_device."""
    if stream is not None:
        raise ValueError(
            f"stream must be None, not {stream!r}: the CPU has no streams, and a "
            "WebGPU device has one queue"
        )
    wanted = tensor.dtype if dtype is None else parse_dtype(dtype)
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


def _on_host(tensor: Facts, dtype: DType, copy: bool | None) -> _core.Tensor:
    if dtype != tensor.dtype:
        if copy is False:
            raise CopyError(f"{tensor.dtype} to {dtype} makes a copy")
        return _core._convert(tensor, dtype._packed, False)
    if tensor.device == CPU:
        return _core.from_dlpack(tensor, copy=copy)
    return _core._from_dlpack_on(tensor, CPU, copy, False)


def write(tensor: Facts, source: object, convert: bool) -> None:
    """See Tensor.write."""
    with cast(Facts, _core._hold(source)) as other:
        if not tensor.device.is_host:
            refuse_recorded(tensor, True)
            owner_of(tensor).write(tensor, other, convert)
            return
        _check_write(tensor, other, convert)
        packed: _core.Tensor = other
        if other.dtype != tensor.dtype or other.padded != tensor.padded:
            packed = _core._convert(other, tensor._dtype, tensor.padded)
        elif not other._row_major():
            packed = _core.from_dlpack(other, copy=True)
        target, elements = (memoryview(_core._raw(t)[0]) for t in (tensor, packed))
        _overwrite(target, elements, tensor._bits())


def _check_write(tensor: Facts, source: Facts, convert: bool) -> None:
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


def place(x: Any, device: Any, copy: bool | None, dtype: Any) -> _core.Tensor:
    """`from_dlpack(x, device=device, copy=copy, dtype=dtype)` with a device or a dtype.
    x itself only has to make CPU copies; uploads happen here."""
    target = None if device is None else parse_device(device)
    asked = CPU if target is CPU else None
    uploads = device is not None and target is not CPU
    if dtype is None and not uploads:
        tensor = cast(Facts, _core._from_dlpack_on(x, asked, copy, False))
        if tensor.device == CPU:
            return tensor
        with tensor:  # the producer ignored the device; it did copy
            return to_device(tensor, CPU, None, None if copy else copy, None)
    # The source of a copy may be misaligned.
    with cast(Facts, _core._from_dlpack_on(x, asked, None, True)) as tensor:
        if not uploads and tensor.device.is_host and parse_dtype(dtype) == tensor.dtype:
            here = CPU if target is CPU else tensor.device
            return _core._from_dlpack_on(tensor, here, copy, False)
        where = str(tensor.device) if device is None else device
        return to_device(tensor, where, None, copy, dtype)
