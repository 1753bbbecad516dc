"""Dense networks as .tflite files, for LiteRT (LiteRT.js in a page).

TensorFlow's converter is half a gigabyte, and a file of two layers has a dozen tables.
This module writes them with the field numbers of TensorFlow Lite's schema (its
schema.fbs is public).
"""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np

IDENTIFIER = b"TFL3"
VERSION = 3
FLOAT32 = 0  # TensorType
FULLY_CONNECTED = 9  # BuiltinOperator
FULLY_CONNECTED_OPTIONS = 8  # BuiltinOptions
NO_ACTIVATION, RELU = 0, 1  # ActivationFunctionType
ALIGNMENT = 16  # of weights

# Fields of the schema's tables; their number is their position here.
MODEL = ("version", "operator_codes", "subgraphs", "description", "buffers")
SUBGRAPH = ("tensors", "inputs", "outputs", "operators", "name")
TENSOR = ("shape", "type", "buffer", "name")
OPERATOR_CODE = ("deprecated_builtin_code", "custom_code", "version", "builtin_code")
OPERATOR = ("opcode_index", "inputs", "outputs", "options_type", "options")
OPTIONS = ("activation",)
BUFFER = ("data",)


class Writer:
    """Writes tables and vectors, each before those that refer to it, as FlatBuffers
    require."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)

    def table(self, fields: Sequence[str], values: dict[str, tuple[str, int]]) -> int:
        """values: for each field to write, its kind and its value or offset."""
        self.builder.StartObject(len(fields))
        for name, (kind, value) in values.items():
            prepend = getattr(self.builder, f"Prepend{kind}Slot")
            # The default None makes the builder write every given value.
            prepend(
                fields.index(name), value, 0 if kind.startswith("UOffset") else None
            )
        return int(self.builder.EndObject())

    def places(self, places: Sequence[int]) -> tuple[str, int]:
        self.builder.StartVector(4, len(places), 4)
        for place in reversed(places):
            self.builder.PrependUOffsetTRelative(place)
        return "UOffsetTRelative", self.builder.EndVector()

    def numbers(self, numbers: Sequence[int]) -> tuple[str, int]:
        array = np.array(numbers, np.int32)
        return "UOffsetTRelative", self.builder.CreateNumpyVector(array)

    def bytes(self, data: bytes) -> tuple[str, int]:
        self.builder.StartVector(1, len(data), ALIGNMENT)
        self.builder.head -= len(data)
        self.builder.Bytes[self.builder.head : self.builder.head + len(data)] = data
        return "UOffsetTRelative", self.builder.EndVector()

    def text(self, text: str) -> tuple[str, int]:
        return "UOffsetTRelative", self.builder.CreateString(text)


def dense(layers: Sequence[tuple[np.ndarray, np.ndarray]], rows: int) -> bytes:
    """x [rows, n] -> x @ w + b for each (w, b) in turn, with relu between them: a
    .tflite file."""
    out = Writer()
    tensors: list[int] = []
    buffers = [out.table(BUFFER, {})]  # the empty one, for computed tensors

    def tensor(
        name: str, shape: tuple[int, ...], data: np.ndarray | None = None
    ) -> int:
        if data is not None:
            packed = np.ascontiguousarray(data, np.float32).tobytes()
            buffers.append(out.table(BUFFER, {"data": out.bytes(packed)}))
        values = {
            "shape": out.numbers(shape),
            "type": ("Int8", FLOAT32),
            "buffer": ("Uint32", 0 if data is None else len(buffers) - 1),
            "name": out.text(name),
        }
        tensors.append(out.table(TENSOR, values))
        return len(tensors) - 1

    first = last = tensor("x", (rows, layers[0][0].shape[0]))
    operators = []
    for number, (weights, bias) in enumerate(layers, 1):
        given = [
            last,
            tensor(f"w{number}", weights.T.shape, weights.T),
            tensor(f"b{number}", bias.shape, bias),
        ]
        end = number == len(layers)
        last = tensor("y" if end else f"hidden{number}", (rows, len(bias)))
        options = {"activation": ("Int8", NO_ACTIVATION if end else RELU)}
        operator = {
            "opcode_index": ("Uint32", 0),
            "inputs": out.numbers(given),
            "outputs": out.numbers([last]),
            "options_type": ("Uint8", FULLY_CONNECTED_OPTIONS),
            "options": ("UOffsetTRelative", out.table(OPTIONS, options)),
        }
        operators.append(out.table(OPERATOR, operator))
    graph = {
        "tensors": out.places(tensors),
        "inputs": out.numbers([first]),
        "outputs": out.numbers([last]),
        "operators": out.places(operators),
        "name": out.text("main"),
    }
    code = {
        "deprecated_builtin_code": ("Int8", FULLY_CONNECTED),
        "version": ("Int32", 1),
        "builtin_code": ("Int32", FULLY_CONNECTED),
    }
    model = {
        "version": ("Uint32", VERSION),
        "operator_codes": out.places([out.table(OPERATOR_CODE, code)]),
        "subgraphs": out.places([out.table(SUBGRAPH, graph)]),
        "description": out.text("dense layers"),
        "buffers": out.places(buffers),
    }
    out.builder.Finish(out.table(MODEL, model), file_identifier=IDENTIFIER)
    return bytes(out.builder.Output())
