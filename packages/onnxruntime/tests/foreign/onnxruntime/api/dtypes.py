"""Arrays of every dtype and layout through a model that gives back what it gets."""

import numpy as np
import onnxruntime as ort
from checks import check

CPU = ["CPUExecutionProvider"]
DTYPES = "float32 float64 float16 bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
sessions = {d: ort.InferenceSession(f"same_{d}.onnx", providers=CPU) for d in DTYPES}


def extremes(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "f":
        info = np.finfo(kind)
        return np.array(
            [0, -0.0, 1, -1, info.max, info.min, info.tiny, np.inf, -np.inf, np.nan],
            kind,
        )
    if kind.kind == "b":
        return np.array([True, False, True])
    info = np.iinfo(kind)
    return np.array([0, 1, info.max, info.min, info.max // 3], kind)


for dtype in DTYPES:
    session = sessions[dtype]

    def run(x):
        return session.run(None, {"x": x})[0]

    a = extremes(dtype)
    check(
        f"{dtype}: type", [session.get_inputs()[0].type, session.get_outputs()[0].type]
    )
    check(f"{dtype}: extremes", lambda: run(a))
    check(f"{dtype}: no shape", lambda: run(a[0:1].reshape(())))
    check(f"{dtype}: three axes", lambda: run(np.resize(a, (2, 3, 4))))
    check(f"{dtype}: none", lambda: run(a[:0].reshape(0, 3)))
    check(f"{dtype}: strided", lambda: run(np.resize(a, (4, 6))[::2, 1::3]))
    check(
        f"{dtype}: transposed", lambda: run(np.resize(a, (2, 3, 4)).transpose(2, 0, 1))
    )
    check(f"{dtype}: backwards", lambda: run(a[::-1]))
    other = "float64" if dtype == "float32" else "float32"
    check(f"{dtype}: fed with {other}", lambda: run(a.astype(other)))

session = sessions["float32"]


def run(x):
    return session.run(None, {"x": x})[0]


check("shape of the input", session.get_inputs()[0].shape)
base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
check("broadcast", lambda: run(np.broadcast_to(base[0, 0], (3, 4))))
frozen = base.copy()
frozen.flags.writeable = False
check("read-only", lambda: run(frozen))
check(
    "a subclass",
    lambda: run(base.view(np.matrix) if base.ndim == 2 else base[0].view(np.matrix)),
)
check("masked", lambda: run(np.ma.masked_array(base, base > 3)))
check("of another byte order", lambda: run(base.astype(">f4")).shape)
check(
    "not aligned",
    lambda: run(np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float32)),
)
check(
    "mapped",
    lambda: (
        base.tofile("mapped.bin"),
        run(np.memmap("mapped.bin", np.float32, "r", shape=(24,))),
    )[1],
)
check("a field of a record", lambda: run(np.zeros(3, [("a", "f4"), ("b", "f4")])["b"]))
check("32 axes", lambda: run(base[:1, :1, :1].reshape((1,) * 32)).shape)
check("a list of floats", lambda: run([1.0, 2.0, 3.0]))
check("a list of ints", lambda: run([1, 2, 3]))
check("nested lists", lambda: run([[1.5, 2], [3, 4]]))
check("an empty list", lambda: run([]))
check("a ragged list", lambda: run([[1.0], [2.0, 3.0]]))
check(
    "a list of arrays", lambda: run([np.ones(2, np.float32), np.zeros(2, np.float32)])
)
check("a tuple", lambda: run((1.0, 2.0)))
check("a float", lambda: run(1.0))
check("np.float32", lambda: run(np.float32(1)))
check("None", lambda: run(None))
check("a string", lambda: run("abc"))
check("bytes", lambda: run(b"abcd"))
check("a dict", lambda: run({"a": 1}))
check("a generator", lambda: run(i for i in range(3)))
check("complex", lambda: run(base.astype(np.complex64)))
check("objects", lambda: run(np.array([1.0, 2.0], dtype=object)))
check("strings", lambda: run(np.array(["1.0"])))
check("dates", lambda: run(np.array(["2020-01-01"], "datetime64[D]")))
check("longdouble", lambda: run(base.astype(np.longdouble)))
for name, dtype, x in [
    ("int64 for a list", "int64", [1, 2**40]),
    ("bools for a list", "bool", [True, False]),
    ("int64 of bools", "int64", np.array([True])),
    ("int64 of uint8", "int64", np.array([1], np.uint8)),
    ("int64 of float64", "int64", np.array([1.0])),
    ("int32 of int64", "int32", np.array([1], np.int64)),
    ("float16 of float32", "float16", np.array([1], np.float32)),
    ("uint8 of int8", "uint8", np.array([1], np.int8)),
    ("bool of uint8", "bool", np.array([1], np.uint8)),
]:
    check(name, lambda: sessions[dtype].run(None, {"x": x})[0])
