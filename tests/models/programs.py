# More than 500 lines: one function for each model.
"""Models of the kinds that programs for onnxruntime are written for: a decoder with a cache, an
encoder of sentences, a detector, a detector of speech, and small ones of a single purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from building import (
    FLOAT,
    INT64,
    Weights,
    chance,
    model,
    node,
    scaled,
    value,
)
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, DEPTH, WORDS = 16, 2, 8, 40
LETTERS = 48  # words of the encoder's vocabulary
# Types of ONNX with the names that the files have.
TYPES = {
    "float32": FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}


def made() -> dict[str, onnx.ModelProto]:
    """The models by the names of their files."""
    return {
        "cache": cache(),
        "encoder": encoder(),
        "detector": detector(),
        "voice": voice(),
        "classifier": classifier(),
        "described": described(),
        "sequences": sequences(),
        "takes_sequence": takes_sequence(),
        "labels": labels(),
        "maps": maps(),
        "branches": branches(),
        "loop": loop(),
        "integers_q": quantised_conv(),
        "named": named(),
        "scalar": scalar(),
        "optional": optional(),
        **{f"same_{name}": same(name, kind) for name, kind in TYPES.items()},
    }


def save(folder: Path) -> None:
    """What is no whole model, or more than one file."""
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary()) + "\n")
    whole = made()["named"].SerializeToString()
    (folder / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "text.onnx").write_text("a page that says 404\n")
    for name, broken in wrong().items():
        (folder / f"wrong_{name}.onnx").write_bytes(broken.SerializeToString())
    np.savez(folder / "pictures.npz", pictures=pictures())


def cache() -> onnx.ModelProto:
    """One layer of a decoder that takes the keys and values of the tokens before."""
    random = chance("cache")
    weights = {
        "words": scaled(random, (WORDS, WIDTH), 1),
        "wq": scaled(random, (WIDTH, WIDTH), WIDTH),
        "wk": scaled(random, (WIDTH, WIDTH), WIDTH),
        "wv": scaled(random, (WIDTH, WIDTH), WIDTH),
        "wo": scaled(random, (WIDTH, WORDS), WIDTH),
        "heads": np.array([0, 0, HEADS, DEPTH], np.int64),
        "flat": np.array([0, 0, WIDTH], np.int64),
        "root": np.float32(1 / np.sqrt(DEPTH)),
    }
    nodes = [node("Gather", "words input_ids", "x")]
    for part in "qkv":
        nodes += [
            node("MatMul", f"x w{part}", f"{part}0"),
            node("Reshape", f"{part}0 heads", f"{part}1"),
            node("Transpose", f"{part}1", f"{part}2", perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Concat", "past_key_values.0.key k2", "present.0.key", axis=2),
        node("Concat", "past_key_values.0.value v2", "present.0.value", axis=2),
        node("Transpose", "present.0.key", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q2 kt", "raw"),
        node("Mul", "raw root", "scores"),
        node("Softmax", "scores", "seen", axis=-1),
        node("MatMul", "seen present.0.value", "mixed"),
        node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]),
        node("Reshape", "back flat", "joined"),
        node("Add", "x joined", "y"),
        node("MatMul", "y wo", "logits"),
    ]
    past = ["batch_size", HEADS, "past_sequence_length", DEPTH]
    whole = ["batch_size", HEADS, "total_sequence_length", DEPTH]
    inputs = [
        value("input_ids", INT64, ["batch_size", "sequence_length"]),
        value("past_key_values.0.key", FLOAT, past),
        value("past_key_values.0.value", FLOAT, past),
    ]
    outputs = [
        value("logits", FLOAT, ["batch_size", "sequence_length", WORDS]),
        value("present.0.key", FLOAT, whole),
        value("present.0.value", FLOAT, whole),
    ]
    return model("cache", nodes, inputs, outputs, weights)


def vocabulary() -> list[str]:
    """Words and pieces of words."""
    words = (
        "[PAD] [UNK] [CLS] [SEP] the a cat dog sat run ##s ##ning ##ner on mat in park"
    )
    words += (
        " and big small fast slow is was not ! . , ? it we they bird fly ##ing tree"
    )
    listed = words.split()
    return listed + [f"[unused{i}]" for i in range(LETTERS - len(listed))]


def encoder() -> onnx.ModelProto:
    """What exporters make of an encoder of sentences: three inputs of int64, states of all tokens."""
    random = chance("encoder")
    weights = {
        "words": scaled(random, (LETTERS, WIDTH), 1),
        "kinds": scaled(random, (2, WIDTH), 1),
        "w": scaled(random, (WIDTH, WIDTH), WIDTH),
        "scale": np.ones(WIDTH, np.float32),
        "shift": np.zeros(WIDTH, np.float32),
        "one": np.float32(1),
        "low": np.float32(-1e4),
        "axis": np.array([1], np.int64),
    }
    nodes = [
        node("Gather", "words input_ids", "a"),
        node("Gather", "kinds token_type_ids", "b"),
        node("Add", "a b", "x"),
        node("Transpose", "x", "xt", perm=[0, 2, 1]),
        node("MatMul", "x xt", "raw"),
        node("Cast", "attention_mask", "mask", to=FLOAT),
        node("Sub", "one mask", "unseen"),
        node("Mul", "unseen low", "bias"),
        node("Unsqueeze", "bias axis", "biases"),
        node("Add", "raw biases", "scores"),
        node("Softmax", "scores", "seen", axis=-1),
        node("MatMul", "seen x", "mixed"),
        node("MatMul", "mixed w", "turned"),
        node("Tanh", "turned", "bent"),
        node("Add", "x bent", "sum"),
        node("LayerNormalization", "sum scale shift", "last_hidden_state"),
    ]
    shape = ["batch_size", "sequence_length"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [value(name, INT64, [*shape]) for name in names]
    outputs = [value("last_hidden_state", FLOAT, [*shape, WIDTH])]
    return model("encoder", nodes, inputs, outputs, weights)


def detector() -> onnx.ModelProto:
    """Boxes in columns, as YOLO has them: x, y, width, height, and a score for each of three kinds."""
    random = chance("detector")
    weights = {
        "w": scaled(random, (7, 3, 8, 8), 40),
        "b": scaled(random, (7,), 1),
        "cells": np.array([1, 7, 64], np.int64),
        "four": np.array([4, 3], np.int64),
        "size": np.float32(64),
    }
    nodes = [
        node("Conv", "images w b", "grid", strides=[8, 8]),
        node("Reshape", "grid cells", "rows"),
        node("Sigmoid", "rows", "all"),
        node("Split", "all four", "places scores", axis=1),
        node("Mul", "places size", "boxes"),
        node("Concat", "boxes scores", "output0", axis=1),
    ]
    inputs = [value("images", FLOAT, [1, 3, 64, 64])]
    outputs = [value("output0", FLOAT, [1, 7, 64])]
    return model("detector", nodes, inputs, outputs, weights)


def voice() -> onnx.ModelProto:
    """Whether a chunk of sound is speech: a recurrent state goes in and out, and the rate is a scalar."""
    random = chance("voice")
    hidden = 8
    weights = {
        "w": scaled(random, (1, 4 * hidden, 32), 32),
        "r": scaled(random, (1, 4 * hidden, hidden), hidden),
        "bias": scaled(random, (1, 8 * hidden), 1),
        "last": scaled(random, (hidden, 1), hidden),
        "frames": np.array([0, -1, 32], np.int64),
        "rate": np.int64(16000),
        "half": np.float32(0.5),
        "one": np.float32(1),
        "halves": np.array([1, 1], np.int64),
        "zero": np.array([0], np.int64),
    }
    nodes = [
        node("Equal", "sr rate", "usual"),
        node("Where", "usual one half", "gain"),
        node("Mul", "input gain", "loud"),
        node("Reshape", "loud frames", "f0"),
        node("Transpose", "f0", "f1", perm=[1, 0, 2]),
        node("Split", "state halves", "h0 c0", axis=0),
        helper.make_node(
            "LSTM",
            ["f1", "w", "r", "bias", "", "h0", "c0"],
            ["", "h1", "c1"],
            hidden_size=hidden,
        ),
        node("Concat", "h1 c1", "stateN", axis=0),
        node("Squeeze", "h1 zero", "h2"),
        node("MatMul", "h2 last", "raw"),
        node("Sigmoid", "raw", "output"),
    ]
    inputs = [
        value("input", FLOAT, [None, None]),
        value("state", FLOAT, [2, None, hidden]),
        value("sr", INT64, []),
    ]
    outputs = [
        value("output", FLOAT, [None, 1]),
        value("stateN", FLOAT, [2, None, hidden]),
    ]
    return model("voice", nodes, inputs, outputs, weights)


def classifier() -> onnx.ModelProto:
    """Kinds of pictures, with what a model says of itself."""
    random = chance("classifier")
    weights = {
        "w": scaled(random, (6, 3, 3, 3), 27),
        "b": scaled(random, (6,), 1),
        "fc": scaled(random, (6, 5), 6),
    }
    nodes = [
        node("Conv", "input w b", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", "a", "c"),
        node("GlobalAveragePool", "c", "d"),
        node("Flatten", "d", "e"),
        node("MatMul", "e fc", "logits"),
        node("Softmax", "logits", "probabilities", axis=-1),
    ]
    inputs = [value("input", FLOAT, ["batch", 3, 32, 32])]
    outputs = [
        value("logits", FLOAT, ["batch", 5]),
        value("probabilities", FLOAT, ["batch", 5]),
    ]
    built = model("classifier", nodes, inputs, outputs, weights)
    helper.set_model_props(
        built, {"names": "{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e'}", "stride": "32"}
    )
    return built


def described() -> onnx.ModelProto:
    """All that the head of a model can say."""
    built = named()
    built.producer_name, built.producer_version = "a tool", "1.2.3"
    built.domain, built.model_version = "org.example", 7
    built.doc_string = "What the model is.\nIn two lines."
    built.graph.name, built.graph.doc_string = "a graph", "ümläut ✓"
    built.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    helper.set_model_props(
        built, {"author": "somebody", "empty": "", "json": '{"a": [1, 2]}', "ключ": "√"}
    )
    return built


def named() -> onnx.ModelProto:
    """Two inputs, three outputs, of which one is an input of another node."""
    nodes = [
        node("Add", "a b", "sum"),
        node("Mul", "a b", "product"),
        node("Sub", "sum product", "rest"),
    ]
    inputs = [value("a", FLOAT, ["n", 2]), value("b", FLOAT, ["n", 2])]
    outputs = [value(name, FLOAT, ["n", 2]) for name in ("sum", "product", "rest")]
    return model("named", nodes, inputs, outputs, {})


def same(name: str, kind: int) -> onnx.ModelProto:
    """Whatever goes in, of one type and any shape."""
    nodes = [node("Identity", "x", "y")]
    inputs, outputs = [value("x", kind, [])], [value("y", kind, [])]
    built = model(f"same_{name}", nodes, inputs, outputs, {})
    for slot in (*built.graph.input, *built.graph.output):
        slot.type.tensor_type.ClearField("shape")
    return built


def scalar() -> onnx.ModelProto:
    """A number without a shape, and one that is a constant."""
    nodes = [node("Add", "x x", "y"), node("Identity", "c", "z")]
    inputs = [value("x", FLOAT, [])]
    outputs = [value("y", FLOAT, []), value("z", INT64, [])]
    return model("scalar", nodes, inputs, outputs, {"c": np.int64(2**40)})


def sequences() -> onnx.ModelProto:
    """A tensor in pieces: an output that is a sequence of tensors."""
    nodes = [
        node("SplitToSequence", "x", "pieces", axis=0, keepdims=1),
        node("SequenceLength", "pieces", "count"),
    ]
    outputs = [
        helper.make_tensor_sequence_value_info("pieces", FLOAT, None),
        value("count", INT64, []),
    ]
    return model("sequences", nodes, [value("x", FLOAT, ["n", 2])], outputs, {})


def takes_sequence() -> onnx.ModelProto:
    """A sequence of tensors, joined."""
    nodes = [node("ConcatFromSequence", "pieces", "y", axis=0)]
    inputs = [helper.make_tensor_sequence_value_info("pieces", FLOAT, None)]
    return model("takes_sequence", nodes, inputs, [value("y", FLOAT, ["n", 2])], {})


def ml(nodes: list[onnx.NodeProto], name: str, inputs: list, outputs: list) -> object:
    graph = helper.make_graph(nodes, name, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    built = helper.make_model(graph, opset_imports=opsets)
    built.ir_version = 8
    onnx.checker.check_model(built)
    return built


def labels() -> onnx.ModelProto:
    """Words to numbers and back."""
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["words"],
            ["numbers"],
            domain="ai.onnx.ml",
            keys_strings=["red", "green", "blue"],
            values_int64s=[1, 2, 3],
            default_int64=-1,
        ),
        helper.make_node(
            "LabelEncoder",
            ["numbers"],
            ["again"],
            domain="ai.onnx.ml",
            keys_int64s=[1, 2, 3],
            values_strings=["rot", "grün", "blau"],
            default_string="?",
        ),
    ]
    return ml(
        nodes,
        "labels",
        [value("words", TensorProto.STRING, ["n"])],
        [value("numbers", INT64, ["n"]), value("again", TensorProto.STRING, ["n"])],
    )


def maps() -> onnx.ModelProto:
    """Rows as dicts with integers as keys, and the tensor that they are made of."""
    nodes = [
        node("Softmax", "x", "p", axis=-1),
        helper.make_node(
            "ZipMap",
            ["p"],
            ["rows"],
            domain="ai.onnx.ml",
            classlabels_int64s=[10, 20, 30],
        ),
    ]
    row = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    rows = helper.make_value_info("rows", helper.make_sequence_type_proto(row))
    return ml(
        nodes,
        "maps",
        [value("x", FLOAT, ["n", 3])],
        [rows, value("p", FLOAT, ["n", 3])],
    )


def branches() -> onnx.ModelProto:
    """One of two ways, by a bool."""
    then = helper.make_graph(
        [node("Add", "x x", "t")], "then", [], [value("t", FLOAT, ["n"])]
    )
    other = helper.make_graph(
        [node("Neg", "x", "e")], "else", [], [value("e", FLOAT, ["n"])]
    )
    nodes = [
        helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other)
    ]
    inputs = [value("flag", TensorProto.BOOL, []), value("x", FLOAT, ["n"])]
    return model("branches", nodes, inputs, [value("y", FLOAT, ["n"])], {})


def loop() -> onnx.ModelProto:
    """Doubles x a number of times, and keeps each step."""
    body = helper.make_graph(
        [
            node("Add", "before before", "after"),
            node("Identity", "after", "kept"),
            node("Identity", "going", "goes"),
        ],
        "body",
        [
            value("i", INT64, []),
            value("going", TensorProto.BOOL, []),
            value("before", FLOAT, [2]),
        ],
        [
            value("goes", TensorProto.BOOL, []),
            value("after", FLOAT, [2]),
            value("kept", FLOAT, [2]),
        ],
    )
    nodes = [helper.make_node("Loop", ["times", "", "x"], ["last", "steps"], body=body)]
    inputs = [value("times", INT64, []), value("x", FLOAT, [2])]
    outputs = [value("last", FLOAT, [2]), value("steps", FLOAT, ["times", 2])]
    return model("loop", nodes, inputs, outputs, {})


def quantised_conv() -> onnx.ModelProto:
    """A convolution of 8-bit integers, as static quantisation writes it."""
    random = chance("integers_q")
    weights: Weights = {
        "xs": np.float32(1 / 255),
        "xz": np.uint8(0),
        # Of seven bits: of eight, sums of two products overflow on x86 without VNNI.
        "w": random.integers(-60, 60, (4, 3, 3, 3)).astype(np.int8),
        "ws": np.float32(0.015),
        "wz": np.int8(0),
        "ys": np.float32(0.05),
        "yz": np.uint8(128),
        "b": random.integers(-200, 200, 4).astype(np.int32),
    }
    nodes = [
        node("QuantizeLinear", "image xs xz", "q"),
        node("QLinearConv", "q xs xz w ws wz ys yz b", "y", pads=[1, 1, 1, 1]),
        node("DequantizeLinear", "y ys yz", "features"),
    ]
    inputs = [value("image", FLOAT, ["n", 3, "h", "w_"])]
    outputs = [
        value("y", TensorProto.UINT8, ["n", 4, "h", "w_"]),
        value("features", FLOAT, ["n", 4, "h", "w_"]),
    ]
    return model("integers_q", nodes, inputs, outputs, weights)


def optional() -> onnx.ModelProto:
    """A default that a run may replace, of each kind that people replace: a number and a bool."""
    nodes = [
        node("Mul", "x temperature", "scaled"),
        node("Where", "negate minus plus", "sign"),
        node("Mul", "scaled sign", "y"),
    ]
    inputs = [
        value("x", FLOAT, ["n"]),
        value("temperature", FLOAT, []),
        value("negate", TensorProto.BOOL, []),
    ]
    weights = {
        "temperature": np.float32(0.5),
        "negate": np.bool_(False),
        "minus": np.float32(-1),
        "plus": np.float32(1),
    }
    return model("optional", nodes, inputs, [value("y", FLOAT, ["n"])], weights)


def wrong() -> dict[str, onnx.ModelProto]:
    """Models that break a rule, each another one."""

    def bare(*nodes: onnx.NodeProto, opset: int = 17) -> onnx.ModelProto:
        graph = helper.make_graph(
            [*nodes], "wrong", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])]
        )
        built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        built.ir_version = 8
        return built

    future = bare(node("Neg", "x", "y"))
    future.ir_version = 99
    kinds = bare(node("Cast", "x", "z", to=INT64), node("Add", "x z", "y"))
    shapes = bare(node("MatMul", "x w", "y"))
    shapes.graph.initializer.append(
        numpy_helper.from_array(np.ones((3, 2), np.float32), "w")
    )
    custom = bare(helper.make_node("Own", ["x"], ["y"], domain="my.ops"))
    custom.opset_import.append(helper.make_opsetid("my.ops", 1))
    return {
        "operator": bare(node("Nonsense", "x", "y")),
        "attribute": bare(node("Neg", "x", "y", nonsense=1)),
        "input": bare(node("Add", "x q", "y")),
        "output": bare(node("Neg", "x", "z")),
        "twice": bare(node("Neg", "x", "y"), node("Abs", "x", "y")),
        "opset": bare(node("Neg", "x", "y"), opset=99),
        "version": future,
        "types": kinds,
        "shapes": shapes,
        "custom": custom,
    }


def pictures() -> np.ndarray:
    """Two smooth pictures in colour, as a decoder of files gives them."""
    y, x = np.mgrid[0:48, 0:64]
    planes = [(x * 4) % 256, (y * 5) % 256, ((x + y) * 2) % 256]
    one = np.stack(planes, axis=-1).astype(np.uint8)
    return np.stack([one, one[::-1, ::-1]])
