"""The rest of the interface: what is asked for, refused and raised."""

import contextlib
import io
import sys
import threading
import warnings
from functools import partial

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


def assigned(options, name, value):
    setattr(options, name, value)
    return getattr(options, name)


# --- providers ---
model = "overridable.onnx"
session = ort.InferenceSession(model, providers=sys.argv[1:])


def providers_of(given):
    # What is not there is not used, and there is always the CPU.
    made = ort.InferenceSession(model, providers=given)
    return made.get_providers(), made.get_provider_options()


with contextlib.redirect_stdout(io.StringIO()) as told:  # onnxruntime's own "EP Error"
    found = [
        providers_of(given)
        for given in (["CPUExecutionProvider"], [("CPUExecutionProvider", {})])
    ]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found.append(providers_of(["NopeExecutionProvider"]))
        found.append(providers_of(["NopeExecutionProvider", "CPUExecutionProvider"]))
print(found, [str(each.message).split(" Available")[0][:60] for each in warned])
other = ort.InferenceSession(model, providers=sys.argv[1:])
other.set_providers(["CPUExecutionProvider"])
print(other.get_providers(), other.run(None, {"x": X})[0].tolist())

# --- values of the model that a run may replace ---
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

# --- options ---
for name, value in [
    ("nope", 1),
    ("enable_profilin", True),
    ("enable_profiling", "x"),
    ("intra_op_num_threads", "2"),
    ("intra_op_num_threads", 2.0),
    ("intra_op_num_threads", np.int64(3)),
    ("intra_op_num_threads", True),
    ("execution_mode", 1),
    ("execution_mode", ort.ExecutionMode.ORT_PARALLEL),
    ("execution_order", ort.ExecutionOrder.PRIORITY_BASED),
    ("graph_optimization_level", 99),
    ("graph_optimization_level", ort.GraphOptimizationLevel.ORT_ENABLE_BASIC),
    ("logid", 5),
    ("logid", "a"),
    ("enable_mem_pattern", None),
    ("use_deterministic_compute", 1),
]:
    said(
        f"SessionOptions.{name} = {value!r}",
        partial(assigned, ort.SessionOptions(), name, value),
    )
for name, value in [
    ("nope", 1),
    ("terminate", 1),
    ("logid", 5),
    ("log_severity_level", "a"),
]:
    said(
        f"RunOptions.{name} = {value!r}",
        partial(assigned, ort.RunOptions(), name, value),
    )
for kind in (ort.SessionOptions, ort.RunOptions):
    made = kind()
    facts = {
        name: getattr(made, name) for name in dir(made) if not name.startswith("_")
    }
    plain = (bool, int, str)
    print({name: value for name, value in facts.items() if type(value) in plain})
said("entry", lambda: ort.SessionOptions().add_session_config_entry("a", 5))
said("no entry", lambda: ort.SessionOptions().get_session_config_entry("a"))
said("no run entry", lambda: ort.RunOptions().get_run_config_entry("a"))
said(
    "extent", lambda: ort.SessionOptions().add_free_dimension_override_by_name("a", "b")
)
said("run_options", lambda: session.run(None, {"x": X}, 5))

