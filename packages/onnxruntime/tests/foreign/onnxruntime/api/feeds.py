"""Random arrays, lists and numbers by each way in which a model or an OrtValue gets them; the same
sequence natively and in a page.

Left out, as one side has no right answer: explicit int32 for int64 (in a page NumPy's default integer
has 32 bits), other byte orders and masked elements (the desktop ignores both), and bytes of another
dtype.
"""

import random

import numpy as np
import onnxruntime as ort
from checks import check

NUMBERS = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
}
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 0, 2), (2, 1, 3), (1, 1, 1, 2)]
sessions = {
    dtype: ort.InferenceSession(
        f"same_{dtype}.onnx", providers=["CPUExecutionProvider"]
    )
    for dtype in (*NUMBERS, "string")
}
chance = random.Random(45)


def pick(things):
    """Of random() alone, which is the same in every version of Python."""
    return list(things)[int(chance.random() * len(things))]


def array(dtype):
    shape = pick(SHAPES)
    numbers = [int(chance.random() * 5) for _ in range(int(np.prod(shape)))]
    if dtype == "string":
        texts = [("", "a", "é", "\U0001f600", "x" * 40)[n] for n in numbers]
        return np.array(texts, pick([object, "U40"])).reshape(shape)
    return np.array(numbers, dtype).reshape(shape)


def misaligned(a):
    memory = np.empty(a.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(a.tobytes(), np.uint8)
    return memory.view(a.dtype).reshape(a.shape)


def frozen(a):
    a.flags.writeable = False
    return a


LAYOUTS = {
    "contiguous": lambda a: a,
    "Fortran's order": np.asfortranarray,
    "transposed": lambda a: a.T,
    "strided": lambda a: np.repeat(a[None], 2, 0).T[..., 0],
    "backwards": lambda a: a[::-1] if a.ndim else a,
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "misaligned": lambda a: misaligned(a) if a.dtype.kind not in "OU" else a,
    "read-only": frozen,
    "subclass": lambda a: a.view(np.matrix) if a.ndim == 2 else a,
    "not masked": lambda a: np.ma.array(a, mask=False),
    "objects": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "list of arrays": lambda a: [a, a],
    "tuple": lambda a: tuple(a.ravel().tolist()),
    "iterator": lambda a: iter(a.ravel().tolist()),
    "scalar": lambda a: a.ravel()[0] if a.size else None,
    "number": lambda a: a.ravel()[0].item() if a.size and a.dtype.kind != "O" else 1,
    "default integers": lambda a: np.array([len(str(x)) for x in a.flat] or [7]),
    "arange": lambda a: np.arange(a.size),
    "argsort": lambda a: np.argsort(a.ravel(), kind="stable"),
}
DEFAULT = {"default integers", "arange", "argsort"}


def value(x):
    return ort.OrtValue.ortvalue_from_numpy(x)


def bound(session, bind, out=None):
    binding = session.io_binding()
    bind(binding)
    if out is None:
        binding.bind_output("y")
    else:
        binding.bind_ortvalue_output("y", value(out))
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def updated(dtype, x):
    target = value(np.zeros(np.shape(x), dtype))
    target.update_inplace(x)
    return target.numpy()


def typed(dtype, x):
    number = NUMBERS[dtype]
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(x, number).numpy()


OUTPUTS = [
    lambda: pick([None, [], ["y"], ["y", "y"], ("y",), {"y"}, np.array(["y", "y"])]),
    lambda: (name for name in ["y", "y"]),
]
WAYS = {
    "run": lambda s, dtype, x: s.run(pick(OUTPUTS)(), {"x": x}),
    "run_with_ort_values": lambda s, dtype, x: [
        each.numpy() for each in s.run_with_ort_values(None, {"x": value(x)})
    ],
    "bind_cpu_input": lambda s, dtype, x: bound(s, lambda b: b.bind_cpu_input("x", x)),
    "bind_ortvalue_input": lambda s, dtype, x: bound(
        s, lambda b: b.bind_ortvalue_input("x", value(x))
    ),
    "bind_ortvalue_output": lambda s, dtype, x: bound(
        s, lambda b: b.bind_cpu_input("x", x), np.zeros(np.shape(x), dtype)
    ),
    "update_inplace": lambda s, dtype, x: updated(dtype, x),
    "with_onnx_type": lambda s, dtype, x: typed(dtype, x),
}

for i in range(2000):
    dtype = pick([*NUMBERS, "string", "string", "int64", "int64"])
    given = pick(NUMBERS) if chance.random() < 0.15 else dtype
    layout, way = pick(LAYOUTS), pick(WAYS)
    if {"int64": "int32", "uint64": "uint32"}.get(dtype) == given:
        continue
    if layout in DEFAULT and dtype in ("int32", "uint32"):
        continue
    if way in ("update_inplace", "with_onnx_type", "bind_ortvalue_output"):
        if given != dtype or dtype == "string":
            continue
        if layout in DEFAULT and dtype != "int64":
            continue
    if way == "with_onnx_type" and layout not in ("contiguous", "misaligned", *DEFAULT):
        continue
    x = LAYOUTS[layout](array(given))
    check(
        f"{i}: {way}, {given} for {dtype}, {layout}",
        lambda: WAYS[way](sessions[dtype], dtype, x),
    )
