"""Shapes, strides and memory of arrays, in and out."""

import ctypes
import re

import numpy as np
import pytest
from conftest import arrays_of
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

BASE = np.arange(24, dtype=np.int32).reshape(4, 6)
CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)

LAYOUTS = {
    "contiguous": BASE,
    "one row": BASE[1],
    "strided": BASE[::2, 1::2],
    "reversed": BASE[::-1],
    "reversed twice": BASE[::-1, ::-2],
    "transposed": BASE.T,
    "permuted": CUBE.transpose(2, 0, 1),
    "fortran": np.asfortranarray(BASE),
    "new axis": BASE[:, None, ::3],
    "broadcast": np.broadcast_to(np.arange(3, dtype=np.float32), (4, 3)),
    "0-d": np.array(7.5),
    "one element": np.array([[3]], dtype=np.uint8),
    "empty": np.zeros((3, 0, 2)),
    "empty strided": np.zeros((4, 4))[::2, 4:],
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS.keys())
def layout(request):
    return request.param


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_layout_survives_the_round_trip(layout, make):
    with make(layout) as tensor:
        assert tensor.shape == layout.shape
        assert tensor.ndim == layout.ndim
        assert tensor.size == layout.size
        assert tensor.nbytes == layout.nbytes
        assert tensor.byte_offset == 0
        if layout.size:
            assert tensor.strides == tuple(s // layout.itemsize for s in layout.strides)
        for back in arrays_of(tensor):
            np.testing.assert_array_equal(back, layout)
            assert back.shape == layout.shape
            if layout.size:
                assert back.ctypes.data == layout.ctypes.data


def test_copy_is_writable_and_fresh(layout):
    tensor = dlw.from_dlpack(layout)
    capsule = tensor.__dlpack__(max_version=(1, 0), copy=True)
    own = dlw.from_dlpack(capsule)  # our own packing, where this may use NumPy's:
    for copy in (dlw.from_dlpack(layout, copy=True), own):
        back = np.asarray(copy)
        np.testing.assert_array_equal(back, layout)
        assert back.flags.writeable
        assert not np.shares_memory(back, layout)
        assert not copy.read_only
    assert np.asarray(own).flags.c_contiguous


def test_writes_are_seen_on_both_sides():
    array = np.zeros(4, np.float32)
    with dlw.from_dlpack(array) as tensor:
        np.asarray(tensor)[1] = 5
        array[2] = 6
        assert memoryview(tensor).tolist() == [0, 5, 6, 0]


def test_read_only_stays_read_only():
    array = np.arange(3)
    array.flags.writeable = False
    for make in (dlw.from_dlpack, dlw.from_buffer):
        tensor = make(array)
        assert tensor.read_only
        assert not any(back.flags.writeable for back in arrays_of(tensor))
        assert memoryview(tensor).readonly


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex32", "int4"])
def test_what_a_subclass_refuses_is_refused(kind):
    """Also of dtypes that NumPy itself does not export."""

    class Refusing(np.ndarray):
        def __dlpack__(self, **options):
            raise BufferError("mine")

    class Plain(np.ndarray):
        pass

    package = np if kind == "float32" else pytest.importorskip("ml_dtypes")
    if not hasattr(package, kind):
        pytest.skip(f"this version of {package.__name__} has no {kind}")
    array = np.zeros(3, getattr(package, kind))
    for copy in (None, True):
        with pytest.raises(BufferError, match="mine"):
            dlw.from_dlpack(array.view(Refusing), copy=copy)
        dlw.from_dlpack(array.view(Plain), copy=copy).release()
    dlw.from_buffer(array.view(Refusing)).release()  # which asks its buffer


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (5, (5,)),
        (np.int64(5), (5,)),
        ((), ()),
        ((0,), (0,)),
        ((np.uint8(2), 3), (2, 3)),
        ([4, 1], (4, 1)),
        (np.array([4, 1]), (4, 1)),
    ],
)
def test_empty_takes_the_shape(shape, expected):
    with dlw.empty(shape, "uint16") as tensor:
        assert tensor.shape == expected
        array = tensor.numpy()
        array[...] = 7
        assert array.sum() == 7 * tensor.size


