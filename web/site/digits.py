"""Train the model of the chain page, and make its photograph.

The data are the handwritten digits of scikit-learn (8 x 8 pixels, 0 to 16): half of
them train a network with one hidden layer, the others test it. The output files are

- digits.onnx: pixels [N, 64] (0 to 1, float32) -> logits [N, 10], opset 17;
- pictures.onnx: a network with convolutions, pictures [N, 1, 8, 8] -> logits [N, 10];
- digits.png: a photograph, so to speak: 200 digits of the test half, written in ink on
  paper that light falls on from one side;
- digits.npz: weights and labels, for the NumPy reference in the page;
- digits.tflite: the network of digits.onnx for the digits of the photograph, pixels [200, 64];
- digits_tflite.npz: these pixels, and NumPy's logits of them;
- handwriting.npz: all digits, which the train page learns, as pixels [N, 8, 8] and labels [N] of
  uint8; a fifth of them for tests, test_pixels and test_labels;
- digits.json: how well it does, and which digits these are.

The same versions give the same files: the seed is fixed. Usage: python digits.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from tflite import dense

ROWS, COLUMNS = 10, 20  # digits in the photograph
PIXEL = 4  # side of a pixel of a digit, in the photograph
MARGIN = 2  # paper around a digit, in such pixels
HIDDEN = 64
FILTERS = 24  # of the convolutional network
SEED = 2026


def main(folder: Path) -> None:
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        pixels / 16, labels, test_size=0.5, random_state=SEED, stratify=labels
    )
    train, test, train_labels, test_labels = parts
    network = MLPClassifier(HIDDEN, random_state=SEED, max_iter=500)
    network.fit(train, train_labels)
    accuracy = network.score(test, test_labels)

    weights = {
        name: array.astype(np.float32)
        for name, array in zip(
            ("w1", "w2", "b1", "b2"), network.coefs_ + network.intercepts_, strict=True
        )
    }
    shown = ROWS * COLUMNS
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model(weights), folder / "digits.onnx")
    pictures = convolutions(train, train_labels)
    onnx.save(pictures, folder / "pictures.onnx")
    photograph(test[:shown]).save(folder / "digits.png")
    np.savez(folder / "digits.npz", labels=test_labels[:shown], **weights)
    save_tflite(weights, test[:shown].astype(np.float32), folder)
    save_handwriting(pixels, labels, folder)
    session = onnxruntime.InferenceSession(pictures.SerializeToString())
    seen = test.reshape(-1, 1, 8, 8).astype(np.float32)
    (logits,) = session.run(None, {"pictures": seen})
    facts = {
        "trained_on": len(train),
        "tested_on": len(test),
        "accuracy": round(float(accuracy), 4),
        "pictures_accuracy": round(float((logits.argmax(1) == test_labels).mean()), 4),
        "rows": ROWS,
        "columns": COLUMNS,
        "margin": PIXEL * MARGIN,
        "labels": test_labels[:shown].tolist(),
    }
    (folder / "digits.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(f"[model] accuracy {accuracy:.1%} on {len(test)} test digits")


def model(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """relu(pixels @ w1 + b1) @ w2 + b2, as ONNX."""
    nodes = [
        helper.make_node("Gemm", ["pixels", "w1", "b1"], ["sums"]),
        helper.make_node("Relu", ["sums"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w2", "b2"], ["logits"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", kind, ["N", 64])],
        [helper.make_tensor_value_info("logits", kind, ["N", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return checked(graph)


def save_tflite(
    weights: dict[str, np.ndarray], pixels: np.ndarray, folder: Path
) -> None:
    """The same network for LiteRT, and NumPy's results for the same pixels."""
    w1, w2, b1, b2 = (weights[name] for name in ("w1", "w2", "b1", "b2"))
    (folder / "digits.tflite").write_bytes(dense([(w1, b1), (w2, b2)], len(pixels)))
    logits = np.maximum(pixels @ w1 + b1, 0) @ w2 + b2
    np.savez(folder / "digits_tflite.npz", pixels=pixels, logits=logits)


def save_handwriting(pixels: np.ndarray, labels: np.ndarray, folder: Path) -> None:
    names = "pixels", "test_pixels", "labels", "test_labels"
    parts = train_test_split(
        pixels.reshape(-1, 8, 8).astype(np.uint8),
        labels.astype(np.uint8),
        test_size=0.2,
        random_state=SEED,
        stratify=labels,
    )
    arrays = dict(zip(names, parts, strict=True))
    np.savez_compressed(folder / "handwriting.npz", **arrays)


def checked(graph: onnx.GraphProto) -> onnx.ModelProto:
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8  # so older runtimes can read it
    onnx.checker.check_model(made)
    return made


def convolutions(train: np.ndarray, labels: np.ndarray) -> onnx.ModelProto:
    """Random filters of 3 x 3 with max pooling over 2 x 2; only the layer after them is
    trained."""
    filters = np.random.default_rng(SEED).normal(0, 0.5, (FILTERS, 1, 3, 3))
    padded = np.pad(train.reshape(-1, 8, 8), [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    answers = np.einsum("nyxij,fij->nfyx", windows, filters[:, 0]).clip(0)
    pooled = answers.reshape(-1, FILTERS, 4, 2, 4, 2).max(axis=(3, 5))
    learnt = LogisticRegression(max_iter=2000, C=0.2)
    learnt.fit(pooled.reshape(len(train), -1), labels)
    nodes = [
        helper.make_node(
            "Conv", ["pictures", "filters"], ["answers"], pads=[1, 1, 1, 1]
        ),
        helper.make_node("Relu", ["answers"], ["strong"]),
        helper.make_node(
            "MaxPool", ["strong"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]
        ),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "w", "b"], ["logits"]),
    ]
    weights = {"filters": filters, "w": learnt.coef_.T, "b": learnt.intercept_}
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "pictures",
        [helper.make_tensor_value_info("pictures", kind, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", kind, ["N", 10])],
        [
            numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
            for name, array in weights.items()
        ],
    )
    return checked(graph)


def photograph(digits: np.ndarray) -> Image.Image:
    """Digits in ink, on paper under a lamp: brightness falls off, and there is
    grain."""
    chance = np.random.default_rng(SEED)
    cells = np.pad(digits.reshape(-1, 8, 8), [(0, 0), (MARGIN,) * 2, (MARGIN,) * 2])
    side = 8 + 2 * MARGIN
    ink = cells.reshape(ROWS, COLUMNS, side, side).transpose(0, 2, 1, 3)
    ink = ink.reshape(ROWS * side, COLUMNS * side)
    ink = np.kron(ink, np.ones((PIXEL, PIXEL)))
    height, width = ink.shape
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    light = 1 - 0.45 * np.hypot(x - 0.2, y - 0.1)
    paper = np.array([0.97, 0.94, 0.87])
    blue = np.array([0.08, 0.12, 0.35])
    colours = paper + ink[..., None] * (blue - paper)
    lit = colours * light[..., None] + chance.normal(0, 0.01, (height, width, 1))
    return Image.fromarray((255 * lit.clip(0, 1)).astype(np.uint8))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
