"""The functions that JavaScript calls, to be called through ctypes as JavaScript would."""

import ctypes
from ctypes import c_int32, c_size_t, c_uint32

from forge import Versioned

from dlpack_web import _core

CORE = ctypes.PyDLL(_core.__file__)


def function(name, result, *arguments):
    found = getattr(CORE, f"dlw_bridge_{name}")
    found.restype, found.argtypes = result, arguments
    return found


borrow = function("borrow", c_size_t, ctypes.py_object, c_int32)
error_kind = function("error_kind", c_int32)
release = function("release", c_int32, c_uint32)
scratch = function("scratch", c_size_t)


def struct_of(address):
    """(struct, handle): the handle stands right behind the struct."""
    handle = c_uint32.from_address(address + ctypes.sizeof(Versioned)).value
    return Versioned.from_address(address), handle


def lend(x):
    """A hold on the memory of `x` that JavaScript has: its handle."""
    address = borrow(x, 0)
    if address == 0:
        _core._raise()
    return struct_of(address)[1]
