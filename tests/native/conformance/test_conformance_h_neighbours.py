# More than 500 lines: one suite, whose tests share their fixtures.
"""Rules 115 to 120: the protocols beside DLPack that the same object speaks."""

import asyncio
import ctypes
import gc
import hashlib
import sys
import zlib
from ctypes import c_void_p

import numpy as np
import pytest
from bridge import borrow, error_kind
from conftest import needs_new_numpy
from forge import Forged, Recorder, legacy, versioned

import dlpack_web as dlw
from dlpack_web import _core

# --- 115: buffers, as ndarrays give them ----------------------------------------------


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    )


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = (ctypes.py_object, c_void_p, ctypes.c_int)
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = (c_void_p,)
release_buffer.restype = None

LAYOUTS = {
    "SIMPLE": 0,
    "ND": 0x8,
    "STRIDES": 0x18,
    "C_CONTIGUOUS": 0x38,
    "F_CONTIGUOUS": 0x58,
    "ANY_CONTIGUOUS": 0x98,
    "INDIRECT": 0x118,
}
BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
ARRAYS = {
    "0-d": BASE[1, 2],
    "1-d": BASE[0],
    "1-d strided": BASE[0, ::2],
    "1-d reversed": BASE[0, ::-1],
    "2-d": BASE,
    "2-d transposed": BASE.T,
    "2-d strided": BASE[::2, 1:],
    "one element": BASE[:1, :1],
    "one of strided": BASE[1::4, ::6],
    "one row": BASE[:1],
    "one column": BASE[:, :1],
    "broadcast": np.broadcast_to(np.float32(1), (2, 3)),
    "no rows": BASE[:0],
    "no columns": BASE[:, :0],
    "3-d": BASE.reshape(2, 3, 4).transpose(2, 0, 1),
}


def facts(x, flags):
    """What PyObject_GetBuffer gives; "refused" where it raises."""
    view = PyBuffer()
    try:
        get_buffer(x, ctypes.byref(view), flags)
    except (BufferError, ValueError):
        return "refused"
    try:
        ndim = view.ndim
        return {
            "address": view.buf if view.len else None,
            "len": view.len,
            "itemsize": view.itemsize,
            "readonly": view.readonly,
            "ndim": ndim,
            "format": view.format,
            "shape": view.shape[:ndim] if view.shape else None,
            # Of axes of one element, and of arrays without any, they carry no information.
            "strides": [
                stride if extent > 1 and view.len else 0
                for extent, stride in zip(
                    view.shape[:ndim], view.strides[:ndim], strict=True
                )
            ]
            if view.strides
            else None,
            "suboffsets": view.suboffsets,
        }
    finally:
        release_buffer(ctypes.byref(view))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_rule_115_buffers_are_those_of_an_ndarray(array, layout):
    array = np.asarray(array)
    with dlw.from_dlpack(array) as tensor:
        for writable in (0, 1):
            for formatted in (0, 4):
                flags = layout | writable | formatted
                assert facts(tensor, flags) == facts(array, flags), hex(flags)


def test_rule_115_a_simple_buffer_has_bytes_alone():
    """zlib and hashlib ask for one; a `shape` of NULL beside `ndim` 2 crashed zlib."""
    array = np.arange(6, dtype=np.int16).reshape(2, 3)

    class Forwards:
        def __init__(self, tensor):
            self.tensor = tensor

        def __buffer__(self, flags):
            return self.tensor.__buffer__(flags)

    for view in (array, np.array(3.0), array[:0]):
        with dlw.from_dlpack(view) as tensor:
            for x in (tensor, Forwards(tensor)):
                assert zlib.crc32(x) == zlib.crc32(view)
                assert hashlib.sha256(x).digest() == hashlib.sha256(view).digest()
                assert bytes(x) == view.tobytes()


def test_rule_115_strides_of_single_elements_may_be_anything():
    """Times the item size they are beyond what a Py_ssize_t holds."""
    for strides in ((2**62, 1), (-(2**63), 2**63 - 1)):
        producer = Forged(shape=(1, 1), strides=strides)
        with dlw.from_dlpack(producer) as tensor:
            assert tensor.strides == strides
            assert memoryview(tensor).strides == (4, 4)
            assert np.asarray(tensor).tolist() == [[0.0]]


# --- 116: exporters see the buffer that they gave -----------------------------------------


