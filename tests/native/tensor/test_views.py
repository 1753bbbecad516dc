"""Views that are metadata alone: reshape, permute_dims and indexing, against NumPy."""

import gc
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

sys.path.append(str(Path(__file__).parents[2] / "files"))
from views import random_axes, random_index, random_reshape, random_shape


def same(view, expected):
    """The elements, and that they are the same memory."""
    array = np.asarray(view)
    assert view.shape == expected.shape
    np.testing.assert_array_equal(array, expected)
    if expected.size:
        assert array.ctypes.data == expected.ctypes.data
        steps = zip(view.strides, expected.strides, expected.shape, strict=True)
        for stride, in_bytes, extent in steps:
            assert extent == 1 or stride * expected.itemsize == in_bytes


@pytest.mark.parametrize("seed", range(300))
def test_random_views_of_views_are_numpys(seed):
    """Chains of views, each of the one before, of arrays of any rank."""
    rng = random.Random(seed)
    shape = random_shape(rng)
    dtype = rng.choice(["u1", "i2", "f4", "f8", "c16"])
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    tensor = dlw.from_dlpack(array)
    for _ in range(6):
        what = rng.randrange(3)
        if what == 0:
            index = random_index(rng, array.shape)
            try:
                selected = array[index]
            except IndexError:
                with pytest.raises(IndexError):
                    tensor[index]
                continue
            tensor, array = tensor[index], selected
        elif what == 1:
            axes = random_axes(rng, array.ndim)
            tensor, array = tensor.permute_dims(axes), array.transpose(axes)
        elif array.size:
            shape = random_reshape(rng, array)
            reshaped = array.reshape(shape)
            if np.shares_memory(reshaped, array):
                tensor, array = tensor.reshape(shape), reshaped
            else:
                with pytest.raises(BufferError, match="do not allow a view"):
                    tensor.reshape(shape)
        if array.ndim == 0 and not isinstance(array, np.ndarray):
            array = np.asarray(array)
            np.testing.assert_array_equal(np.asarray(tensor), array)
            break
        same(tensor, np.asarray(array))
    tensor.release()


def test_each_view_is_a_hold_of_its_own():
    array = np.arange(12.0).reshape(3, 4)
    tensor = dlw.from_dlpack(array)
    view = tensor[1:, ::2]
    deeper = view.permute_dims((1, 0))
    tensor.release()
    view.release()
    np.testing.assert_array_equal(np.asarray(deeper), array[1:, ::2].T)
    np.asarray(deeper)[0, 0] = 70
    assert array[1, 0] == 70
    deeper.release()
    assert dlw.live_tensors() == 0


def test_views_keep_what_is_known_of_the_memory():
    array = np.arange(6.0)
    array.flags.writeable = False
    with dlw.from_dlpack(array) as tensor, tensor[::2] as view:
        assert view.read_only
        assert view.dtype == "float64"
    packed = dlw.empty((2, 8), "uint4")
    assert packed[1].nbytes == 4
    assert not packed[0].padded


def test_views_of_packed_elements_begin_with_a_byte():
    with dlw.empty(8, "uint4") as tensor:
        np.asarray(_core._raw(tensor)[0])[:] = [0x10, 0x32, 0x54, 0x76]
        for view, expected in [
            (tensor[2:6], [2, 3, 4, 5]),
            (tensor[::2], [0, 2, 4, 6]),
        ]:
            assert view.numpy().view(np.uint8).tolist() == expected
        with pytest.raises(BufferError, match="begins within a byte"):
            tensor[1:]


def test_views_of_webgpu_tensors_are_metadata():
    producer = Forged(device_type=15, data=7, byte_offset=256)
    tensor = dlw.from_dlpack(producer)
    view = tensor[1, ::2]
    assert (view.shape, view.strides, view.byte_offset) == ((2,), (2,), 256 + 12)
    assert view.permute_dims((0,)).device == (15, 0)
    assert tensor.reshape(6).byte_offset == 256
    tensor.release()
    del view
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize(
    "index", [(0, 0, 0), 5, -5, (0, -5), (..., ...), (0, ..., 0, 0)]
)
def test_indices_out_of_range(index):
    with dlw.empty((4, 4)) as tensor, pytest.raises(IndexError):
        tensor[index]


@pytest.mark.parametrize(
    "index",
    [
        1.5,
        "a",
        [0, 1],
        np.array([0, 1]),
        True,
        np.True_,
        np.array(True),
        (0, [1]),
        b"a",
    ],
)
def test_indices_that_copy_name_numpy(index):
    with (
        dlw.empty((4, 4)) as tensor,
        pytest.raises(TypeError) as caught,
    ):
        tensor[index]
    item = index[1] if isinstance(index, tuple) else index
    assert str(caught.value) == (
        "a Tensor is indexed by ints, slices, ... and None, which give views, not by "
        f"{type(item).__name__}: for a copy use t.numpy()[...]"
    )


@pytest.mark.parametrize("shape", [5, (2, 3), (-1, -1), (-2, -2), (3, -1), (0, -1)])
def test_shapes_of_another_size(shape):
    with dlw.empty((2, 2)) as tensor, pytest.raises(ValueError, match="4 elements"):
        tensor.reshape(shape)


@pytest.mark.parametrize("shape", [1.5, "22", (2.0, 2), None, [[2], [2]]])
def test_shapes_that_are_none(shape):
    with (
        dlw.empty((2, 2)) as tensor,
        pytest.raises(TypeError, match="shape must be an int or a tuple of ints"),
    ):
        tensor.reshape(shape)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (-3, 0), 0, ()])
