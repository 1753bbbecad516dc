"""DLPack structs and capsules made by hand, for tests of what a producer may send us.

Shapes and offsets come from ctypes' own layout of the fields in the order that DLPack
gives them, not from the C core under test.
"""

import ctypes
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
    pythonapi,
)

READ_ONLY, IS_COPIED, SUBBYTE_PADDED = 1, 2, 4
CPU, WEBGPU = 1, 15


class DLTensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Versioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    )


class Legacy(Structure):
    _fields_ = (
        ("dl_tensor", DLTensor),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
    )


DELETER = ctypes.CFUNCTYPE(None, c_void_p)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)

new_capsule = pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = py_object, (c_void_p, c_char_p, DESTRUCTOR)
get_pointer = pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = c_size_t, (py_object, c_char_p)
get_name = pythonapi.PyCapsule_GetName
get_name.restype, get_name.argtypes = c_char_p, (py_object,)
set_name = pythonapi.PyCapsule_SetName
set_name.restype, set_name.argtypes = ctypes.c_int, (py_object, c_char_p)
is_valid = pythonapi.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = ctypes.c_int, (c_void_p, c_char_p)


def _struct_in(capsule, name, flavour):
    struct = flavour.from_address(get_pointer(capsule, name))
    struct.capsule = capsule  # alive as long as the struct is looked at
    return struct


def versioned(capsule):
    """The struct in somebody's versioned capsule."""
    return _struct_in(capsule, b"dltensor_versioned", Versioned)


def legacy(capsule):
    return _struct_in(capsule, b"dltensor", Legacy)


def consume(capsule):
    """Takes a capsule over, as a consumer in C does: its struct, for us to delete."""
    if get_name(capsule) == b"dltensor":
        struct, used = legacy(capsule), b"used_dltensor"
    else:
        struct, used = versioned(capsule), b"used_dltensor_versioned"
    set_name(capsule, used)
    return struct


def dims(pointer, count):
    return tuple(pointer[i] for i in range(count)) if pointer else None


class Forged:
    """A producer with a tensor made by hand: float32, shape (2, 3), 0 to 5.

    Keyword arguments overwrite fields. `deleted` counts calls of the deleter; the
    capsule has a destructor that calls it while nobody took the capsule over, as the
    standard asks of producers. The memory stays until the deleter has run.
    """

    alive = set()  # noqa: RUF012 - shared on purpose

    def __init__(self, *, flavour=Versioned, name=None, no_deleter=False, **fields):
        self.deleted = 0
        self.flavour = flavour
        self.memory = (ctypes.c_float * 6)(*range(6))
        self.shape = (c_int64 * 2)(2, 3)
        self.strides = (c_int64 * 2)(3, 1)
        self.managed = flavour()
        if flavour is Versioned:
            self.managed.major, self.managed.minor = 1, 3
        tensor = self.managed.dl_tensor
        tensor.data = ctypes.addressof(self.memory)
        tensor.device_type, tensor.ndim = CPU, 2
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        tensor.shape = ctypes.cast(self.shape, POINTER(c_int64))
        tensor.strides = ctypes.cast(self.strides, POINTER(c_int64))
        self.deleter = DELETER(self._delete)
        if not no_deleter:
            self.managed.deleter = ctypes.cast(self.deleter, c_void_p)
        for field, value in fields.items():
            if field in ("shape", "strides"):
                value = self._int64s(field, value)
            managed_fields = {name for name, *_ in flavour._fields_}
            setattr(self.managed if field in managed_fields else tensor, field, value)
        usual = b"dltensor_versioned" if flavour is Versioned else b"dltensor"
        self.name = name or usual
        self.destructor = DESTRUCTOR(self._destroy)

    def _int64s(self, field, values):
        if values is None:
            return POINTER(c_int64)()
        array = (c_int64 * len(values))(*values)
        setattr(self, field, array)
        return ctypes.cast(array, POINTER(c_int64))

    def _delete(self, address):
        assert address == ctypes.addressof(self.managed)
        self.deleted += 1
        self.alive.discard(self)

    def _destroy(self, capsule):
        if is_valid(capsule, self.name) and self.managed.deleter:
            self._delete(ctypes.addressof(self.managed))

    def __dlpack__(self, **keywords):
        self.alive.add(self)
        return new_capsule(ctypes.addressof(self.managed), self.name, self.destructor)

    def __dlpack_device__(self):
        tensor = self.managed.dl_tensor
        return tensor.device_type, tensor.device_id


class Recorder:
    """A producer that notes how it was called, and may know fewer keywords."""

    def __init__(self, array, knows=("stream", "max_version", "dl_device", "copy")):
        self.array, self.knows, self.calls = array, knows, []

    def __dlpack_device__(self):
        raise AssertionError("__dlpack__ must not depend on __dlpack_device__")

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if not set(keywords) <= set(self.knows):
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**keywords)


SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


FROM_OBJECT = PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))


class Api(Structure):
    """DLPackExchangeAPI; its functions are called with the GIL and may raise."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        ("allocate", PYFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, SET_ERROR)),
        ("from_object", FROM_OBJECT),
        ("to_object", PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))),
        ("describe", PYFUNCTYPE(c_int, py_object, POINTER(DLTensor))),
        ("current_stream", PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))),
    )


def api_of(kind):
    """The exchange functions of a type."""
    capsule = kind.__dlpack_c_exchange_api__
    return Api.from_address(get_pointer(capsule, b"dlpack_exchange_api"))
