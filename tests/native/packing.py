"""Packing and converting as uploads do it, through the functions that JavaScript calls."""

import ctypes
from ctypes import c_double, c_int32, c_int64, c_size_t, c_uint32

import numpy as np
from bridge import function, lend, release, scratch, struct_of
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT16 = 4 | 16 << 8 | 1 << 16

chunk = function("chunk", c_int32, c_uint32, c_uint32, c_double)
_pack = function("pack", c_size_t, c_uint32)


def packed_dtype(dtype):
    dtype = np.dtype(dtype)
    return CODES[dtype.kind] | dtype.itemsize * 8 << 8 | 1 << 16


def packed(x, nbytes):
    """The bytes of a packed copy of `x`. (`from_dlpack(x, copy=True)` asks `x` itself.)"""
    handle = lend(x)
    address = _pack(handle)
    release(handle)
    if address == 0:
        _core._raise()
    struct, copy = struct_of(address)
    try:
        return ctypes.string_at(struct.dl_tensor.data, nbytes) if nbytes else b""
    finally:
        release(copy)


def chunks(x, dtype, itemsize):
    """The bytes of each chunk of `x` as elements of a (packed) dtype."""
    tensor = dlw.from_dlpack(x)
    handle, at = lend(tensor), 0
    try:
        while at < tensor.size:
            count = chunk(handle, dtype, at)
            if count == 0:
                _core._raise()
            address = c_int64.from_address(scratch()).value
            yield ctypes.string_at(address, count * itemsize)
            at += count
    finally:
        release(handle)
        tensor.release()


def converted(x, dtype):
    dtype = np.dtype(dtype)
    data = b"".join(chunks(x, packed_dtype(dtype), dtype.itemsize))
    return np.frombuffer(data, dtype).reshape(x.shape)


def vectors(view):
    """A producer of vectors of bytes over an array of raw elements, V3 and the like."""
    lanes = view.itemsize
    return Forged(
        code=1,
        bits=8,
        lanes=lanes,
        ndim=view.ndim,
        shape=view.shape,
        strides=[stride // lanes for stride in view.strides],
        data=view.ctypes.data,
    )
