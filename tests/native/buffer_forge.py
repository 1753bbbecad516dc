"""Exporters of the buffer protocol made by hand: what they give is what a test says,
whatever the consumer asked for. Python's own classes give a memoryview, which is right.
"""

import ctypes
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_ssize_t,
    c_uint,
    c_void_p,
    py_object,
    pythonapi,
)


class Buffer(Structure):
    """Py_buffer."""

    _fields_ = (
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    )


GET_BUFFER = PYFUNCTYPE(c_int, py_object, POINTER(Buffer), c_int)
RELEASE_BUFFER = PYFUNCTYPE(None, py_object, POINTER(Buffer))


class Slot(Structure):
    _fields_ = (("slot", c_int), ("function", c_void_p))


class Spec(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(Slot)),
    )


@GET_BUFFER
def _get(self, view, flags):
    self.asked.append(flags)
    given = self.given
    pythonapi.Py_IncRef(py_object(self))
    view[0] = Buffer(obj=id(self), **given)
    return 0


@RELEASE_BUFFER
def _release(self, view):
    self.released += 1


BF_GETBUFFER, BF_RELEASEBUFFER, TPFLAGS_BASETYPE = 1, 2, 1 << 10
_slots = (Slot * 3)(
    Slot(BF_GETBUFFER, ctypes.cast(_get, c_void_p)),
    Slot(BF_RELEASEBUFFER, ctypes.cast(_release, c_void_p)),
    Slot(0, None),
)
_spec = Spec(b"buffer_forge.Exporter", 0, 0, TPFLAGS_BASETYPE, _slots)
_make = PYFUNCTYPE(py_object, POINTER(Spec))(("PyType_FromSpec", pythonapi))


class ForgedBuffer(_make(_spec)):
    """float32, shape (2, 3), 0 to 5. Keyword arguments overwrite fields; counts what
    was asked for and released."""

    def __init__(self, **fields):
        self.memory = (ctypes.c_float * 6)(*range(6))
        self.asked, self.released = [], 0
        self.given = {
            "buf": ctypes.addressof(self.memory),
            "len": 24,
            "itemsize": 4,
            "ndim": 2,
            "format": b"f",
            "shape": (2, 3),
            "strides": (12, 4),
        }
        self.given |= fields
        for name in ("shape", "strides", "suboffsets"):
            values = self.given.get(name)
            if values is not None:
                self.given[name] = (c_ssize_t * len(values))(*values)
