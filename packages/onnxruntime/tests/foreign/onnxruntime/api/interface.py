"""The rest of the interface: what no other program here asks for."""

import sys
import warnings

import numpy as np
import onnxruntime
import onnxruntime as ort
import onnxruntime.backend
from onnxruntime.capi import _pybind_state

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def said(label, call):
    """What a call returns, warns of or raises, as far as it is the same everywhere."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - which one is printed
            result = type(error).__name__
    words = [str(each.message).split(" names")[0] for each in warned]
    print(f"{label}:", result, *words)


# --- values of the model that a run may replace ---
model = "overridable.onnx"
session = ort.InferenceSession(model, providers=sys.argv[1:])
for each in session.get_overridable_initializers():
    print(each.name, each.type, each.shape)
print([each.name for each in session.get_inputs()])
print(session.run(None, {"x": X})[0].tolist())
b = np.float32([10, 20, 30])
print(session.run(None, {"x": X, "b": b})[0].tolist())
print(session.run(None, {"b": 2 * b, "x": X})[0].tolist())
print(session.run(None, {"x": X})[0].tolist())
said("its shape", lambda: session.run(None, {"x": X, "b": b[:2]}))
said("its dtype", lambda: session.run(None, {"x": X, "b": b.astype(float)}))
said("no value", lambda: session.run(None, {"x": X, "factor": b}))
said("alone", lambda: session.run(None, {"b": b}))

# --- OrtValue ---
said("of an array", lambda: ort.OrtValue(X))
value = ort.OrtValue.ortvalue_from_numpy(X)
typed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
said("typed", lambda: typed(X.view(np.uint32), 12).data_type())
said("halves", lambda: typed(X.astype(np.float16).view(np.uint16), 10).data_type())
said("of another size", lambda: typed(X, 10))
said("sparse", value.as_sparse_tensor)
print(session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu").shape())

# --- IOBinding ---
bind = session.io_binding
said("no such value", lambda: bind().bind_ortvalue_input("q", value))
said("no array", lambda: bind().bind_cpu_input("x", None))
said("nothing yet", lambda: (bind().get_outputs(), bind().copy_outputs_to_cpu()))


def replaced():
    binding = bind()
    for name, array in (("x", X), ("b", b)):
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return [each.tolist() for each in binding.copy_outputs_to_cpu()]


said("bound, replaced", replaced)

# --- devices, the rest ---
device = ort.OrtDevice.make("cpu", 0)
print(
    device.device_type(),
    device.device_id(),
    device.device_vendor_id(),
    device.device_mem_type(),
)
said("no device", lambda: bool(ort.OrtDevice.make("cpu", 0)))
said("profiling since", lambda: session.get_profiling_start_time_ns() >= 0)
said("tuning", session.get_tuning_results)
said("set_seed", lambda: ort.set_seed("a"))
said(
    "telemetry", lambda: (ort.disable_telemetry_events(), ort.enable_telemetry_events())
)
said("verbosity", lambda: ort.set_default_logger_verbosity(0))
print(
    ort.get_build_info().split(":")[0],
    ort.has_collective_ops(),
)
said("written", lambda: setattr(session.get_inputs()[0], "name", "z"))

# --- onnx.backend ---
prepared = onnxruntime.backend.prepare(model, "CPU")
print([each.tolist() for each in prepared.run(X)])
print([each.tolist() for each in prepared.run([X])])
print(_pybind_state.OrtValueVector.__name__, _pybind_state.InvalidArgument.__name__)
