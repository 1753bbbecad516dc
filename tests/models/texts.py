"""Models about text: strings as values, labels of dicts, and names that mean something in JavaScript."""

from __future__ import annotations

import numpy as np
import onnx
from building import FLOAT, INT64, node, value
from onnx import TensorProto, helper, numpy_helper

# Labels in no order; of two that are the same, the last one counts.
LABELS = {
    "strings": ["b", "a", "Z", "é", "aa", "", "10", "9", "a\0", "\U0001f600", "\uffee"],
    "int64s": [30, -1, 5, 2**40, -(2**40), 0, 7, 10],
    "twice": ["b", "a", "b", "c", "a"],
    "single": ["b", "a", "c"],  # of one axis
}
CONSTANTS = {
    "inner": [b"plain", b"a\0b"],
    "plain": [b"plain", "é\U0001f600".encode(), b""],
    "bytes": [b"plain", b"\xff\xfe"],
}
NAMES = [
    "constructor",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__proto__",
    "then",
    "0",
    "1e3",
    " ",
    "length",
    "dispose",
    "\ufeffx",
    "a.b/c:0",
    "é\U0001f600",
]


def made() -> dict[str, onnx.ModelProto]:
    """The models by the names of their files."""
    return {
        **{f"maps_{name}": maps(name) for name in LABELS},
        **{f"constant_{name}": constant(name) for name in CONSTANTS},
        **{f"names_{i}": names(name) for i, name in enumerate(NAMES)},
    }


def maps(name: str) -> onnx.ModelProto:
    """Rows as dicts, and the tensor that they are made of."""
    labels = LABELS[name]
    shape = ["n"] if name == "single" else ["n", "m"]
    kind = INT64 if name == "int64s" else TensorProto.STRING
    attribute = "classlabels_int64s" if name == "int64s" else "classlabels_strings"
    nodes = [
        node("ZipMap", "x", "rows", domain="ai.onnx.ml", **{attribute: labels}),
        node("Identity", "x", "p"),
    ]
    row = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(FLOAT, []))
    rows = helper.make_value_info("rows", helper.make_sequence_type_proto(row))
    return unchecked(
        nodes, [value("x", FLOAT, shape)], [rows, value("p", FLOAT, shape)]
    )


def constant(name: str) -> onnx.ModelProto:
    """Strings of the model as an output, and a number."""
    texts = CONSTANTS[name]
    then = helper.make_tensor("texts", TensorProto.STRING, [len(texts)], texts)
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["found"], value=then)],
        "branch",
        [],
        [value("found", TensorProto.STRING, [len(texts)])],
    )
    nodes = [
        helper.make_node(
            "If", ["yes"], ["text"], then_branch=branch, else_branch=branch
        ),
        node("Identity", "number", "one"),
    ]
    outputs = [value("text", TensorProto.STRING, [len(texts)]), value("one", FLOAT, [])]
    weights = {"yes": np.bool_(True), "number": np.float32(1)}
    return unchecked(nodes, [], outputs, weights)


def names(name: str) -> onnx.ModelProto:
    """Rows of a table, by an input, an output and a replaceable value of that name."""
    nodes = [
        helper.make_node("Gather", ["table", name], ["rows"]),
        helper.make_node("Add", ["rows", f"{name}+"], [f"{name}="]),
    ]
    inputs = [value(name, INT64, ["n"]), value(f"{name}+", FLOAT, [2])]
    weights = {
        "table": np.arange(6, dtype=np.float32).reshape(3, 2),
        f"{name}+": np.float32([10, 20]),
    }
    return unchecked(nodes, inputs, [value(f"{name}=", FLOAT, ["n", 2])], weights)


def unchecked(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model that the checker of ONNX may have something against."""
    constants = [numpy_helper.from_array(a, key) for key, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "texts", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    built = helper.make_model(graph, opset_imports=opsets)
    built.ir_version = 8
    return built
