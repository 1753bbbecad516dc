"""The public operations, one by one: what each needs, and the call."""

from collections.abc import Callable
from typing import Any

import bridge_calls as bridge
import numpy as np
from fault_subjects import (
    BFLOATS,
    FLOATS,
    NIBBLES,
    SMALL,
    STRINGS,
    Bridged,
    Exchanged,
    Exporter,
    Lent,
    Old,
    Owner,
    Ready,
    Refuses,
    awaited,
    capsule,
    chunk,
    error_text,
    on_gpu,
    packed,
    refused,
    tensor,
)

import dlpack_web as dlw
from dlpack_web import _core

type Operation = tuple[Callable[[], Any], Callable[[Any], Any] | Bridged | Exchanged]


def none() -> None:
    return None


def ZERO(_: object) -> int:  # noqa: N802 - a constant
    return 0


def ONE(_: object) -> int:  # noqa: N802 - likewise
    return 1


def TWO(_: object) -> int:  # noqa: N802 - likewise
    return 2


def columns() -> Lent:
    """3 by 2 elements that lie in columns; the rows of a view of 2 by 2."""
    bridge.set_shape(2, 2, strides=(3, 1))
    return Lent(FLOATS.T)


INT8 = dlw.DType("int8")._packed


OPERATIONS: dict[str, Operation] = {
    "from_dlpack of NumPy": (none, lambda _: dlw.from_dlpack(FLOATS)),
    "from_dlpack of a struct": (Ready, dlw.from_dlpack),
    "from_dlpack of 9 axes": (
        lambda: Ready(ndim=9, shape=(1,) * 9, strides=(1,) * 9),
        dlw.from_dlpack,
    ),
    "from_dlpack copy": (Ready, lambda x: dlw.from_dlpack(x, copy=True)),
    "from_dlpack copy of NumPy": (none, lambda _: dlw.from_dlpack(FLOATS, copy=True)),
    "from_dlpack on": (none, lambda _: dlw.from_dlpack(FLOATS, device="cpu")),
    "from_dlpack dtype": (none, lambda _: dlw.from_dlpack(FLOATS.T, dtype="float32")),
    "from_dlpack of a Tensor": (tensor, dlw.from_dlpack),
    "from_dlpack of an old producer": (Old, dlw.from_dlpack),
    "from_dlpack of bfloat16": (none, lambda _: dlw.from_dlpack(BFLOATS)),
    "from_dlpack of int4": (none, lambda _: dlw.from_dlpack(NIBBLES)),
    "from_dlpack of a capsule": (
        none,
        lambda _: dlw.from_dlpack(FLOATS.__dlpack__(max_version=(1, 0))),
    ),
    "from_dlpack of strings": (none, lambda _: refused(dlw.from_dlpack, STRINGS)),
    "from_dlpack of nothing": (none, lambda _: refused(dlw.from_dlpack, [])),
    "from_dlpack of what raises": (Refuses, lambda x: refused(dlw.from_dlpack, x)),
    "from_buffer": (none, lambda _: dlw.from_buffer(b"abc")),
    "from_buffer of NumPy": (none, lambda _: dlw.from_buffer(FLOATS.T)),
    "from_buffer of 9 axes": (
        lambda: np.zeros((1,) * 9),
        dlw.from_buffer,
    ),
    "from_buffer of Python": (Exporter, dlw.from_buffer),
    "from_buffer of bfloat16": (none, lambda _: dlw.from_buffer(BFLOATS)),
    "empty": (none, lambda _: dlw.empty((2, 3), "int32").shape),
    "reshape": (tensor, lambda t: t.reshape((3, -1))),
    "permute_dims": (tensor, lambda t: t.permute_dims((1, 0))),
    "index": (tensor, lambda t: t[::-1, None, 1:]),
    "iterate": (tensor, list),
    "numpy": (tensor, lambda t: t.numpy()),
    "numpy of bfloat16": (lambda: tensor(BFLOATS), lambda t: t.numpy()),
    "numpy of packed": (packed, lambda t: t.numpy()),
    "asarray": (tensor, np.asarray),
    "np.from_dlpack": (tensor, np.from_dlpack),
    "__array__": (tensor, lambda t: t.__array__("float32")),
    "__array_interface__": (tensor, lambda t: t.__array_interface__["shape"]),
    "memoryview": (tensor, lambda t: memoryview(t).tolist()),
    "tobytes": (tensor, lambda t: t[:, ::-1].tobytes()),
    "tobytes of packed": (packed, lambda t: t[:3].tobytes()),
    "__dlpack__": (tensor, lambda t: capsule(t.__dlpack__(max_version=(1, 0)))),
    "__dlpack__ legacy": (tensor, lambda t: capsule(t.__dlpack__())),
    "__dlpack__ copy": (tensor, lambda t: capsule(t.__dlpack__(copy=True))),
    "__dlpack__ elsewhere": (
        tensor,
        lambda t: refused(lambda x: x.__dlpack__(dl_device=(2, 0)), t),
    ),
    "facts": (
        tensor,
        lambda t: (t.shape, t.strides, t.dtype, str(t.device), t.nbytes, t.byte_offset),
    ),
    "facts of many": (
        lambda: tensor(np.broadcast_to(np.int8(1), (500, 600))),
        lambda t: (t.shape, t[::2, ::-300].strides),
    ),
    "to_device": (tensor, lambda t: t.to_device("cpu")),
    "to_device copy": (tensor, lambda t: t.to_device("cpu", copy=True)),
    "to_device dtype": (tensor, lambda t: t.to_device("cpu", dtype="float32")),
    "to_device of what does not fit": (
        lambda: tensor(SMALL << 40),
        lambda t: refused(lambda x: x.to_device("cpu", dtype="int32"), t),
    ),
    "to_device elsewhere": (
        tensor,
        lambda t: refused(lambda x: x.to_device("webgpu"), t),
    ),
    "write": (lambda: dlw.empty((2, 3), "float64"), lambda t: t.write(FLOATS)),
    "write converted": (
        lambda: dlw.empty((2, 3)),
        lambda t: t.write(FLOATS.T.copy().T, convert=True),
    ),
    "repr": (tensor, repr),
    "html": (tensor, lambda t: t._repr_html_()),
    "numbers": (lambda: dlw.from_buffer(b"a"), lambda t: (int(t), float(t), bool(t))),
    "with": (tensor, lambda t: t.__enter__().__exit__()),
    "release": (tensor, lambda t: t.release()),
    "inspect": (tensor, lambda t: repr(dlw.inspect({"t": [t]}))),
    "inspect by holder": (tensor, lambda t: dlw.inspect({}).live),
    "live_tensors": (none, lambda _: dlw.live_tensors()),
    "a GPU's": (on_gpu, lambda t: (repr(t), refused(memoryview, t))),
    "pickle": (tensor, lambda t: refused(lambda x: x.__reduce_ex__(2), t)),
    "missing attribute": (tensor, lambda t: refused(lambda x: x.sum, t)),
    "comparison": (tensor, lambda t: refused(lambda x: x == dlw.empty(1), t)),
    "assignment": (tensor, lambda t: refused(lambda x: x.__setitem__(0, 1), t)),
    "gpu_buffer": (tensor, lambda t: refused(lambda x: x.gpu_buffer, t)),
    "to_host": (tensor, lambda t: awaited(t.to_host())),
    "dlw.to_host": (tensor, lambda t: awaited(dlw.to_host(t, t))),
    "DType": (none, lambda _: (repr(dlw.DType("uint4x3")), dlw.DType("int4").bits)),
    "DType of nonsense": (none, lambda _: refused(dlw.DType, "float33")),
    "Device": (none, lambda _: (repr(dlw.Device(15, 3)), str(dlw.Device(1, 0)))),
    "features": (none, lambda _: repr(dlw.features())),
    "from_js": (none, lambda _: refused(dlw.from_js, FLOATS)),
    "to_js": (tensor, lambda t: refused(dlw.to_js, t)),
    "from_gpu_buffer": (
        none,
        lambda _: refused(
            lambda x: dlw.from_gpu_buffer(x, 3, "float32", device="webgpu"), 7
        ),
    ),
    "request_device": (
        none,
        lambda _: refused(lambda _: awaited(dlw.webgpu.request_device()), None),
    ),
    "arguments": (tensor, lambda t: refused(lambda x: _core._arguments(x, 1.5), t)),
    "arguments on a GPU": (on_gpu, lambda t: _core._arguments(t, 1.5)[1][1]),
    "a cycle": (Owner, lambda x: setattr(x, "tensor", dlw.from_buffer(x))),
    "C: out": (tensor, Exchanged("out")),
    "C: in": (tensor, Exchanged("in")),
    "js: borrow": (lambda: FLOATS, Bridged("borrow", id, ZERO)),
    "js: borrow a struct": (Ready, Bridged("borrow", id, ZERO)),
    "js: borrow a Tensor": (tensor, Bridged("borrow", id, ZERO)),
    "js: borrow strings": (lambda: STRINGS, Bridged("borrow", id, ZERO)),
    "js: borrow writable": (lambda: b"abc", Bridged("borrow", id, ONE)),
    "js: share": (lambda: Lent(FLOATS), Bridged("share", lambda x: x.handle)),
    "js: pack": (lambda: Lent(FLOATS.T), Bridged("pack", lambda x: x.handle)),
    "js: stale": (none, Bridged("share", lambda _: 5)),
    "js: empty": (
        lambda: bridge.set_shape(0, 3),
        Bridged("empty", lambda _: 2, lambda _: INT8, ZERO),
    ),
    "js: wrap": (
        lambda: bridge.set_shape(2, 3, strides=(1, 2)),
        Bridged("wrap", lambda _: 7, ZERO, TWO, lambda _: INT8, ZERO, ONE),
    ),
    "js: view": (columns, Bridged("view", lambda x: x.handle, TWO, number=1)),
    "js: view outside": (columns, Bridged("view", lambda x: x.handle, TWO, number=2)),
    "js: chunk": (lambda: Lent(FLOATS.T), lambda x: chunk(x, "float32")),
    "js: error text": (none, lambda _: error_text()),
}
