"""ONNX models of a node or two, written by the field numbers of onnx.proto."""

import struct

TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "uint4": 21,
    "int4": 22,
}


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    whole = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(whole)) + whole


def text(field, value):
    return message(field, value.encode())


def value(name, dtype, shape):
    extents = (
        message(1, text(2, n) if isinstance(n, str) else number(1, n % 2**64))
        for n in shape
    )
    tensor = message(1, number(1, TYPES[dtype]), message(2, *extents))
    return text(1, name) + message(2, tensor)


def node(op, inputs, outputs, *attributes, domain=""):
    return b"".join(
        (
            *(text(1, name) for name in inputs),
            *(text(2, name) for name in outputs),
            text(4, op),
            *(message(5, attribute) for attribute in attributes),
            text(7, domain),
        )
    )


def cast_to(dtype):
    """The attribute of Cast."""
    return text(1, "to") + number(3, TYPES[dtype]) + number(20, 2)


def graph(nodes, inputs, outputs, *initializers, opset=21):
    """A model; inputs and outputs are (name, dtype, shape)."""
    whole = message(
        7,
        *(message(1, each) for each in nodes),
        text(2, "graph"),
        *(message(5, each) for each in initializers),
        *(message(11, value(*each)) for each in inputs),
        *(message(12, value(*each)) for each in outputs),
    )
    properties = message(14, text(1, "made"), text(2, "by hand"))
    return (
        number(1, 10)
        + text(2, "dlpack-web")
        + whole
        + message(8, number(2, opset))
        + properties
    )


def one_node(op, dtype="float32", shape=("N", 3), inputs=("x",), opset=21):
    """`y = op(*inputs)`."""
    return graph(
        [node(op, inputs, ("y",))],
        [(name, dtype, shape) for name in dict.fromkeys(inputs)],
        [("y", dtype, shape)],
        opset=opset,
    )


def doubling(dtype="float32", shape=("N",)):
    """`y = x + x`."""
    return one_node("Add", dtype, shape, ("x", "x"))


def external(name, dtype, shape, file, offset=0, length=None):
    """A TensorProto whose elements are in another file."""
    entries = {"location": file, "offset": str(offset), "length": str(length)}
    return b"".join(
        (
            *(number(1, n) for n in shape),
            number(2, TYPES[dtype]),
            text(8, name),
            *(message(13, text(1, key), text(2, entries[key])) for key in entries),
            number(14, 1),
        )
    )


def outside(file):
    """Adds (1, 2, 3), which are in another file."""
    return graph(
        [node("Add", ("x", "b"), ("y",))],
        [("x", "float32", ("N", 3))],
        [("y", "float32", ("N", 3))],
        external("b", "float32", (3,), file, offset=4, length=12),
    )


OUTSIDE = outside("weights.bin")
WEIGHTS = struct.pack("<4f", 9, 1, 2, 3)
