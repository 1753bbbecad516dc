"""The errors, and the words for what the C core finds wrong."""

import sys
from typing import Any

from ._dtype import dtype_name


class CopyError(BufferError, ValueError):
    """A copy would be needed although copy=False was asked for."""


class DeviceLostError(BufferError):
    """The tensor's WebGPU device was lost."""


class ReleasedError(BufferError):
    """The tensor was released."""


for _error in (CopyError, DeviceLostError, ReleasedError):
    _error.__module__ = "dlpack_web"

# Described tensors, by dlw_status of wasm/tensor.h.
_DESCRIBED = {
    2: "unsupported number of dimensions {ndim}: 0 to 64 are supported; reshape the "
    "array first",
    3: "invalid shape: it is missing or has a negative extent",
    4: "unsupported dtype (code {code}, bits {bits}, lanes {lanes}): those of DLPack "
    "1.3 are supported, vectors of them too, but no padded sub-byte vectors",
    5: "unsupported device (type {device_type}, id {device_id}): cpu (1) and webgpu "
    "(15) are supported; move the data to one of them first",
    6: "shape, strides and byte_offset reach beyond the address space of {pointer} "
    "bits; split the array",
    7: "the data pointer is NULL although the tensor has elements",
    8: "data at {address:#x} is not aligned to {alignment} bytes, as its dtype needs; "
    "copy it first, for example with x.copy()",
}

# Everything else, by the key that dlw_fail() is given.
_FAILURES: dict[type[Exception], dict[str, str]] = {
    BufferError: {
        "conversion": "cannot convert {0} to {1} on the way: move the elements as they "
        "are, without dtype, or convert the array first, for example with x.astype()",
        "overflow": "element {2} of the {0} tensor, in row-major order, is {3}, which {1} "
        "cannot hold; move the elements as they are, without dtype",
        "device": "cannot export to device {0}: only the tensor's own device {1} "
        "and the CPU (1, 0) are supported; use t.to_device()",
        "format": "unsupported buffer format {0!r} with items of {1} bytes: bool,"
        " integers, floats and complex numbers in native byte order are"
        " supported",
        "gpu_copy": "copy=True is supported for CPU tensors only; for a WebGPU "
        "tensor use await t.to_host()",
        "gpu_view": "a WebGPU tensor has no memory that Python can see; use await "
        "t.to_host()",
        "legacy": "cannot export read-only data, nor padded sub-byte elements, to a "
        "consumer of DLPack before 1.0, which has no flags; ask with max_version=(1, 0) "
        "or later, or, for read-only data, with copy=True",
        "major": "the producer speaks DLPack {0}.{1}, this library "
        "{2[0]}.{2[1]}: the major versions must be equal",
        "no_format": "the buffer protocol has no format for {0}; use t.numpy()",
        "not_writable": "the array is read-only and writable memory was asked for; copy"
        " it first, for example with x.copy()",
        "read_only": "this tensor is read-only",
        "stride": "stride of axis {0} is {1} bytes, no multiple of the item size "
        "{2}: DLPack counts strides in elements; copy the array first",
        "strided": "the consumer needs contiguous memory and this tensor is "
        "strided; copy it first, for example with t.numpy().copy()",
    },
    CopyError: {
        "copied": "the producer copied although copy=False was asked for",
        "readback": "moving a WebGPU tensor to the CPU copies it; use copy=None",
    },
    ReleasedError: {
        "released": "this Tensor was released; make a new one from the array it shared",
        "stale": "handle {0} is stale or was never given out: the tensor was released",
    },
    SystemError: {
        "exchange": "the __dlpack_c_exchange_api__ of {0!r} failed without an "
        "exception",
    },
    TypeError: {
        "copy": "copy must be True, False or None, not {0!r}",
        "keyword": "{0}() got an unexpected keyword argument {1!r}",
        "keywords": "__dlpack__() takes keyword arguments only",
        "new": "{0!r} cannot be called: make tensors with "
        "dlpack_web.from_dlpack(x), from_buffer(x) or empty(shape, "
        "dtype)",
        "no_capsule": "__dlpack__ must return a capsule named 'dltensor' or "
        "'dltensor_versioned', not {0!r}",
        "not_buffer": "from_buffer() needs an object with the buffer protocol, not "
        "{0!r}; for one with __dlpack__ use from_dlpack()",
        "share": "cannot share {0!r}: objects with __dlpack__ or the buffer "
        "protocol are supported; make an array of it first, for example"
        " with np.asarray(x)",
        "not_tensor": "expected a dlpack_web.Tensor, not {0!r}",
        "argument": "from_dlpack() takes exactly one positional argument ({0} given)",
        "pair": "{0} must be None or a tuple of two ints, not {1!r}",
    },
    ValueError: {
        "consumed": "this DLPack capsule was consumed already; call __dlpack__ again",
        "no_managed": "the managed tensor is NULL",
        "stream": "stream must be None for CPU and WebGPU tensors, not {0!r}",
    },
}
# How many of the arguments, from the first on, are dtypes.
_DTYPES_FIRST = {"no_format": 1, "conversion": 2, "overflow": 2}
_BY_KEY = {
    key: (error, text)
    for error, texts in _FAILURES.items()
    for key, text in texts.items()
}


def fail(key: str | int, arguments: tuple[Any, ...]) -> Exception:
    """The exception for what the C core found wrong."""
    if isinstance(key, int):
        return _described(key, *arguments)
    error, words = _BY_KEY[key]
    if key in _DTYPES_FIRST:
        given = _DTYPES_FIRST[key]
        arguments = (*map(dtype_name, arguments[:given]), *arguments[given:])
    return error(words.format(*arguments))


def _described(
    status: int,
    ndim: int,
    code: int,
    bits: int,
    lanes: int,
    device_type: int,
    device_id: int,
    address: int,
) -> BufferError:
    facts = {
        **locals(),
        "pointer": sys.maxsize.bit_length() + 1,
        "alignment": bits // (16 if code == 5 else 8),  # complex numbers are pairs
    }
    return BufferError(_DESCRIBED[status].format_map(facts))


def kind(error: BaseException) -> int:
    """What JavaScript makes of an exception: `error_kind` of wasm/bridge.c."""
    for number, classes in (
        (3, ReleasedError),
        (4, CopyError),
        (5, DeviceLostError),
        (2, (BufferError, TypeError)),
    ):
        if isinstance(error, classes):
            return number
    return 1
