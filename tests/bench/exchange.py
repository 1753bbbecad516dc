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

BYTES = 64  # nothing is copied, so that the size does not matter
SAMPLE_S = 0.002  # a sample is a batch this long: a page's clock ticks every 5 µs
WARM_UP_S = 0.1

FLOOR = "array.__dlpack__(max_version=(1, 0))"  # half of an exchange
WAYS = {
    "export": {  # NumPy takes our tensor
        "dlpack-web": "np.from_dlpack(tensor)",
        "np.from_dlpack(ndarray)": "np.from_dlpack(array)",
        "floor": FLOOR,
    },
    "import": {  # NumPy's array is taken
        "dlpack-web": "dlw.from_dlpack(array)",
        "tvm_ffi.from_dlpack(ndarray)": "tvm_ffi.from_dlpack(array)",
        "torch.from_dlpack(ndarray)": "torch.from_dlpack(array)",
        "floor": FLOOR,
    },
}


def verify(source: str, names: dict) -> None:
    """Whatever was made stands on the array's own memory."""
    with dlw.from_dlpack(eval(source, names)) as tensor:
        array = tensor.numpy()
    same = array.shape == names["array"].shape and array.dtype == names["array"].dtype
    if not same or not np.shares_memory(array, names["array"]):
        raise RuntimeError(f"wrong result: {source}")


def batch_for(timer: timeit.Timer) -> int:
    """Warms up; how many runs make a sample long enough to be timed."""
    count, spent = 1, 0.0
    while spent < WARM_UP_S:
        took = timer.timeit(count)
        spent += took
        if took < SAMPLE_S:
            count *= 2
    return count


def compare(ways: dict, names: dict, rounds: int) -> list[dict]:
    """Times every way against the others, in random order in every round."""
    timers = {way: timeit.Timer(source, globals=names) for way, source in ways.items()}
    batches = {way: batch_for(timer) for way, timer in timers.items()}
    samples: dict = {way: [] for way in ways}
    for _ in range(rounds):
        for way in random.sample(list(ways), len(ways)):
            took = timers[way].timeit(batches[way])
            samples[way].append(took / batches[way] * 1e3)
    rows = []
    for way in ways:
        low, median, high = statistics.quantiles(samples[way], method="inclusive")
        row = {"way": way, "median_ms": median, "iqr_ms": high - low, "n": rounds}
        rows.append({**row, "batch": batches[way], "verified": True})
    return rows


def carry(array: np.ndarray) -> dlw.Tensor:
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


COLUMNS = {  # the same elements, packed by NumPy first
    "dlpack-web": "carry(columns).release()",
    "np.ascontiguousarray first": "carry(np.ascontiguousarray(columns)).release()",
}


def measure(where: str, quick: bool) -> str:
    """All rows, as JSON."""
    array = np.arange(BYTES // 4, dtype=np.float32)
    rows = []
    with dlw.from_dlpack(array) as tensor:
        names = {"np": np, "dlw": dlw, "array": array, "tensor": tensor}
        found = [name for name in ("tvm_ffi", "torch") if find_spec(name)]
        names |= {name: import_module(name) for name in found}
        for layout, known in WAYS.items():
            ways = {w: s for w, s in known.items() if s.split(".")[0] in names}
            for source in ways.values():
                verify(source, names)
            for row in compare(ways, names, 5 if quick else 50):
                place = {"path": "python", "layout": layout, "bytes": BYTES}
                rows.append({**place, "where": where, **row})
    columns = np.arange(2**19, dtype="f4").reshape(512, 1024).T
    names = {"np": np, "carry": carry, "columns": columns}
    with carry(columns) as arrived:
        if (arrived.numpy() != columns).any():
            raise RuntimeError("wrong result: wire")
    for row in compare(COLUMNS, names, 5 if quick else 20):
        place = {"path": "wire", "layout": "columns", "bytes": columns.nbytes}
        rows.append({**place, "where": where, **row})
    return json.dumps(rows)