@pytest.mark.parametrize(
    "shape", [(2**62,), (2**70,), (2**32, 2**32), (2**31, 2**31, 0, 2**20)]
)
def test_empty_beyond_the_address_space(shape):
    with pytest.raises(BufferError, match="address space"):
        dlw.empty(shape, "float64")


def test_empty_refuses_negative_extents():
    with pytest.raises(ValueError, match=r"must not be negative.*-1"):
        dlw.empty((3, -1))


def test_empty_refuses_too_many_dimensions():
    with pytest.raises(BufferError, match="dimensions 65: 0 to 64"):
        dlw.empty((1,) * 65)


def test_array_method_honours_copy():
    array = np.arange(3)
    tensor = dlw.from_dlpack(array)
    assert np.shares_memory(tensor.__array__(copy=False), array)
    assert not np.shares_memory(tensor.__array__(copy=True), array)
    with pytest.raises(dlw.CopyError):
        tensor.__array__(np.float32, copy=False)
    with pytest.raises(dlw.CopyError, match="unpacking int4 makes a copy"):
        dlw.empty(8, "int4").__array__(copy=False)


def test_ctypes_arrays_have_no_strides_and_are_row_major():
    """Their exporter gives none, whatever it is asked for."""
    values = ((ctypes.c_double * 3) * 2)((1, 2, 3), (4, 5, 6))
    with dlw.from_buffer(values) as tensor:
        assert (tensor.shape, tensor.strides) == ((2, 3), (3, 1))
        assert np.asarray(tensor).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_repr_says_what_it_is():
    array = np.arange(6.0).reshape(2, 3)
    assert repr(dlw.from_dlpack(array)) == (
        "Tensor([[0., 1., 2.],\n"
        "        [3., 4., 5.]], shape=(2, 3), dtype='float64', device='cpu')"
    )
    array.flags.writeable = False
    assert "read_only" in repr(dlw.from_dlpack(array))


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (np.arange(3), "[0, 1, 2], "),
        (np.arange(1000), "[  0,   1,   2, ..., 997, 998, 999], "),
        (np.arange(1000)[::-2], "[999, 997, 995, ...,   5,   3,   1], "),
        (np.array(1.5), "1.5, "),
        (np.array([True, False]), "[ True, False], "),
        (np.array([1 + 2j]), "[1.+2.j], "),
        (np.zeros((0, 3)), "[], "),
        (np.zeros((2, 2, 2, 2, 2)), ""),
        (np.zeros((1, 1, 1, 1, 2)), "[[[[[0., 0.]]]]], "),
    ],
    ids=lambda x: str(getattr(x, "shape", "")),
)
def test_a_repr_begins_with_the_elements(array, shown):
    with dlw.from_dlpack(array) as tensor:
        assert repr(tensor) == f"Tensor({shown}{tensor._said_facts()})"


def test_a_repr_of_much_reads_little(monkeypatch):
    """The corners of each axis alone, and of what is packed nothing."""
    big = np.zeros((500, 400, 300), "u1")
    big[0, 0, 0], big[-1, -1, -1] = 1, 9
    with dlw.from_dlpack(big) as tensor:
        said = repr(tensor)
        assert said.startswith("Tensor([[[1, ..., 0],")
        assert "..., 9]]], shape=(500, 400, 300)" in said
        assert len(said) < 300
    with dlw.empty(1 << 20, "uint4") as packed:
        monkeypatch.setattr(dlw.Tensor, "numpy", lambda self: pytest.fail("read"))
        assert repr(packed) == "Tensor(shape=(1048576,), dtype='uint4', device='cpu')"


