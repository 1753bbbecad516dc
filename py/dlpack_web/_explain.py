"""What to do about an array that DLPack cannot describe."""

import sys

_KINDS = {
    "O": "object arrays hold references to Python objects, not numbers; convert them, "
    "for example with x.astype('float64')",
    "S": "byte strings are no DLPack dtype; share their bytes with x.view('uint8')",
    "U": "strings are no DLPack dtype; share their code points with x.view('uint32')",
    "T": "strings are no DLPack dtype; encode them to numbers first",
    "M": "times are no DLPack dtype; share their counts with x.view('int64')",
    "m": "time spans are no DLPack dtype; share their counts with x.view('int64')",
    "V": "structured and void dtypes are no DLPack dtype; share a field, x['name'], or "
    "the bytes, x.view('uint8')",
}


# By dlw_status of wasm/tensor.h.
_REASONS = {
    2: "unsupported number of dimensions {ndim}: 0 to 64 are supported; reshape the "
    "array first",
    3: "invalid shape: it is missing or has a negative extent",
    4: "unsupported dtype (code {code}, bits {bits}, lanes {lanes}): bool, integers, "
    "floats and complex numbers of whole bytes with one lane are supported",
    5: "unsupported device (type {device_type}, id {device_id}): cpu (1) and webgpu "
    "(15) are supported; move the data to one of them first",
    6: "shape, strides and byte_offset reach beyond the address space of {pointer} "
    "bits; split the array",
    7: "the data pointer is NULL although the tensor has elements",
    8: "data at {address:#x} is not aligned to {alignment} bytes, as its dtype needs; "
    "copy it first, for example with x.copy()",
}


def refuse(
    status: int,
    ndim: int,
    code: int,
    bits: int,
    lanes: int,
    device_type: int,
    device_id: int,
    address: int,
) -> BaseException:
    """The exception for what the C core found wrong with a described tensor."""
    facts = {
        **locals(),
        "pointer": sys.maxsize.bit_length() + 1,
        "alignment": bits // (16 if code == 5 else 8),  # complex numbers are pairs
    }
    return BufferError(_REASONS[status].format_map(facts))


def explain(x: object, error: BaseException, borrowing: bool) -> BaseException:
    """The exception to raise for `error`, which importing `x` raised.

    An exception of a producer's `__dlpack__` stays what it is and gets a note. When we
    were borrowing, through the buffer protocol or for JavaScript, a BufferError of our
    own takes its place.
    """
    hint = _hint(x)
    if not borrowing:
        if hint is not None:
            error.add_note(hint)
        return error
    if hint is None and isinstance(error, BufferError):
        return error
    ours = BufferError(hint or f"cannot share {type(x).__qualname__!r}: {error}")
    ours.__cause__ = error
    return ours


def _hint(x: object) -> str | None:
    dtype = getattr(x, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if not isinstance(kind, str):
        return None
    name = f"cannot share dtype {str(dtype)!r}: "
    if kind == "V" and getattr(dtype, "isbuiltin", 0) == 2:  # ml_dtypes, for example
        return name + "NumPy does not export it; share its bits with x.view('uint16')"
    if kind in _KINDS:
        return name + _KINDS[kind]
    if kind in "fc" and getattr(dtype, "itemsize", 0) > (8 if kind == "f" else 16):
        return (
            name
            + "DLPack stops at 64-bit floats; use x.astype('float64' or 'complex128')"
        )
    if getattr(dtype, "isnative", True) is False:
        return name + (
            "DLPack is native-endian; use x.astype(x.dtype.newbyteorder('='))"
        )
    return None
