"""ONNX's interface of backends."""

import numpy as np
import onnxruntime as rt
import onnxruntime.backend as backend
from checks import check
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile

x = np.arange(4, dtype=np.float32).reshape(2, 2)
prepare, MODEL = backend.prepare, "named.onnx"
rep = prepare(MODEL, "CPU")


def session(path):
    return rt.InferenceSession(path, providers=["CPUExecutionProvider"])


check("a list", lambda: rep.run([x, x]))
check("a dict", lambda: rep.run({"a": x, "b": x}))
check("one array for two inputs", lambda: rep.run(x))
check("one too few", lambda: rep.run([x]))
check("a wrong shape", lambda: rep.run([x[0], x]))
one = prepare("loop.onnx", "CPU")
check("inputs of two types", lambda: one.run([np.array(3, np.int64), x[0]]))
for name, made in {
    "no device": lambda: prepare(MODEL),
    "of a session": lambda: prepare(session(MODEL)),
    "of bytes": lambda: prepare(open(MODEL, "rb").read(), "CPU"),
    "prepared twice": lambda: prepare(rep),
    "with options": lambda: prepare(MODEL, "CPU", intra_op_num_threads=1),
}.items():
    check(name, lambda: made().run([x, x])[0])
check("run", lambda: backend.run(rep, [x, x])[0])
check("run of a path", lambda: backend.run(MODEL, [x, x], "CPU")[0])
check("run with options", lambda: rep.run([x, x], logid="mine")[0])
check("supports the CPU", backend.supports_device("CPU"))
check("supports a TPU", backend.supports_device("TPU"))
check("supports nothing", backend.supports_device(""))
check("is compatible", lambda: backend.is_compatible(MODEL))
check("another device", lambda: prepare(MODEL, "TPU"))
check("no file", lambda: prepare("none.onnx", "CPU"))
check("a class", lambda: backend.backend.OnnxRuntimeBackend.supports_device("CPU"))


def caught(call, kind):
    try:
        call()
    except kind as error:
        return str(error).split(" : ")[:3]
    return "nothing was raised"


check("InvalidArgument", lambda: caught(lambda: rep.run([x[0], x]), InvalidArgument))
check("NoSuchFile", lambda: caught(lambda: session("none.onnx"), NoSuchFile))
