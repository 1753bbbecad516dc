"""tinygrad's runner of ONNX models on dlpack_web's device: the models of tests/models, with
onnxruntime's results. What the runner lacks is listed with its reason, and skipped."""

import os
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tinygrad.nn.onnx import OnnxRunner
from tinygrad_world import Tensor, held, installed, read  # noqa: F401

import dlpack_web_tinygrad as dlwt

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:input .* has mismatch on dtype"),
]

MODELS = Path(__file__).parents[4] / "build" / "models"
TEN = ("convolution", "transformer", "float16", "quantised", "dynamic", "several")
TEN += ("overridable", "unnamed", "digits", "external")
# One for each kind of thing that models of programs and estimators have: in `make test-all`.
MORE = ("cache", "classifier", "described", "detector", "encoder", "voice", "branches")
MORE += ("integers_q", "named", "optional", "scalar", "loop", "sequences", "maps")
MORE += ("labels", "sk_kmeans", "sk_forest", "sk_logistic")
MORE += ("same_bool", "same_float16", "same_float64", "same_int8", "same_int16")
MORE += ("same_int64", "same_uint8", "same_uint16", "same_uint32", "same_uint64")

NO_NAME = "has mismatch on dim=0. Expected None"
#: What tinygrad's runner raises.
LACKS = {
    "unnamed": ("RuntimeError", NO_NAME),
    "voice": ("RuntimeError", NO_NAME),
    "sk_kmeans": ("RuntimeError", NO_NAME),
    "loop": ("NotImplementedError", "op='Loop' is not supported"),
    "sequences": ("NotImplementedError", "op='SplitToSequence' is not supported"),
    "maps": ("AssertionError", "{}"),  # results that are maps
    "sk_forest": ("AssertionError", "{}"),
    "labels": ("ValueError", "8 is not a valid OnnxDataType"),  # strings
    "sk_logistic": ("ValueError", "8 is not a valid OnnxDataType"),
}
#: Extents that models do not say; others are 3.
SHAPES = {"voice": {"input": (1, 512), "state": (2, 1, 8)}}
INPUTS = {"voice": {"sr": 16000}}
KINDS = {"float": "f4", "double": "f8", "float16": "f2", "string": "U"}


def inputs_of(session, name):
    random = np.random.default_rng(0)
    given = {}
    for each in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 3 for extent in each.shape]
        shape = SHAPES.get(name, {}).get(each.name, shape)
        kind = re.fullmatch(r"tensor\((\w+)\)", each.type)[1]
        values = random.normal(size=shape) * 2
        if "int" in kind or kind == "bool":  # words, masks and numbers of loops
            values = random.integers(0, 2 if name == "encoder" else 9, shape)
        values = INPUTS.get(name, {}).get(each.name, values)
        given[each.name] = np.array(values).astype(KINDS.get(kind, kind))
    return given


def natively(name):
    """Inputs, and what onnxruntime makes of them by the names of outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(MODELS / f"{name}.onnx", options)
    given = inputs_of(session, name)
    names = [output.name for output in session.get_outputs()]
    return given, dict(zip(names, session.run(names, given), strict=True))


@pytest.mark.parametrize("name", [*TEN, *(MORE if os.environ.get("WHOLE") else ())])
def test_a_model_gives_the_numbers_of_onnxruntime(name):
    before = held()
    given, wanted = natively(name)
    try:
        runner = OnnxRunner(MODELS / f"{name}.onnx")
        found = runner({key: Tensor(value) for key, value in given.items()})
        found = {key: read(each) for key, each in found.items()}
    except (NotImplementedError, RuntimeError, ValueError, AssertionError) as error:
        raised = type(error).__name__, str(error)
        assert name in LACKS, f"{raised}"
        kind, words = LACKS[name]
        assert raised[0] == kind
        assert words in raised[1]
        pytest.skip(f"tinygrad's runner: {kind}: {words}")
    assert name not in LACKS
    assert set(found) == set(wanted)
    for key, each in wanted.items():
        assert found[key].dtype == each.dtype
        assert found[key].shape == each.shape
        most = float(np.abs(each.astype("f8")).max(initial=1))
        near = 2e-3 if each.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(
            found[key].astype("f8"), each.astype("f8"), rtol=near, atol=near * most
        )
    del runner
    assert held() == before


def test_a_model_takes_tensors_of_ours_and_gives_them_back():
    given, wanted = natively("digits")
    runner = OnnxRunner(MODELS / "digits.onnx")
    ((name, pixels),) = given.items()
    with dlwt.to_dlpack(Tensor(pixels, device="WEBGPU")) as x:
        (result,) = runner({name: dlwt.from_dlpack(x)}).values()
    with dlwt.to_dlpack(result) as scores:
        assert not scores.device.is_host
        (each,) = wanted.values()
        np.testing.assert_allclose(np.asarray(scores), each, rtol=1e-5, atol=1e-4)
