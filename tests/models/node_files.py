"""Write the node tests of the `onnx` package as files that any Python with NumPy can run.

Each is a .npz: the model, and the arrays that go in and must come out; `tree` says in JSON how
they belong together. What NumPy has no dtype for is there as bytes, beside its name. index.json
names them all, with the operator that each is about.

Usage: build/libs/bin/python tests/models/node_files.py FOLDER
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

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
    index = []
    models = {case.name: case.model for case in cases}
    for case in sorted(cases, key=lambda each: each.name):
        model = case.model
        ((inputs, outputs),) = case.data_sets
        names = [value.name for value in model.graph.input]
        arrays: dict[str, np.ndarray] = {
            "model": np.frombuffer(model.SerializeToString(), np.uint8)
        }
        tree = {
            "inputs": {
                name: encode(value, arrays)
                for name, value in zip(names, inputs, strict=False)
            },
            "outputs": [encode(value, arrays) for value in outputs],
            "rtol": case.rtol,
            "atol": case.atol,
        }
        np.savez(folder / f"{case.name}.npz", tree=np.array(json.dumps(tree)), **arrays)
        index.append({"name": case.name, "operator": operator(case.name, models)})
    (folder / "index.json").write_text(json.dumps(index, indent=0) + "\n")
    print(f"[models] {len(index)} node tests in {folder}")


def operator(name: str, models: dict[str, Any]) -> str:
    """The operator that a case is about: its expansion into others is about the same."""
    model = models.get(re.sub(r"_expanded.*", "", name), models[name])
    found: str = model.graph.node[0].op_type
    return found


def encode(value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """How one value is written; its memory goes into `arrays`."""
    if value is None:
        return {"none": True}
    if isinstance(value, list | tuple):
        return {"list": [encode(each, arrays) for each in value]}
    if isinstance(value, TensorProto):
        kind = TensorProto.DataType.Name(value.data_type).lower()
        return keep(numpy_helper.to_array(value), kind, arrays)
    array = np.asarray(value)
    return keep(array, array.dtype.name, arrays)


def keep(array: np.ndarray, kind: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    key = f"a{len(arrays)}"
    said = {"array": key, "dtype": kind, "shape": list(array.shape)}
    if array.dtype.kind in "OSU":
        text = [e.decode() if isinstance(e, bytes) else str(e) for e in array.flat]
        arrays[key] = np.array(text or [""])[: array.size]
        return said | {"dtype": "string"}
    if array.dtype.char in PLAIN and array.dtype.isbuiltin:
        arrays[key] = array
        return said | {"dtype": array.dtype.name}
    arrays[key] = np.frombuffer(array.tobytes(), np.uint8)
    return said | {"dtype": array.dtype.name}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
