"""Make the models that programs for onnxruntime run: small, and the same every time.

Each is one kind of thing that models have: a convolution, attention, float16, int8, extents that
are not known before, several inputs and outputs, weights in a file of their own. Where numbers
are only there to be multiplied they come of a fixed seed; the quantised and the float16 network
are the one of web/site/digits.py, which was trained.

Usage: build/libs/bin/python tests/models/make.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import estimators
import numpy as np
import onnx
import programs
import texts
from building import FLOAT, FLOAT16, INT64, Weights, chance, model, node, scaled, value
from onnx import TensorProto

ROOT = Path(__file__).resolve().parents[2]
TRAINED = ROOT / "build" / "model" / "site"
TOKENS, WIDTH, HEADS, WORDS = 12, 32, 4, 64


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    trained = dict(np.load(TRAINED / "digits.npz"))
    trained = {name: trained[name] for name in ("w1", "b1", "w2", "b2")}
    made = {
        "convolution": convolution(),
        "transformer": transformer(),
        "float16": half(trained),
        "quantised": quantised(trained),
        "dynamic": dynamic(),
        "several": several(),
        "overridable": overridable(),
        "unnamed": unnamed(),
        **programs.made(),
        **texts.made(),
    }
    for name, built in made.items():
        onnx.save(built, folder / f"{name}.onnx")
    onnx.save(onnx.load(TRAINED / "digits.onnx"), folder / "digits.onnx")
    save_outside(trained, folder / "external.onnx")
    np.savez(folder / "digits.npz", pixels=test_pixels())
    programs.save(folder)
    fitted = estimators.save(folder)
    print(f"[models] {len(made) + 2 + fitted} models in {folder}")


def test_pixels() -> np.ndarray:
    """Eight handwritten digits, 0 to 1."""
    from sklearn.datasets import load_digits

    pixels, _ = load_digits(return_X_y=True)
    return (pixels[:8] / 16).astype(np.float32)


def convolution() -> onnx.ModelProto:
    """Two convolutions, the second one by channel, with a normalisation, a pool and a way past."""
    random = chance("convolution")
    weights = {
        "w1": scaled(random, (8, 3, 3, 3), 27),
        "b1": scaled(random, (8,), 1),
        "scale": 1 + scaled(random, (8,), 4),
        "shift": scaled(random, (8,), 4),
        "mean": scaled(random, (8,), 4),
        "variance": 0.5 + random.random(8, dtype=np.float32),
        "w2": scaled(random, (8, 1, 3, 3), 9),
        "w3": scaled(random, (8, 10), 8),
    }
    nodes = [
        node("Conv", "image w1 b1", "a", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a scale shift mean variance", "b"),
        node("Relu", "b", "c"),
        node("Conv", "c w2", "d", pads=[1, 1, 1, 1], group=8),
        node("Add", "c d", "e"),
        node("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "f", "g"),
        node("Flatten", "g", "h"),
        node("MatMul", "h w3", "scores"),
    ]
    inputs = [value("image", FLOAT, [2, 3, 16, 16])]
    outputs = [value("f", FLOAT, [2, 8, 8, 8]), value("scores", FLOAT, [2, 10])]
    return model("convolution", nodes, inputs, outputs, weights)


def transformer() -> onnx.ModelProto:
    """A block as in a small language model: embedding, attention under a mask, and an MLP."""
    random = chance("transformer")
    inner, depth = 4 * WIDTH, WIDTH // HEADS
    weights = {
        "words": scaled(random, (WORDS, WIDTH), 1),
        "places": scaled(random, (TOKENS, WIDTH), 1),
        "wqkv": scaled(random, (WIDTH, 3 * WIDTH), WIDTH),
        "wo": scaled(random, (WIDTH, WIDTH), WIDTH),
        "wup": scaled(random, (WIDTH, inner), WIDTH),
        "wdown": scaled(random, (inner, WIDTH), inner),
        "one": np.ones(WIDTH, np.float32),
        "zero": np.zeros(WIDTH, np.float32),
        "heads": np.array([0, 0, 3, HEADS, depth], np.int64),
        "flat": np.array([0, 0, WIDTH], np.int64),
        "thirds": np.array([1, 1, 1], np.int64),
        "first": np.array([0], np.int64),
        "root": np.float32(1 / np.sqrt(depth)),
        "half": np.float32(0.5),
        "unit": np.float32(1),
        "sqrt2": np.float32(1 / np.sqrt(2)),
        # What a token must not see: those after it.
        "mask": np.triu(np.full((TOKENS, TOKENS), -1e4, np.float32), 1),
    }
    nodes = [
        node("Gather", "words tokens", "found"),
        node("Add", "found places", "x"),
        node("LayerNormalization", "x one zero", "n1"),
        node("MatMul", "n1 wqkv", "qkv"),
        node("Reshape", "qkv heads", "parted"),
        node("Transpose", "parted", "turned", perm=[2, 0, 3, 1, 4]),
        node("Split", "turned thirds", "q3 k3 v3", axis=0),
        node("Squeeze", "q3 first", "q"),
        node("Squeeze", "k3 first", "k"),
        node("Squeeze", "v3 first", "v"),
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "raw"),
        node("Mul", "raw root", "small"),
        node("Add", "small mask", "masked"),
        node("Softmax", "masked", "weights", axis=-1),
        node("MatMul", "weights v", "seen"),
        node("Transpose", "seen", "back", perm=[0, 2, 1, 3]),
        node("Reshape", "back flat", "joined"),
        node("MatMul", "joined wo", "attended"),
        node("Add", "x attended", "y"),
        node("LayerNormalization", "y one zero", "n2"),
        node("MatMul", "n2 wup", "up"),
        # GELU, as exporters write it.
        node("Mul", "up sqrt2", "g1"),
        node("Erf", "g1", "g2"),
        node("Add", "g2 unit", "g3"),
        node("Mul", "up g3", "g4"),
        node("Mul", "g4 half", "gelu"),
        node("MatMul", "gelu wdown", "down"),
        node("Add", "y down", "hidden"),
        node("Transpose", "words", "words_t"),
        node("MatMul", "hidden words_t", "logits"),
        node("ArgMax", "logits", "next", axis=-1, keepdims=0),
    ]
    inputs = [value("tokens", INT64, [1, TOKENS])]
    outputs = [
        value("hidden", FLOAT, [1, TOKENS, WIDTH]),
        value("logits", FLOAT, [1, TOKENS, WORDS]),
        value("next", INT64, [1, TOKENS]),
    ]
    return model("transformer", nodes, inputs, outputs, weights)


def half(trained: Weights) -> onnx.ModelProto:
    """The trained network in float16, weights and all."""
    nodes = [
        node("Gemm", "pixels w1 b1", "sums"),
        node("Relu", "sums", "hidden"),
        node("Gemm", "hidden w2 b2", "logits"),
    ]
    weights = {name: a.astype(np.float16) for name, a in trained.items()}
    inputs, outputs = (
        [value("pixels", FLOAT16, ["N", 64])],
        [value("logits", FLOAT16, ["N", 10])],
    )
    return model("float16", nodes, inputs, outputs, weights)


def quantised(trained: Weights) -> onnx.ModelProto:
    """The trained network with 8-bit weights, by both ways in which tools write that: the first
    layer has QuantizeLinear and DequantizeLinear around a float MatMul, the second quantises its
    input as it runs (DynamicQuantizeLinear, MatMulInteger)."""
    weights: Weights = {"b1": trained["b1"], "b2": trained["b2"]}
    for name in ("w1", "w2"):
        scale = np.float32(np.abs(trained[name]).max() / 127)
        weights[f"{name}_q"] = np.rint(trained[name] / scale).astype(np.int8)
        weights[f"{name}_s"] = scale
        weights[f"{name}_z"] = np.int8(0)
    weights |= {"x_s": np.float32(1 / 255), "x_z": np.uint8(0)}
    nodes = [
        node("QuantizeLinear", "pixels x_s x_z", "x_q"),
        node("DequantizeLinear", "x_q x_s x_z", "x"),
        node("DequantizeLinear", "w1_q w1_s w1_z", "w1"),
        node("MatMul", "x w1", "products"),
        node("Add", "products b1", "sums"),
        node("Relu", "sums", "hidden"),
        node("DynamicQuantizeLinear", "hidden", "h_q h_s h_z"),
        node("MatMulInteger", "h_q w2_q h_z w2_z", "integers"),
        node("Cast", "integers", "floats", to=FLOAT),
        node("Mul", "h_s w2_s", "scale"),
        node("Mul", "floats scale", "scaled"),
        node("Add", "scaled b2", "logits"),
    ]
    inputs, outputs = (
        [value("pixels", FLOAT, ["N", 64])],
        [value("logits", FLOAT, ["N", 10]), value("h_q", TensorProto.UINT8, ["N", 64])],
    )
    return model("quantised", nodes, inputs, outputs, weights)


def dynamic() -> onnx.ModelProto:
    """Distances between two sets of points: how many, and in how many dimensions, a run tells."""
    nodes = [
        node("Unsqueeze", "a axis1", "rows"),
        node("Unsqueeze", "b axis0", "columns"),
        node("Sub", "rows columns", "apart"),
        node("Mul", "apart apart", "squares"),
        node("ReduceSum", "squares axis2", "sums", keepdims=0),
        node("Sqrt", "sums", "distances"),
        node("Shape", "distances", "shape"),
    ]
    weights = {f"axis{axis}": np.array([axis], np.int64) for axis in range(3)}
    inputs = [value("a", FLOAT, ["N", "D"]), value("b", FLOAT, ["M", "D"])]
    outputs = [value("distances", FLOAT, ["N", "M"]), value("shape", INT64, [2])]
    return model("dynamic", nodes, inputs, outputs, weights)


def several() -> onnx.ModelProto:
    """Inputs and outputs of many dtypes."""
    kinds = {
        "i64": INT64,
        "i32": TensorProto.INT32,
        "u8": TensorProto.UINT8,
        "flag": TensorProto.BOOL,
        "x": FLOAT,
    }
    inputs = [value(name, kind, [2, 3]) for name, kind in kinds.items()]
    nodes = [
        node("Add", "i64 big", "more"),
        node("Cast", "i32", "i32_f", to=FLOAT),
        node("Cast", "u8", "u8_f", to=FLOAT),
        node("Add", "i32_f u8_f", "sums"),
        node("Where", "flag x sums", "chosen"),
        node("Mul", "chosen factor", "scaled"),
        node("Not", "flag", "unset"),
        node("Greater", "x u8_f", "above"),
        node("Identity", "u8", "same"),
    ]
    outputs = [
        value("more", INT64, [2, 3]),
        value("scaled", FLOAT, [2, 3]),
        value("unset", TensorProto.BOOL, [2, 3]),
        value("above", TensorProto.BOOL, [2, 3]),
        value("same", TensorProto.UINT8, [2, 3]),
    ]
    # Beyond what a float64, or 32 bits, can hold: none of it may be lost on the way.
    weights = {"big": np.int64(1 << 60), "factor": np.float32(0.5)}
    return model("several", nodes, inputs, outputs, weights)


def overridable() -> onnx.ModelProto:
    """Sums with values of the model that a run may replace, and with one that it may not."""
    nodes = [node("Add", "x b", "s"), node("Mul", "s factor", "y")]
    inputs = [value("x", FLOAT, ["N", 3]), value("b", FLOAT, [3])]
    outputs = [value("y", FLOAT, ["N", 3])]
    weights = {"b": np.arange(3, dtype=np.float32), "factor": np.float32(2)}
    return model("overridable", nodes, inputs, outputs, weights)


def unnamed() -> onnx.ModelProto:
    """Extents that are free, with no name for them or an empty one."""
    nodes = [node("Add", "x x", "y"), node("Shape", "y", "shape")]
    inputs = [value("x", FLOAT, [None, "", 3])]
    outputs = [value("y", FLOAT, [None, "", 3]), value("shape", INT64, [3])]
    return model("unnamed", nodes, inputs, outputs, {})


def save_outside(trained: Weights, file: Path) -> None:
    """The trained network, with its weights in a second file."""
    nodes = [
        node("Gemm", "pixels w1 b1", "sums"),
        node("Relu", "sums", "hidden"),
        node("Gemm", "hidden w2 b2", "logits"),
    ]
    inputs, outputs = (
        [value("pixels", FLOAT, ["N", 64])],
        [value("logits", FLOAT, ["N", 10])],
    )
    made = model("external", nodes, inputs, outputs, trained)
    data = file.with_suffix(".bin")
    data.unlink(missing_ok=True)  # onnx appends
    onnx.save(
        made,
        file,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=data.name,
        size_threshold=0,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