def test_axes_that_are_no_permutation(axes):
    with dlw.empty((2, 2)) as tensor, pytest.raises(ValueError, match="permutation"):
        tensor.permute_dims(axes)


VALID = ((2, 3), (3, 1), 0)
BAD = [
    ((2, 3), (3, 1), 1),
    ((2, 3), (3, 1), -1),
    ((7,), (1,), 0),
    ((2,), (6,), 0),
    ((2,), (-1,), 0),
    ((2,), (2**62,), 0),
    ((2**40, 2**40), (0, 0), 0),
    ((1,), (1,), 2**62),
    ((1,), (1,), -(2**63)),
    ((-1,), (1,), 0),
    ((1,) * 65, (1,) * 65, 0),
]


@pytest.mark.parametrize("view", BAD, ids=str)
def test_the_core_lets_no_view_out_of_its_tensor(view):
    with dlw.from_dlpack(np.arange(6.0).reshape(2, 3)) as tensor:
        same(_core._view(tensor, *VALID), np.asarray(tensor))
        with pytest.raises(BufferError):
            _core._view(tensor, *view)
        with pytest.raises(ValueError, match="strides"):
            _core._view(tensor, (2,), (1, 1), 0)


@pytest.mark.parametrize("step", [1, -1, 2, -3])
def test_a_view_ends_with_the_byte_its_tensor_ends_with(step):
    """Whatever way the tensor and the view go, and on a GPU as in memory."""
    memory = np.arange(40, dtype=np.uint8)
    array = memory[10:30][::step]
    count = array.size
    start = 0 if step > 0 else (count - 1) * step
    length = (count - 1) * abs(step) + 1
    on_gpu = Forged(
        device_type=15, data=7, code=1, bits=8, ndim=1, byte_offset=100,
        shape=(count,), strides=(step,),
    )  # fmt: skip
    with dlw.from_dlpack(array) as here, dlw.from_dlpack(on_gpu) as there:
        for tensor in (here, there):
            for way in (1, -1):
                first = start if way == 1 else start + length - 1
                whole = _core._view(tensor, (length,), (way,), first)
                for offset, extent in [(-1, length), (1, length), (0, length + 1)]:
                    with pytest.raises(BufferError, match="beyond its tensor"):
                        _core._view(tensor, (extent,), (way,), first + offset)
                if tensor is here:
                    everything = np.asarray(whole)[::way]
                    least = 10 if step > 0 else 30 - length
                    assert (
                        everything.tolist() == memory[least : least + length].tolist()
                    )
                else:
                    assert whole.byte_offset == 100 + first
                whole.release()


def test_a_view_of_packed_elements_ends_with_the_last_byte():
    with dlw.empty(16, "uint4") as tensor:
        assert _core._view(tensor, (16,), (1,), 0).nbytes == 8
        for extent, offset in [(17, 0), (15, 2), (16, -2), (16, 2)]:
            with pytest.raises(BufferError, match="beyond its tensor"):
                _core._view(tensor, (extent,), (1,), offset)
        with pytest.raises(BufferError, match="beyond its tensor"):
            _core._view(tensor, (1,), (1,), 2**61)  # in bits beyond 64 bits


def test_views_without_elements_may_begin_anywhere():
    with dlw.empty((2, 3)) as tensor:
        assert _core._view(tensor, (0, 3), (3, 1), 10**9).shape == (0, 3)
        assert tensor[5:].shape == (0, 3)
    with dlw.empty((0, 3)) as nothing:
        assert nothing[:, 1].shape == (0,)
        assert nothing.reshape((3, 0, 2)).shape == (3, 0, 2)
        with pytest.raises(BufferError):
            _core._view(nothing, (1,), (1,), 0)


def test_ints_of_any_size_are_indices_and_extents():
    """What no int64 holds is beyond everything, as in NumPy."""
    array = np.arange(6)
    far = 2**70
    with dlw.from_dlpack(array) as tensor:
        for key in (slice(None, None, far), slice(-far, far), slice(far, None, -far)):
            same(tensor[key], array[key])
        assert tensor[:0].reshape((0, 5)).shape == (0, 5)
        with pytest.raises(BufferError, match="address space"):
            tensor[:0].reshape((0, far))
        with pytest.raises(BufferError, match="beyond its tensor"):
            _core._view(tensor, (2,), (-far,), 0)


def test_a_tensor_released_by_an_index_of_a_view_is_refused():
    """Not used: its memory is gone by then."""

    class Releases:
        def __index__(self):
            tensor.release()
            return 1

    for dims in (((Releases(),), (1,)), ((1,), (Releases(),))):
        tensor = dlw.empty(3)
        with pytest.raises(dlw.ReleasedError):
            _core._view(tensor, *dims, 0)
    tensor = dlw.empty(3)
    with pytest.raises(dlw.ReleasedError):
        tensor[Releases()]


@pytest.mark.parametrize("shape", [(2, 0, 3), (0,), (3, 0), (0, 4, 5), (1, 0)])
def test_reshaped_tensors_without_elements_are_contiguous_as_numpys(shape):
    with dlw.empty((0, 7)) as tensor, tensor.reshape(shape) as view:
        expected = np.empty((0, 7), "f4").reshape(shape).strides
        assert [4 * stride for stride in view.strides] == list(expected)
