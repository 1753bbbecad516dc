"""One node test of the `onnx` package, as its own runner judges it: natively and in the page.

Natively this file is a worker (node_native.py): it reads names and writes outcomes, a line each.
In the page node_worker.mjs calls `judge`.

Usage: build/libs/bin/python tests/models/node_case.py FOLDER PROVIDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


class CannotSayError(Exception):
    """A value that Python has no array for here."""


def judge(ort: Any, file: str, provider: str) -> list[str]:
    """["passed", ""], or how it failed and what was said."""
    with np.load(file) as case:
        tree = json.loads(str(case["tree"]))
        try:
            feeds = {name: decode(each, case) for name, each in tree["inputs"].items()}
            expected = [decode(each, case) for each in tree["outputs"]]
        except CannotSayError as error:
            return ["dtype", str(error)]
        model = case["model"].tobytes()
    options = ort.SessionOptions()
    options.log_severity_level = 4  # what goes wrong comes as an exception, too
    try:
        session = ort.InferenceSession(model, options, providers=[provider])
    except Exception as error:
        return ["load", told(error)]
    try:
        wanted = {each.name for each in session.get_inputs()}
        results = session.run(None, {k: v for k, v in feeds.items() if k in wanted})
    except Exception as error:
        return ["run", told(error)]
    try:
        compare(results, expected, tree["rtol"], tree["atol"])
    except AssertionError as error:
        return ["values", told(error)]
    return ["passed", ""]


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:600]


def decode(said: dict[str, Any], case: Any) -> Any:
    """What node_files.py wrote, as onnxruntime takes it."""
    if "none" in said:
        return None
    if "list" in said:
        return [decode(each, case) for each in said["list"]]
    array = case[said["array"]]
    if said["dtype"] == "string":
        return np.array(array.tolist(), object).reshape(said["shape"])
    if array.dtype.name == said["dtype"]:
        return array
    try:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, said["dtype"]))
    except (ImportError, AttributeError):
        raise CannotSayError(f"{said['dtype']}: NumPy has no such dtype") from None
    return array.view(dtype).reshape(said["shape"])


def compare(results: list[Any], expected: list[Any], rtol: float, atol: float) -> None:
    """As onnx.backend.test.runner does: dtypes, shapes, values."""
    assert len(results) == len(expected), f"{len(results)} outputs, not {len(expected)}"
    for result, wanted in zip(results, expected, strict=True):
        if isinstance(wanted, list):
            compare(result, wanted, rtol, atol)
        elif wanted is None:
            assert result is None, f"{result!r} for nothing"
        else:
            alike(np.asarray(result), wanted, rtol, atol)


def alike(result: np.ndarray, wanted: np.ndarray, rtol: float, atol: float) -> None:
    if wanted.dtype == object:
        np.testing.assert_array_equal(result, wanted)
        return
    assert result.dtype == wanted.dtype, f"dtype {result.dtype}, not {wanted.dtype}"
    assert result.shape == wanted.shape, f"shape {result.shape}, not {wanted.shape}"
    if wanted.dtype.kind == "V":  # of ml_dtypes
        result, wanted = result.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(result, wanted, rtol, atol)


def main() -> None:
    import onnxruntime as ort

    folder, provider = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        outcome = judge(ort, str(folder / f"{line.strip()}.npz"), provider)
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
