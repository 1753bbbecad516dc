"""Write the node tests of the `onnx` package as files that any Python with NumPy can run: a .npz each,
with the model, what goes in and must come out, and the tolerances. Those with other values than
arrays of NumPy's own dtypes are left out.

Usage: build/libs/bin/python tests/models/node_files.py FOLDER
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

PLAIN = "?bhilqBHILQefdFD"  # type codes of what a .npy file says by itself


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # Some cases are about dividing by zero.
        warnings.simplefilter("ignore")
        np.random.seed(0)  # of those cases that set none
        cases = collect_testcases(None)
    for case in cases:
        ((inputs, outputs),) = case.data_sets
        names = [value.name for value in case.model.graph.input]
        values = {f"in {n}": value for n, value in zip(names, inputs, strict=False)}
        values |= {f"out {i}": value for i, value in enumerate(outputs)}
        arrays = {key: array_of(value) for key, value in values.items()}
        if all(is_plain(array) for array in arrays.values()):
            np.savez(
                folder / f"{case.name}.npz",
                model=np.frombuffer(case.model.SerializeToString(), np.uint8),
                within=[case.rtol, case.atol],
                **arrays,
            )


def array_of(value: object) -> object:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def is_plain(value: object) -> bool:
    if not isinstance(value, np.ndarray | np.generic):
        return False
    return value.dtype.char in PLAIN and value.dtype.isbuiltin == 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
