"""Python's exchanges: what NumPy's and our `from_dlpack` take, beside others'; and what
the wire takes for an array in columns.

bench.py runs this file in its own CPython, bench.mjs in the page's Pyodide, so it needs
nothing but what both have; libraries that are missing are left out.
"""

import json
import random
import statistics
import timeit
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import dlpack_web as dlw
from dlpack_web_page.wire import Wire, joined

SAMPLE_S = 0.002  # a sample is a batch this long: a page's clock ticks every 5 µs


def carry(array):
    """Sends an array over a wire of this process; what has arrived."""
    to_b: list[bytes] = []
    to_a: list[bytes] = []
    a = Wire(lambda *frame: to_b.append(joined(*frame)), piece=64 << 10)
    b = Wire(lambda *frame: to_a.append(joined(*frame)), piece=64 << 10)
    with closing(a), closing(b):
        a.connect()
        a.send("array", array)
        while to_a or to_b:
            for wire, frames in (a, to_a), (b, to_b):
                if frames:
                    wire.receive(frames.pop(0))
        return dlw.from_dlpack(b.tensors["array"], copy=True)


FLOOR = "x.__dlpack__(max_version=(1, 0))"  # half of an exchange
FLAT = np.arange(16, dtype=np.float32)  # nothing is copied, so the size does not matter
# By path and layout: an array, and the ways to hand it over. Each gives the same elements.
ROWS = {
    ("python", "export"): (
        FLAT,
        {
            "dlpack-web": "np.from_dlpack(tensor)",
            "np.from_dlpack(ndarray)": "np.from_dlpack(x)",
            "floor": FLOOR,
        },
    ),
    ("python", "import"): (
        FLAT,
        {
            "dlpack-web": "dlw.from_dlpack(x)",
            "tvm_ffi.from_dlpack(ndarray)": "tvm_ffi.from_dlpack(x)",
            "torch.from_dlpack(ndarray)": "torch.from_dlpack(x)",
            "floor": FLOOR,
        },
    ),
    ("wire", "columns"): (
        np.arange(2**19, dtype="f4").reshape(512, 1024).T,
        {
            "dlpack-web": "carry(x)",
            "np.ascontiguousarray first": "carry(np.ascontiguousarray(x))",
        },
    ),
}
NAMES = {"np": np, "dlw": dlw, "carry": carry}
NAMES |= {name: import_module(name) for name in ("tvm_ffi", "torch") if find_spec(name)}


def verify(source, names):
    """The elements are right; of an exchange, they are in the array's own memory."""
    x = names["x"]
    with dlw.from_dlpack(eval(source, names)) as tensor:
        array = tensor.numpy()
        right = array.shape == x.shape and array.dtype == x.dtype and (array == x).all()
    if not right or np.shares_memory(array, x) == ("carry" in source):
        raise RuntimeError(f"wrong result: {source}")


def figures(way, seconds):
    """The median and quartiles of a way's samples, in seconds, as a row of results."""
    low, median, high = statistics.quantiles(seconds, method="inclusive")
    row = {"way": way, "median_ms": 1e3 * median, "iqr_ms": 1e3 * (high - low)}
    return row | {"n": len(seconds), "verified": True}


def compare(ways, names, rounds):
    """Times every way against the others, in random order in every round."""
    timers, batches = {}, {}
    for way, source in ways.items():
        verify(source, names)
        timers[way] = timeit.Timer(source, globals=names)
        count, seconds = timers[way].autorange()  # which warms up, too
        batches[way] = max(1, round(count * SAMPLE_S / seconds))
    samples: dict = {way: [] for way in ways}
    for _ in range(rounds):
        for way in random.sample(list(ways), len(ways)):
            samples[way].append(timers[way].timeit(batches[way]) / batches[way])
    return [figures(way, samples[way]) | {"batch": batches[way]} for way in ways]


def measure(where, quick):
    """All rows, as JSON."""
    rows = []
    for (path, layout), (x, known) in ROWS.items():
        place = {"path": path, "layout": layout, "bytes": x.nbytes, "where": where}
        with dlw.from_dlpack(x) as tensor:
            names = NAMES | {"x": x, "tensor": tensor}
            ways = {
                way: s
                for way, s in known.items()
                if s.split(".")[0].split("(")[0] in names
            }
            for row in compare(ways, names, 5 if quick else 50):
                rows.append(place | row)
    return json.dumps(rows)