def test_a_repr_reads_nothing_of_a_gpu(monkeypatch):
    monkeypatch.setattr(dlw.Tensor, "numpy", lambda self: pytest.fail("read"))
    with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
        assert repr(tensor).startswith("Tensor(shape=")


def test_a_repr_never_raises(monkeypatch):
    def fails(self):
        raise RuntimeError("no array")

    monkeypatch.setattr(dlw.Tensor, "numpy", fails)
    with dlw.empty(3) as tensor:
        assert repr(tensor) == "Tensor(shape=(3,), dtype='float32', device='cpu')"


def test_a_repr_of_dtypes_that_numpy_lacks_shows_no_bytes():
    def zeros(dtype):
        tensor = dlw.empty(3, dtype)
        memory, _ = _core._raw(tensor)
        np.asarray(memory)[...] = 0
        return tensor

    with zeros("float32x4") as lanes:
        assert repr(lanes).startswith("Tensor([[0., 0., 0., 0.],")
    for name in "bfloat16", "float8_e5m2", "float4_e2m1fn":
        with zeros(name) as tensor:
            assert not re.search(r"b'|\\x|V\d", repr(tensor))
        with dlw.from_buffer(bytes(16)) as raw:
            assert repr(raw).startswith("Tensor([0, 0, 0, ..., 0, 0, 0], ")


def values(tensor):
    """Those of unpacked elements, also where ml_dtypes is missing."""
    return tensor.numpy().view("u1").tolist()


def test_packed_elements_are_written_without_their_neighbours():
    """Their bytes have bits of others, before they are copied and after."""
    tensor, source = dlw.empty(7, "uint4"), dlw.empty(5, "uint4")
    memory, _ = _core._raw(tensor)
    np.asarray(memory)[:] = [0x10, 0x32, 0x54, 0x06]
    beside, _ = _core._raw(source)
    np.asarray(beside)[:] = 0xFF
    source.write(tensor[2:])
    assert beside.tobytes()[-1] >> 4 == 0xF  # which is no element
    assert values(source) == [2, 3, 4, 5, 6]
    tensor[:3].write(source[2:])
    assert values(tensor) == [4, 5, 6, 3, 4, 5, 6]
    tensor[2:5].write(tensor[:3])  # overlapping
    assert values(tensor) == [4, 5, 4, 5, 6, 5, 6]
    assert tensor[:3].tobytes() == b"\x54\x04"
    assert tensor[::2].tobytes() == b"\x44\x66"
    for each in (tensor, source, memory, beside):
        each.release()


def test_strides_of_single_elements_may_be_anything():
    """In bytes they would be more than NumPy can hold."""
    for fields in ({}, {"code": 4, "bits": 16}, {"code": 1, "bits": 8, "lanes": 2}):
        producer = Forged(shape=(1, 2), strides=(2**62, 1), **fields)
        with dlw.from_dlpack(producer) as tensor:
            assert tensor.numpy().shape[:2] == (1, 2)
            if not fields:
                assert tensor.__array_interface__["strides"] is None
            assert "<table" in tensor._repr_html_()


def test_lanes_are_no_axis_where_there_are_64():
    ones = [1] * 64
    producer = Forged(ndim=64, shape=ones, strides=ones, lanes=2)
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.shape == tensor.strides == tuple(ones)
        with pytest.raises(BufferError, match="at most 64 axes"):
            tensor.numpy()
        assert "at most 64 axes" in tensor._repr_html_()
        assert tensor.reshape(1).numpy().tolist() == [[0, 1]]


def test_to_device_takes_the_array_apis_stream():
    with dlw.from_dlpack(BASE) as tensor:
        with tensor.to_device("cpu", stream=None) as same:
            assert np.shares_memory(same.numpy(), BASE)
        with tensor.to_device("cpu", copy=True) as copy:
            assert not np.shares_memory(copy.numpy(), BASE)
        for stream in (0, 1, "default"):
            with pytest.raises(ValueError, match=rf"must be None, not {stream!r}: the"):
                tensor.to_device("cpu", stream=stream)
