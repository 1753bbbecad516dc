"""The functions that JavaScript calls, all of them."""

import ctypes
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_void_p

from bridge import borrow, error_kind, function, release, scratch, struct_of

__all__ = [
    "borrow",
    "chunk",
    "empty",
    "error_kind",
    "error_text",
    "on_drop",
    "pack",
    "read_scratch",
    "release",
    "set_shape",
    "share",
    "struct_of",
    "view",
    "wrap",
]

empty = function("empty", c_size_t, c_int32, c_uint32, c_uint32)
wrap = function(
    "wrap", c_size_t, c_uint32, c_int32, c_int32, c_uint32, c_uint32, c_int32
)
share = function("share", c_size_t, c_uint32)
pack = function("pack", c_size_t, c_uint32)
view = function("view", c_size_t, c_uint32, c_int32, c_double)
chunk = function("chunk", c_int32, c_uint32, c_uint32, c_double)
error_text = function("error_text", c_char_p)
on_drop = function("on_drop", None, c_void_p)


def set_shape(*shape: int, strides: tuple[int, ...] = (), byte_offset: int = 0) -> None:
    room = (c_int64 * 129).from_address(scratch())
    room[: len(shape)] = shape
    room[64 : 64 + len(strides)] = strides
    room[128] = byte_offset


def read_scratch(count: int) -> bytes:
    """As many bytes from the address that the last call left."""
    address = c_int64.from_address(scratch()).value
    return ctypes.string_at(address, count)
