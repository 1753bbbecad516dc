"""Python's sessions of the row "onnxruntime": ways by their names, each of which returns 2."""

import js
import numpy as np
from onnx_models import doubling, graph, message, node, number, text
from pyodide.ffi import run_sync, to_js

import dlpack_web as dlw
import dlpack_web_onnxruntime as ort

RUNS = 20


def first():
    """`y = x[0:1]`: a large input of which little comes back."""
    zero = number(1, 1) + number(2, 7) + text(8, "i") + message(9, bytes(8))
    nodes = [node("Gather", ("x", "i"), ("y",))]
    return graph(nodes, [("x", "float32", ("N",))], [("y", "float32", (1,))], zero)


def small(_library, _count):
    """RUNS runs of a session on the CPU, of a few elements."""
    session = ort.InferenceSession(doubling(), providers=["CPUExecutionProvider"])
    x = np.arange(16, dtype=np.float32)

    def ours():
        for _ in range(RUNS):
            (y,) = session.run(None, {"x": x})
        return float(y[1])

    return {"dlpack-web": ours}


def large(library, count):
    """One run on the GPU, of many elements."""
    session = ort.InferenceSession(first(), providers=["WebGPUExecutionProvider"])
    x = np.arange(count, dtype=np.float32) + 2
    on_gpu = dlw.from_dlpack(x, device=session.device)
    options = js.Object.fromEntries(to_js([["executionProviders", ["webgpu"]]]))
    own = run_sync(library.InferenceSession.create(to_js(first()), options))

    def by_hand():
        feeds = js.Object.new()
        feeds.x = library.Tensor.new("float32", to_js(x), to_js([count]))
        result = run_sync(own.run(feeds))
        return float(np.asarray(result.y.data.to_py())[0])

    def run(feed):
        return float(session.run(None, {"x": feed})[0][0])

    return {
        "dlpack-web": lambda: run(on_gpu),
        "dlpack-web, a NumPy array": lambda: run(x),
        "to_js()": by_hand,
    }
