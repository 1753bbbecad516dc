"""What models are built of, by the helpers of the package onnx."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOAT, FLOAT16, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64

Weights = dict[str, np.ndarray]


def chance(name: str) -> np.random.Generator:
    """Numbers of a model's own, so that a change of one leaves the others as they are."""
    return np.random.default_rng(list(name.encode()))


def value(name: str, kind: int, shape: list[int | str | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: Weights,
) -> onnx.ModelProto:
    """A model of these nodes that the checker of ONNX has nothing against."""
    constants = [numpy_helper.from_array(a, key) for key, a in weights.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    made.ir_version = 8  # what older runtimes read, too
    onnx.checker.check_model(made, full_check=True)
    return made


def node(kind: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    """`node("Add", "a b", "c")`"""
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def scaled(random: np.random.Generator, shape: tuple[int, ...], fan: int) -> np.ndarray:
    """Numbers of both signs, so small that sums of `fan` products stay about 1."""
    spread = random.random(shape, dtype=np.float32) - np.float32(0.5)
    return spread * np.float32(2 / np.sqrt(fan))