@pytest.mark.parametrize("how", [dlw.from_buffer, lambda x: _core._take(_lent(x))])
def test_rule_116_a_released_buffer_is_the_one_that_was_given(how):
    """Those of PyBuffer_FillInfo have shape and strides that point into themselves."""
    seen = []

    class Bytes(bytearray):
        def __buffer__(self, flags):
            return super().__buffer__(flags)

        def __release_buffer__(self, view):
            seen.append((view.tobytes(), view.shape, view.strides, view.format))
            super().__release_buffer__(view)

    exporter = Bytes(b"abc")
    tensor = how(exporter)
    gc.collect()
    filler = [bytearray(300) for _ in range(100)]  # what would be found in old places
    tensor.release()
    assert seen == [(b"abc", (3,), (1,), "B")]
    exporter.append(1)  # nothing pins it any more
    del filler


def _lent(x):
    from bridge import lend

    return lend(x)


def test_rule_116_buffers_of_any_rank_stay_in_place():
    """More axes than there is room for at first."""
    most = 32 if np.lib.NumpyVersion(np.__version__) < "2.0.0" else 64
    for ndim in (0, 1, 5, 6, 7, 8, 20, 32, most):
        shape = (1,) * (ndim - 1) + (3,) * (ndim > 0)
        array = np.arange(np.prod(shape, dtype=int), dtype="u1").reshape(shape)
        for make in (dlw.from_buffer, dlw.from_dlpack):
            with make(array) as tensor:
                assert (tensor.ndim, tensor.shape) == (ndim, shape)
                assert memoryview(tensor).ndim == ndim
                np.testing.assert_array_equal(np.asarray(tensor), array)


# --- 117: what has to come through ----------------------------------------------------------

THROUGH = [KeyboardInterrupt, SystemExit, MemoryError, asyncio.CancelledError]
THROUGH += [ZeroDivisionError, OSError]


@pytest.fixture(params=THROUGH)
def error(request):
    return request.param


def fails(error, *, dlpack=False, buffer=False, with_dtype=False, refuses=False):
    """An object whose protocols raise `error`; with `refuses` they refuse at first."""

    class Producer:
        if dlpack or refuses:

            def __dlpack__(self, **keywords):
                raise BufferError("refused") if refuses else error

        if buffer or refuses:

            def __buffer__(self, flags):
                raise BufferError("refused") if refuses else error

        if with_dtype:

            @property
            def dtype(self):
                raise error

    return Producer()


