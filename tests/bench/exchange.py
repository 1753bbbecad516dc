"""Python's exchanges: what NumPy's and our `from_dlpack` take, beside others'.

bench.py runs this file in its own CPython, bench.mjs in the page's Pyodide, so it needs
nothing but what both have; libraries that are missing are left out.
"""

import json
import random
import statistics
import timeit
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import dlpack_web as dlw

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
    for way, source in ways.items():
        verify(source, names)
        low, median, high = statistics.quantiles(samples[way], method="inclusive")
        row = {"way": way, "median_ms": median, "iqr_ms": high - low, "n": rounds}
        rows.append({**row, "batch": batches[way], "verified": True})
    return rows


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
            for row in compare(ways, names, 5 if quick else 50):
                place = {"path": "python", "layout": layout, "bytes": BYTES}
                rows.append({**place, "where": where, **row})
    return json.dumps(rows)