# --- OrtValue ---
said("of an array", lambda: ort.OrtValue(X))
said("of a list", lambda: ort.OrtValue.ortvalue_from_numpy([1.0]))
said("of strings", lambda: ort.OrtValue.ortvalue_from_numpy(np.array(["a"])))
value = ort.OrtValue.ortvalue_from_numpy(X)
typed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
said("typed", lambda: typed(X.view(np.uint32), 12).data_type())
said("halves", lambda: typed(X.astype(np.float16).view(np.uint16), 10).data_type())
said("of another size", lambda: typed(X, 10))
said("sparse", value.as_sparse_tensor)
said("shorter", lambda: value.update_inplace(X[0]))
said("a list", lambda: value.update_inplace([1]))
print(value.data_type(), value.element_type(), value.tensor_size_in_bytes())
print(ort.OrtValue.ortvalue_from_shape_and_type([2, 3], 10).data_type())
print(session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu").shape())

# --- IOBinding ---
bind = session.io_binding
said("no such input", lambda: bind().bind_cpu_input("q", X))
said("no such value", lambda: bind().bind_ortvalue_input("q", value))
said("a list", lambda: bind().bind_cpu_input("x", [1.0]))
said("no array", lambda: bind().bind_cpu_input("x", None))
said("an address alone", lambda: bind().bind_output("y", "cpu", 0, None, None, 1))
said("nothing yet", lambda: (bind().get_outputs(), bind().copy_outputs_to_cpu()))


def ran(*steps):
    binding = bind()
    for step, *arguments in steps:
        getattr(binding, step)(*arguments)
    session.run_with_iobinding(binding)
    return [each.tolist() for each in binding.copy_outputs_to_cpu()]


x, y = ("bind_cpu_input", "x", X), ("bind_output", "y")
said("bound", lambda: ran(x, y))
said("bound, replaced", lambda: ran(x, ("bind_cpu_input", "b", b), y))
said("no output", lambda: ran(x))
said("no input", lambda: ran(y))
said("rank", lambda: ran(("bind_cpu_input", "x", X[0]), y))
said("dtype", lambda: ran(("bind_cpu_input", "x", X.astype(float)), y))
said("another session's", lambda: other.run_with_iobinding(bind()))
out = np.zeros((2, 3), np.float32)
said(
    "addresses",
    lambda: ran(
        ("bind_input", "x", "cpu", 0, np.float32, [2, 3], value.data_ptr()),
        ("bind_output", "y", "cpu", 0, np.float32, (2, 3), out.ctypes.data),
    ),
)
print(out.tolist())

# --- later ---
arrived = threading.Event()
results = []


def callback(outputs, user_data, error):
    results.append(([each.tolist() for each in outputs], user_data, error[:20]))
    arrived.set()


session.run_async(["y"], {"x": X}, callback, "mine")
arrived.wait(20)
print(results.pop())
arrived.clear()
session.run_async(["y"], {"x": X[0]}, callback, None)
arrived.wait(20)
print(results.pop())
said("no input", lambda: session.run_async(["y"], {}, callback, None))

# --- vectors, devices, the rest ---
device = ort.OrtDevice.make("cpu", 0)
print(
    device.device_type(),
    device.device_id(),
    device.device_vendor_id(),
    device.device_mem_type(),
)
said("no device", lambda: bool(ort.OrtDevice.make("cpu", 0)))
said("end_profiling", session.end_profiling)
said("profiling since", lambda: session.get_profiling_start_time_ns() >= 0)
said("tuning", session.get_tuning_results)
said("set_seed", lambda: ort.set_seed(5))
said("set_seed", lambda: ort.set_seed("a"))
said(
    "telemetry", lambda: (ort.disable_telemetry_events(), ort.enable_telemetry_events())
)
said("verbosity", lambda: ort.set_default_logger_verbosity(0))
said("severity", lambda: ort.set_default_logger_severity(9))
print(
    ort.get_build_info().split(":")[0],
    type(ort.get_version_string()),
    ort.has_collective_ops(),
)
terminated = ort.RunOptions()
terminated.terminate = True
said("terminated", lambda: session.run(None, {"x": X}, terminated))
meta = session.get_modelmeta()
print(meta.producer_name, meta.graph_name, meta.version, meta.custom_metadata_map)
said("written", lambda: setattr(session.get_inputs()[0], "name", "z"))
print(str(session.get_inputs()[0]))

# --- onnx.backend ---
prepared = onnxruntime.backend.prepare(model, "CPU")
print([each.tolist() for each in prepared.run(X)])
print([each.tolist() for each in prepared.run([X])])
print(
    onnxruntime.backend.supports_device("CPU"),
    onnxruntime.backend.supports_device("TPU"),
)
print(_pybind_state.OrtValueVector.__name__, _pybind_state.InvalidArgument.__name__)
np.savez("outputs.npz", out=out)