@pytest.fixture
def unraisable(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    return seen


def raised_by(call, error, unraisable):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert unraisable == []


def test_rule_117_of_dlpack(error, unraisable):
    raised_by(lambda: dlw.from_dlpack(fails(error, dlpack=True)), error, unraisable)
    for request in ({"copy": True}, {"copy": False}, {"device": "cpu"}):
        producer = fails(error, dlpack=True)
        raised_by(lambda: dlw.from_dlpack(producer, **request), error, unraisable)  # noqa: B023


def test_rule_117_of_buffers(error, unraisable):
    raised_by(lambda: dlw.from_buffer(fails(error, buffer=True)), error, unraisable)


def test_rule_117_of_what_javascript_borrows(error, unraisable):
    for producer in (fails(error, dlpack=True), fails(error, buffer=True)):
        assert borrow(producer, 0) == 0
        assert error_kind() == {MemoryError: 6}.get(error, 1)
        raised_by(_core._raise, error, unraisable)


def test_rule_117_a_second_way_does_not_hide_it(error, unraisable):
    """A buffer is refused, and then __dlpack__ raises."""

    class Producer:
        def __buffer__(self, flags):
            raise BufferError("refused")

        def __dlpack__(self, **keywords):
            raise error

    assert borrow(Producer(), 0) == 0
    raised_by(_core._raise, error, unraisable)


@pytest.mark.parametrize("error", [*THROUGH[:4]])
def test_rule_117_while_the_refusal_is_explained(error, unraisable):
    raised_by(
        lambda: dlw.from_dlpack(fails(error, refuses=True, with_dtype=True)),
        error,
        unraisable,
    )
    raised_by(
        lambda: dlw.from_buffer(fails(error, refuses=True, with_dtype=True)),
        error,
        unraisable,
    )


def test_rule_117_while_exchange_functions_are_looked_for(error, unraisable):
    class Meta(type):
        @property
        def __dlpack_c_exchange_api__(cls):
            raise error

    class Producer(metaclass=Meta):
        def __dlpack__(self, **keywords):
            return np.zeros(3).__dlpack__(**keywords)

    raised_by(lambda: dlw.from_dlpack(Producer()), error, unraisable)


def test_rule_117_while_a_method_is_looked_for(error, unraisable):
    class Producer:
        @property
        def __dlpack__(self):
            raise error

    assert borrow(Producer(), 0) == 0
    raised_by(_core._raise, error, unraisable)


def test_rule_117_deleters_that_raise_are_told_of(unraisable):
    """They must not; the exception is neither lost nor somebody else's."""
    producer = Forged()
    delete = producer._delete

    def raising(address):
        delete(address)
        raise ZeroDivisionError("in the deleter")

    producer.deleter = ctypes.PYFUNCTYPE(None, c_void_p)(raising)
    producer.managed.deleter = ctypes.cast(producer.deleter, c_void_p)
    tensor = dlw.from_dlpack(producer)
    tensor.release()
    assert producer.deleted == 1
    assert [type(each.exc_value) for each in unraisable] == [ZeroDivisionError]


# --- 118: copy=True is fresh memory ---------------------------------------------------------


def is_fresh(tensor, address, values):
    assert not tensor.read_only
    assert np.asarray(tensor).tolist() == values
    assert np.asarray(tensor).ctypes.data != address
    assert versioned(tensor.__dlpack__(max_version=(1, 0))).flags == 0
    assert legacy(tensor.__dlpack__()).dl_tensor.ndim == tensor.ndim


SOURCES = {
    "object": lambda array: array,
    "legacy capsule": lambda array: array.__dlpack__(),
    "old producer": lambda array: Recorder(array, knows=()),
    "deaf producer": lambda array: Recorder(array, knows=("max_version",)),
    "tensor": dlw.from_dlpack,
}


NEW_SOURCES = {
    "versioned capsule": lambda array: array.__dlpack__(max_version=(1, 0)),
    "copied capsule": lambda array: array.__dlpack__(max_version=(1, 0), copy=True),
}


@pytest.mark.parametrize(
    "source",
    [
        *(pytest.param(each, id=name) for name, each in SOURCES.items()),
        *(
            pytest.param(each, id=name, marks=needs_new_numpy)
            for name, each in NEW_SOURCES.items()
        ),
    ],
)
@pytest.mark.parametrize("options", [{}, {"device": "cpu"}, {"dtype": "float64"}])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T], ids=["C", "F"])
def test_rule_118_copy_true_is_fresh_memory(source, options, layout):
    array = layout(np.arange(6.0).reshape(2, 3))
    x = source(array)
    with dlw.from_dlpack(x, copy=True, **options) as tensor:
        is_fresh(tensor, array.ctypes.data, array.tolist())
    if isinstance(x, dlw.Tensor):
        x.release()


@needs_new_numpy
def test_rule_118_capsules_of_what_was_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    capsule = array.__dlpack__(max_version=(1, 0))
    with dlw.from_dlpack(capsule, copy=True) as tensor:
        is_fresh(tensor, array.ctypes.data, [0, 1, 2])
    with pytest.raises(ValueError, match="consumed already"):
        dlw.from_dlpack(capsule)


def misaligned(kind="<f8", by=1):
    memory = np.zeros(100, np.uint8)
    array = memory[by : by + 80].view(kind)
    array[:] = np.arange(array.size)
    assert not array.flags.aligned
    return array


def test_rule_118_misaligned_memory_is_copied_where_a_copy_is_asked_for():
    array = misaligned()
    with pytest.raises(BufferError, match="copy=True"):
        dlw.from_dlpack(array)
    for options in ({"copy": True}, {"copy": True, "device": "cpu"}):
        with dlw.from_dlpack(array, **options) as tensor:
            is_fresh(tensor, array.ctypes.data, array.tolist())
    with dlw.from_dlpack(array, dtype="float32") as tensor:
        assert np.asarray(tensor).tolist() == array.tolist()
    with pytest.raises(BufferError, match="copy=True"):
        dlw.from_dlpack(array, dtype="float64")


def test_rule_118_misaligned_memory_is_written_from():
    array = misaligned()
    with dlw.empty(10, "float64") as tensor, dlw.empty(5, "float32") as narrow:
        tensor.write(array)
        assert np.asarray(tensor).tolist() == array.tolist()
        tensor.write(array[::-1])
        assert np.asarray(tensor).tolist() == array[::-1].tolist()
        narrow.write(array[::2], convert=True)
        assert np.asarray(narrow).tolist() == array[::2].tolist()


# --- 119: all memory that the CPU can read ----------------------------------------------------


