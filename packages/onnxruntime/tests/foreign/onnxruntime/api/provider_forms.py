"""Providers in all the forms that scripts give them in."""

import contextlib
import io
import warnings

import numpy as np
import onnxruntime as ort
from checks import check

x = np.ones((2, 2), np.float32)
CPU = "CPUExecutionProvider"


def made(*arguments, **options):
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as told,
        contextlib.redirect_stdout(printed),
    ):
        warnings.simplefilter("always")
        session = ort.InferenceSession("named.onnx", *arguments, **options)
    session.run(["sum"], {"a": x, "b": x})
    kinds = {each.category.__name__ for each in told}
    return session.get_providers(), session.get_provider_options(), kinds


check("a list", lambda: made(providers=[CPU]))
check("a tuple", lambda: made(providers=(CPU,)))
check("by position", lambda: made(None, [CPU]))
check("with options", lambda: made(providers=[(CPU, {})]))
check(
    "with an option",
    lambda: made(providers=[(CPU, {"arena_extend_strategy": "kSameAsRequested"})]),
)
check("options apart", lambda: made(providers=[CPU], provider_options=[{}]))
check(
    "options apart, with one",
    lambda: made(providers=[CPU], provider_options=[{"a": "b"}]),
)
check("too many options", lambda: made(providers=[CPU], provider_options=[{}, {}]))
check("options without providers", lambda: made(provider_options=[{}]))
check("twice", lambda: made(providers=[CPU, CPU]))
check("CUDA, then the CPU", lambda: made(providers=["CUDAExecutionProvider", CPU]))
check(
    "CUDA with options",
    lambda: made(providers=[("CUDAExecutionProvider", {"device_id": 0}), CPU]),
)
check(
    "TensorRT, CUDA, CPU",
    lambda: made(providers=["TensorrtExecutionProvider", "CUDAExecutionProvider", CPU]),
)
check("only CUDA", lambda: made(providers=["CUDAExecutionProvider"]))
check("CoreML", lambda: made(providers=["CoreMLExecutionProvider", CPU]))
check("DirectML", lambda: made(providers=["DmlExecutionProvider", CPU]))
check("misspelt", lambda: made(providers=["CpuExecutionProvider", CPU]))
check("in small letters", lambda: made(providers=["cpuexecutionprovider", CPU]))
check("a str", lambda: made(providers=CPU))
check("a number", lambda: made(providers=[1]))
check("a dict", lambda: made(providers=[{CPU: {}}]))
check("None in the list", lambda: made(providers=[None]))
check("a pair of wrong kinds", lambda: made(providers=[(CPU, "options")]))
check("a list as a pair", lambda: made(providers=[[CPU, {}]]))
check("three in a tuple", lambda: made(providers=[(CPU, {}, {})]))
check("options as a dict", lambda: made(providers=[CPU], provider_options={}))
check("options of a wrong kind", lambda: made(providers=[CPU], provider_options=["x"]))
check("the CPU is available", CPU in ort.get_available_providers())
check("the CPU is one of all", CPU in ort.get_all_providers())
check(
    "the usual way",
    lambda: made(
        providers=[
            p
            for p in ("CUDAExecutionProvider", CPU)
            if p in ort.get_available_providers()
        ]
    ),
)
check(
    "a list of strings", all(isinstance(p, str) for p in ort.get_available_providers())
)


def moved(*arguments):
    session = ort.InferenceSession("named.onnx", providers=[CPU])
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        session.set_providers(*arguments)
    return session.get_providers(), session.run(["sum"], {"a": x, "b": x})[0]


check("set_providers", lambda: moved([CPU]))
check("set_providers with options", lambda: moved([CPU], [{}]))
check("set_providers: none there", lambda: moved(["CUDAExecutionProvider"]))
check("set_providers: a wrong kind", lambda: moved([5]))
session = ort.InferenceSession("named.onnx", providers=[CPU])
check("fallback off", lambda: session.disable_fallback())
check("fallback on", lambda: session.enable_fallback())
check("version", ort.__version__.split(".")[0])
check("version is a str", type(ort.__version__).__name__)
check("get_version_string", type(ort.get_version_string()).__name__)
check("device is a str", type(ort.get_device()).__name__)
check("logger severity", lambda: ort.set_default_logger_severity(3))
check("no such severity", lambda: ort.set_default_logger_severity(17))
check("severity as text", lambda: ort.set_default_logger_severity("3"))
check("seed", lambda: ort.set_seed(42))
