"""What the model's page calls in Python: each takes proxies and a list in JSON, and gives a Tensor,
an array, bytes, or the name of an exception with "!" before it."""

import gc
import json
import sys
import warnings

import numpy as np
from pyodide.ffi import to_js

import dlpack_web as dlw

warnings.simplefilter(
    "ignore"
)  # faults that nobody asked for: the model counts those of JavaScript
CALLS = {}


def call(function):
    CALLS[function.__name__] = function
    return function


def _failed(error):
    label = getattr(error, "label", None)
    return f"!{type(error).__name__}|{label or ''}|{error}"


def run(name, options, *args):
    """Runs a call; JavaScript waits for what `CALLS` has as a coroutine."""
    try:
        return CALLS[name](*args, **json.loads(options))
    except Exception as error:  # noqa: BLE001 - the model knows which may be
        return _failed(error)


async def run_later(name, options, *args):
    try:
        return await CALLS[name](*args, **json.loads(options))
    except Exception as error:  # noqa: BLE001 - the model knows which may be
        return _failed(error)


def _bytes(array):
    return to_js(np.ascontiguousarray(array).tobytes())


@call
def array(data, dtype, shape, strides=None, offset=0):
    """An array of NumPy's own, of bytes that come from JavaScript."""
    kind = {"bfloat16": "u2", "complex64": "c8", "complex128": "c16"}.get(dtype, dtype)
    whole = np.frombuffer(data.to_bytes(), dtype=kind).copy()
    if strides is None:
        return whole.reshape(shape)
    step = whole.itemsize
    return np.lib.stride_tricks.as_strided(
        whole[offset:], shape, [stride * step for stride in strides]
    )


@call
def borrow(x, copy=None):
    return dlw.from_dlpack(x, copy=copy)


@call
def empty(shape, dtype, device):
    return dlw.empty(shape, dtype, device=device)


@call
def convert(x, dtype, device):
    return dlw.from_dlpack(x, dtype=dtype, device=device)


@call
def reshape(x, shape):
    return x.reshape(shape)


@call
def permute(x, axes):
    return x.permute_dims(axes)


@call
def select(x, ranges):
    return x[tuple(r if isinstance(r, int) else slice(*r) for r in ranges)]


@call
def to_device(x, device, dtype=None):
    return x.to_device(device, dtype=dtype)


@call
def write(x, source, convert=False):
    x.write(source, convert=convert)


@call
def numpy(x):
    return x.numpy()


@call
def read(x):
    """The elements in row-major order, as bytes, of a tensor on the CPU."""
    packed = x.tobytes()
    if x.dtype not in ("uint4", "bfloat16"):
        assert x.numpy().tobytes() == packed, "numpy() and tobytes() differ"
    return to_js(packed)


@call
async def read_later(x):
    elements = await x.to_host()
    if x.dtype == "uint4":  # NumPy has a byte for each
        pairs = np.append(
            elements.ravel().view("u1"), np.zeros(elements.size % 2, "u1")
        )
        return _bytes(pairs[0::2] | pairs[1::2] << 4)
    return _bytes(elements)


@call
def block(x):
    return _bytes(np.asarray(x))


@call
def from_js(x):
    return dlw.from_js(x)


@call
def twin(x):
    """A tensor of JavaScript over the same memory, which the caller releases."""
    return dlw.to_js(x)


@call
def kernel(*args, source, label, workgroups=None):
    dlw.webgpu.Kernel(source, label=label)(*args, workgroups=workgroups)


@call
def release(x):
    x.release()


@call
def shape(x):
    return json.dumps([x.shape, x.strides])


@call
def grow(nbytes):
    """Memory that is taken until there had to be more of it, and given back."""
    bytearray(nbytes)


@call
def live():
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        if hasattr(sys, name):
            delattr(sys, name)
    gc.collect()
    return dlw.live_tensors()
