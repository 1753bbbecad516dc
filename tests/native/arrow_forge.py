"""Arrow's structs and capsules made by hand, and read, for tests of what producers may
send and consumers get. The layout is ctypes' own, of the fields in Arrow's order."""

import ctypes
import struct
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_void_p,
    py_object,
    pythonapi,
)
from typing import ClassVar

import numpy as np


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


class DeviceArray(Structure):
    pass


RELEASE_SCHEMA = CFUNCTYPE(None, POINTER(Schema))
RELEASE_ARRAY = CFUNCTYPE(None, POINTER(Array))
RELEASE_STREAM = CFUNCTYPE(None, POINTER(Stream))
GET_SCHEMA = CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))
GET_NEXT = CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))
GET_ERROR = CFUNCTYPE(c_void_p, POINTER(Stream))

Schema._fields_ = (
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", c_void_p),
)
Array._fields_ = (
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", c_void_p),
)
Stream._fields_ = (
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", c_void_p),
)
DeviceArray._fields_ = (
    ("array", Array),
    ("device_id", c_int64),
    ("device_type", c_int32),
    ("sync_event", c_void_p),
    ("reserved", c_int64 * 3),
)

_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(
    ("PyCapsule_GetPointer", pythonapi)
)
NAMES = {
    Schema: b"arrow_schema",
    Array: b"arrow_array",
    Stream: b"arrow_array_stream",
    DeviceArray: b"arrow_device_array",
}


def capsule(struct):
    """A capsule without a destructor: what was not taken is the test's."""
    return _new(ctypes.addressof(struct), NAMES[type(struct)], None)


def inside(capsule, kind):
    """The struct that a capsule of ours holds."""
    return kind.from_address(_pointer(capsule, NAMES[kind]))


def bitmap(values, offset=0):
    """Bits as Arrow has them, behind `offset` others."""
    bits = [1, 0, 1] * offset
    bits = [*bits[:offset], *map(bool, values)]
    return np.packbits(bits, bitorder="little") if bits else np.zeros(1, np.uint8)


def pointers(kind, structs):
    return (POINTER(kind) * len(structs))(*map(ctypes.pointer, structs))


def metadata(**pairs):
    """Arrow's key-value metadata: all lengths are int32; ":" is written "__"."""
    said = struct.pack("=i", len(pairs))
    for key, value in pairs.items():
        for each in (key.replace("__", ":").encode(), value):
            said += struct.pack("=i", len(each)) + each
    return said


def extension(name, parameters=b""):
    """The metadata of an extension type."""
    return metadata(ARROW__extension__name=name, ARROW__extension__metadata=parameters)


def _releasing(kind, what):
    """One function for all structs of a kind: in Pyodide each is a module of WebAssembly."""

    def release(struct):
        assert struct.contents.release  # it holds something
        children = getattr(struct.contents, "children", None)
        for i in range(struct.contents.n_children if children else 0):
            child = children[i]
            if child and child.contents.release:
                child.contents.release(child)
        owner = Forged.alive[struct.contents.private_data]
        owner.released[what] += 1
        struct.contents.release = kind()
        owner.during(what)

    return kind(release)


RELEASE = {
    Schema: _releasing(RELEASE_SCHEMA, "schema"),
    Array: _releasing(RELEASE_ARRAY, "array"),
    Stream: _releasing(RELEASE_STREAM, "stream"),
}