@pytest.mark.parametrize(
    "device", [(1, 0), (1, 1), (1, 7), (3, 0), (11, 2), (13, 0), (20, 1)]
)
def test_rule_119_host_memory_is_host_memory(device):
    producer = Forged(device_type=device[0], device_id=device[1])
    tensor = dlw.from_dlpack(producer)
    assert tensor.device == device == tensor.__dlpack_device__()
    assert tensor.device.is_host
    assert np.asarray(tensor)[1, 2] == 5
    assert tensor.numpy().base is not None
    assert tensor[1].tobytes() == np.array([3, 4, 5], "f4").tobytes()
    struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (struct.device_type, struct.device_id) == device
    for asked in ((1, 0), device):
        capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=asked, copy=False)
        exported = versioned(capsule)
        assert (exported.dl_tensor.device_type, exported.dl_tensor.device_id) == asked
        assert exported.dl_tensor.data == struct.data
        assert exported.flags == 0
    kind, index = device
    for asked in ((1, 3), (1, -1), (kind, index + 1), (15, 0)):
        for copy in (None, True, False):
            with pytest.raises(BufferError, match="only the tensor's own device"):
                tensor.__dlpack__(max_version=(1, 0), dl_device=asked, copy=copy)
    for asked in ((1, 0), device):
        if asked[0] != 1:
            with pytest.raises(BufferError, match=r"copy=True gives memory of the CPU"):
                tensor.__dlpack__(max_version=(1, 0), dl_device=asked, copy=True)
            continue
        capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=asked, copy=True)
        exported = versioned(capsule)
        assert (exported.dl_tensor.device_type, exported.dl_tensor.device_id) == asked
        assert (exported.dl_tensor.data != struct.data, exported.flags) == (True, 2)
    with tensor.to_device("cpu", copy=False) as there:
        assert there.device == (1, 0)
        assert np.shares_memory(there.numpy(), np.asarray(tensor))
    with dlw.from_dlpack(tensor, device="cpu") as there:
        assert there.device == (1, 0)
    with dlw.from_dlpack(tensor, copy=True) as fresh:
        assert fresh.device == (1, 0)
    with dlw.empty((2, 3)) as target:
        target.write(tensor)
        assert np.asarray(target)[1, 2] == 5
    tensor.write(np.zeros((2, 3), "f4"))
    assert producer.memory[5] == 0
    assert "cpu" in str(tensor.device) or device[0] != 1
    del struct, exported, capsule
    gc.collect()
    tensor.release()
    assert producer.deleted == 1


# --- 120: who knows only legacy capsules gets its own tensors back ------------------------------


class Old:
    """A framework from before 1.0, in both directions."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    @classmethod
    def from_dlpack(cls, x):
        capsule = x.__dlpack__()
        struct = legacy(capsule)
        address, shape = struct.dl_tensor.data, struct.dl_tensor.shape[:1]
        return capsule, address, shape


@pytest.mark.parametrize(
    "between",
    [
        lambda t: t,
        dlw.from_dlpack,
        lambda t: t.reshape(-1),
        lambda t: t[:],
        lambda t: t.to_device("cpu"),
        lambda t: dlw.from_dlpack(t, device="cpu"),
        lambda t: _core._take(_lent(t)),
    ],
    ids=[
        "as it is",
        "again",
        "reshaped",
        "sliced",
        "to_device",
        "from_dlpack",
        "through JavaScript",
    ],
)
def test_rule_120_legacy_in_legacy_out(between):
    array = np.arange(4.0)
    tensor = dlw.from_dlpack(Old(array))
    assert tensor.read_only  # by us: nobody said so
    handed = between(tensor)
    if handed is not tensor:
        tensor.release()
    capsule, address, shape = Old.from_dlpack(handed)
    handed.release()
    assert (address, shape) == (array.ctypes.data, [4])
    del capsule


def test_rule_120_what_somebody_said_stays_said():
    array = np.arange(4.0)
    array.flags.writeable = False
    with dlw.from_dlpack(array) as tensor, pytest.raises(BufferError, match="before 1"):
        tensor.__dlpack__()
    with dlw.from_dlpack(Old(np.arange(4.0))) as tensor:
        capsule = tensor.__dlpack__(max_version=(1, 0))
        assert versioned(capsule).flags == 1
        with dlw.from_dlpack(capsule) as again:  # where we said so ourselves
            assert again.read_only
            with pytest.raises(BufferError, match="before 1"):
                again.__dlpack__()
