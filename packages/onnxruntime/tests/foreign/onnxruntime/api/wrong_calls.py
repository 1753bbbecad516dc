"""What people get wrong in calls: each mistake once, and the session that goes on."""

import sys

import numpy as np
import onnxruntime as ort
from checks import check

P = sys.argv[1:]
s = ort.InferenceSession("named.onnx", providers=P)
a = np.ones((3, 2), np.float32)
good = {"a": a, "b": a}
run = s.run

check("no feeds", lambda: run(None, {}))
check("feeds are None", lambda: run(None, None))
check("feeds are a list", lambda: run(None, [a, a]))
check("feeds are an array", lambda: run(None, a))
check("no arguments", lambda: run())
check("one argument", lambda: run(None))
check("one feed", lambda: run(None, {"a": a}))
check("an extra feed", lambda: run(None, {**good, "c": a}))
check("a misspelt feed", lambda: run(None, {"a": a, "B": a}))
check("a number as a name", lambda: run(None, {**good, 1: a}))
check("an output as a feed", lambda: run(None, {**good, "sum": a}))
check("no such output", lambda: run(["nothing"], good))
check("one of two is no output", lambda: run(["sum", "nothing"], good))
check("an input as an output", lambda: run(["a"], good))
check("a string for outputs", lambda: run("sum", good))
check("a number for outputs", lambda: run(1, good))
check("numbers among outputs", lambda: run([1], good))
check("None among outputs", lambda: run([None], good))
check("a generator of an output", lambda: run((n for n in ["sum", "sum"]), good))
check("a generator of no output", lambda: run((n for n in ["sum", "nothing"]), good))
check("an empty name", lambda: run([""], good))
check("rank 1", lambda: run(None, {"a": a[0], "b": a}))
check("rank 3", lambda: run(None, {"a": a[None], "b": a}))
check("rank 0", lambda: run(None, {"a": np.float32(1).reshape(()), "b": a}))
check("three columns", lambda: run(None, {"a": np.ones((3, 3), np.float32), "b": a}))
check("rows that differ", lambda: run(None, {"a": a[:2], "b": a}))
check("transposed", lambda: run(None, {"a": a.T, "b": a.T}))
for dtype in ("float64", "float16", "int32", "int64", "uint8", "bool", "complex64"):
    check(f"{dtype} for float32", lambda: run(None, {"a": a.astype(dtype), "b": a}))
check("strings for float32", lambda: run(None, {"a": a.astype(str), "b": a}))
check("objects for float32", lambda: run(None, {"a": a.astype(object), "b": a}))
check("None for an array", lambda: run(None, {"a": None, "b": a}))
check("a float for an array", lambda: run(None, {"a": 1.0, "b": a}))
check("a string for an array", lambda: run(None, {"a": "x", "b": a}))
check("a dict for an array", lambda: run(None, {"a": {"a": a}, "b": a}))
check("a set for an array", lambda: run(None, {"a": {1.0}, "b": a}))
check("a session for an array", lambda: run(None, {"a": s, "b": a}))
check("a list of another depth", lambda: run(None, {"a": [1.0, 2.0], "b": a}))
check("a list of strings", lambda: run(None, {"a": [["x", "y"]], "b": a}))
check("run options: a dict", lambda: run(None, good, {"log": 1}))
check("run options: session options", lambda: run(None, good, ort.SessionOptions()))
check("run options: None", lambda: run(None, good, None))
check("an unknown keyword", lambda: run(None, good, device="cpu"))
check("too many arguments", lambda: run(None, good, None, None))
check("it goes on", lambda: run(None, good))

S = ort.InferenceSession
check("file: none", lambda: S("none.onnx", providers=P))
check("file: a folder", lambda: S(".", providers=P))
check("file: in no folder", lambda: S("no/such/folder/model.onnx", providers=P))
check("file: empty name", lambda: S("", providers=P))
check("file: empty", lambda: S("empty.onnx", providers=P))
check("file: text", lambda: S("text.onnx", providers=P))
check("file: truncated", lambda: S("truncated.onnx", providers=P))
check("file: arrays", lambda: S("digits.npz", providers=P))
check("file: weights", lambda: S("external.bin", providers=P))
check("bytes: none", lambda: S(b"", providers=P))
check("bytes: few", lambda: S(b"\x08\x08", providers=P))
check("bytes: text", lambda: S(b"<html>404</html>", providers=P))
check("bytes: a part", lambda: S(open("named.onnx", "rb").read()[:50], providers=P))
check("source: None", lambda: S(None, providers=P))
check("source: a number", lambda: S(5, providers=P))
check("source: a list", lambda: S(["named.onnx"], providers=P))
check("source: an open file", lambda: S(open("named.onnx", "rb"), providers=P))
check("source: an array", lambda: S(np.zeros(3), providers=P))
check("source: nothing", lambda: S())
check(
    "options: a dict", lambda: S("named.onnx", {"intra_op_num_threads": 1}, providers=P)
)
check("options: a string", lambda: S("named.onnx", "fast", providers=P))
check("options: run options", lambda: S("named.onnx", ort.RunOptions(), providers=P))
for name in (
    "operator",
    "attribute",
    "input",
    "output",
    "twice",
    "opset",
    "version",
    "types",
    "shapes",
    "custom",
):
    check(
        f"model: {name}",
        lambda: S(f"wrong_{name}.onnx", providers=P).run(None, {"x": a[0]}),
    )
check("it still goes on", lambda: run(None, good))
