"""A stand-in for PyTorch 2.8 and older, which speak DLPack before 1.0 in both directions.

Their builds without CUDA are not on PyPI, and the others bring gigabytes. This does what
those do with DLPack: `__dlpack__` knows `stream` alone and gives a legacy capsule;
`from_dlpack` asks for the device, calls `__dlpack__()` and takes a legacy capsule only.
"""

import ctypes

import numpy as np
from forge import DELETER, Forged, Legacy, consume, get_name
from frameworks import Framework


class Tensor:
    """Float32, contiguous, over memory that somebody holds."""

    def __init__(self, address, shape, holder):
        self._address, self.shape, self._holder = address, shape, holder

    def data_ptr(self):
        return self._address

    def numpy(self):
        """A copy, which is enough to see the elements."""
        memory = (ctypes.c_float * int(np.prod(self.shape))).from_address(self._address)
        return np.array(memory, np.float32).reshape(self.shape)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        if stream not in (None, 1):
            raise AssertionError("stream is only for CUDA")
        strides = [int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape))]
        producer = Forged(
            flavour=Legacy,
            data=self._address,
            ndim=len(self.shape),
            shape=self.shape,
            strides=strides,
        )
        producer.kept = self
        return producer.__dlpack__()


class _Taken:
    """Somebody's managed tensor, deleted with this."""

    def __init__(self, struct):
        self.struct = struct

    def __del__(self):
        if self.struct.deleter:
            DELETER(self.struct.deleter)(ctypes.addressof(self.struct))


def from_dlpack(x):
    if hasattr(x, "__dlpack__"):
        if x.__dlpack_device__()[0] != 1:
            raise RuntimeError("only memory of the CPU is known here")
        x = x.__dlpack__()
    if get_name(x) != b"dltensor":
        raise RuntimeError("from_dlpack received an invalid capsule.")
    struct = consume(x)
    tensor = struct.dl_tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return Tensor(tensor.data + tensor.byte_offset, shape, _Taken(struct))


def zeros(*shape):
    memory = np.zeros(shape, np.float32)
    return Tensor(memory.ctypes.data, shape, memory)


class OldTorch(Framework):
    """No framework of the table: what it shows is what this file says."""

    title, distribution = "PyTorch 2.8 (stand-in)", ""
    writable = False
    copy = "no keyword"

    @classmethod
    def load(cls, folder):
        return cls(None)

    def from_dlpack(self, x, **keywords):
        return from_dlpack(x, **keywords)

    def zeros(self, shape, dtype):
        assert dtype == "float32"
        return zeros(*shape)

    def address(self, array):
        return array.data_ptr()

    def numpy(self, array):
        return array.numpy()