class Forged:
    """A producer: `type` is letters, or (letters, [(name, type), ...], metadata), the last
    optional; `arrays` one for each chunk, made by `array`. Counts its releases.

    `during(place)` is called in each of its callbacks: `place` is "get_schema",
    "get_next", "get_last_error", or which struct is released."""

    #: By what structs have as private_data, until a test is over: whoever took an array
    #: calls its release.
    alive: ClassVar[dict] = {}

    def __init__(self, type_, *arrays, device=None, stream=False):
        self.alive[id(self)] = self
        self.during = lambda place: None
        self.kept, self.released = [], {"schema": 0, "array": 0, "stream": 0}
        self.schema = self._schema(type_)
        self.arrays = [self._array(**array) for array in arrays]
        if device is None and not stream:
            self.__arrow_c_array__ = self._give
        elif stream:
            self.stream = self._stream()
            self.__arrow_c_stream__ = lambda *_: capsule(self.stream)
        else:
            kind, event = device
            there = DeviceArray(self.arrays[0], 0, kind, event)
            self.arrays[0] = there.array
            self.device_array = there
            self.__arrow_c_device_array__ = lambda *_: (
                capsule(self.schema),
                capsule(there),
            )

    def _give(self, *_):
        return capsule(self.schema), capsule(self.arrays[0])

    def _keep(self, thing):
        self.kept.append(thing)
        return thing

    def _schema(self, type_, name=b"x"):
        parts = type_ if isinstance(type_, tuple) else (type_, [])
        letters, children, *said = parts
        made = [self._schema(inner, label) for label, inner in children]
        self._keep(made)
        return self._keep(
            Schema(
                format=letters,
                name=name,
                metadata=said[0] if said else None,
                n_children=len(made),
                children=self._keep(pointers(Schema, made)),
                release=RELEASE[Schema],
                private_data=id(self),
            )
        )

    def _array(self, length, buffers, children=(), offset=0, null_count=-1, **changed):
        made = [self._array(**child) for child in children]
        self._keep((made, buffers))
        places = [None if b is None else b.ctypes.data for b in buffers]
        return self._keep(
            Array(
                length=length,
                null_count=null_count,
                offset=offset,
                n_buffers=changed.get("n_buffers", len(buffers)),
                n_children=changed.get("n_children", len(made)),
                buffers=self._keep((c_void_p * len(places))(*places)),
                children=self._keep(pointers(Array, made)),
                release=RELEASE[Array],
                private_data=id(self),
            )
        )

    def _stream(self):
        waiting = list(self.arrays)

        def get_schema(_, out):
            self.during("get_schema")
            ctypes.pointer(out.contents)[0] = self.schema
            self.schema.release = RELEASE_SCHEMA()
            return 0

        def get_next(_, out):
            self.during("get_next")
            if waiting:
                array = waiting.pop(0)
                ctypes.pointer(out.contents)[0] = array
                array.release = RELEASE_ARRAY()
            return 0

        return Stream(
            get_schema=self._keep(GET_SCHEMA(get_schema)),
            get_next=self._keep(GET_NEXT(get_next)),
            get_last_error=self._keep(GET_ERROR(lambda _: None)),
            release=RELEASE[Stream],
            private_data=id(self),
        )


def read_type(schema):
    """The letters of a type, from the outermost on."""
    letters = [schema.format.decode()]
    for i in range(schema.n_children):
        letters += read_type(schema.children[i].contents)
    return letters


def read_array(array, dtype):
    """(elements, bits of the valid ones or None) of an array of numbers or lists of them, copied."""
    shape = [array.length]
    valid = None
    if array.buffers[0]:
        raw = (ctypes.c_uint8 * ((array.length + 7) // 8)).from_address(
            array.buffers[0]
        )
        valid = np.unpackbits(np.array(raw), bitorder="little")[: array.length]
    while array.n_children:
        child = array.children[0].contents
        shape.append(child.length // array.length if array.length else 0)
        array = child
    if dtype == bool:
        raw = (ctypes.c_uint8 * ((array.length + 7) // 8)).from_address(
            array.buffers[1]
        )
        elements = np.unpackbits(np.array(raw), bitorder="little")[: array.length]
    else:
        size = array.length * np.dtype(dtype).itemsize
        raw = (ctypes.c_uint8 * size).from_address(array.buffers[1] or 8)
        elements = np.frombuffer(bytes(raw), dtype)
    return elements.reshape(shape).astype(dtype), valid
