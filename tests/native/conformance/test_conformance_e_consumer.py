"""Rules 78 to 92: `from_dlpack`."""

import contextlib
import ctypes
import gc

import numpy as np
import pytest
from conftest import arrays_of, needs_new_numpy
from forge import IS_COPIED, READ_ONLY, Forged, Legacy, Recorder, Versioned

import dlpack_web as dlw
from dlpack_web import _core


def test_rule_078_one_positional_argument_and_keywords():
    with pytest.raises(TypeError, match="exactly one positional"):
        dlw.from_dlpack()
    with pytest.raises(TypeError, match="exactly one positional"):
        dlw.from_dlpack(np.arange(3), None)
    with pytest.raises(TypeError, match="exactly one positional"):
        dlw.from_dlpack(x=np.arange(3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'stream'"):
        dlw.from_dlpack(np.arange(3), stream=None)


@needs_new_numpy
def test_rule_080_our_version_is_asked_for():
    producer = Recorder(np.arange(3))
    dlw.from_dlpack(producer)
    assert producer.calls == [{"max_version": (1, 3)}]


def test_rule_080_old_producers_are_called_again_without_keywords():
    array = np.arange(3)
    producer = Recorder(array, knows=())
    tensor = dlw.from_dlpack(producer)
    assert producer.calls == [{"max_version": (1, 3)}, {}]
    assert np.shares_memory(tensor.numpy(), array)


def test_rule_080_old_producers_and_copy_false_are_not_guessed():
    producer = Recorder(np.arange(3), knows=())
    with pytest.raises(TypeError):
        dlw.from_dlpack(producer, copy=False)
    assert len(producer.calls) == 1


def test_rule_080_nothing_is_lost_where_the_consumer_can_do_it():
    """A copy is made here, and the data of an old producer is on the CPU."""
    array = np.arange(3)
    tensor = dlw.from_dlpack(Recorder(array, knows=()), copy=True)
    assert not np.shares_memory(tensor.numpy(), array)
    tensor = dlw.from_dlpack(Recorder(array, knows=()), device="cpu")
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_rule_081_buffer_errors_are_not_retried():
    class Refusing:
        calls = 0

        def __dlpack__(self, **keywords):
            self.calls += 1
            raise BufferError("no")

    producer = Refusing()
    with pytest.raises(BufferError, match="no"):
        dlw.from_dlpack(producer)
    assert producer.calls == 1


@pytest.mark.parametrize("flavour", [Versioned, Legacy])
def test_rule_082_both_flavours_are_accepted(flavour):
    producer = Forged(flavour=flavour)
    with dlw.from_dlpack(producer) as tensor:
        assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert producer.deleted == 1
    producer = Forged(flavour=flavour)
    with dlw.from_dlpack(producer.__dlpack__(), copy=True):
        assert producer.deleted == 1, "it is let go at once"


@pytest.mark.parametrize("returned", [None, 5, "capsule", object()])
def test_rule_082_anything_else_is_refused(returned):
    class Garbage:
        def __dlpack__(self, **keywords):
            return returned

    with pytest.raises(TypeError, match="must return a capsule"):
        dlw.from_dlpack(Garbage())


@pytest.mark.parametrize("name", [b"dltensor_other", b"used_something", b"x"])
def test_rule_082_other_capsules_are_refused(name):
    with pytest.raises(TypeError, match="must return a capsule named"):
        dlw.from_dlpack(Forged(name=name))


@pytest.mark.parametrize("device", ["cpu", (1, 0), dlw.Device(1, 0)])
def test_rule_084_the_producer_is_asked_for_the_cpu(device):
    array = np.arange(3)
    producer = Recorder(array)
    tensor = dlw.from_dlpack(producer, device=device)
    assert producer.calls[0]["dl_device"] == (1, 0)
    assert np.shares_memory(tensor.numpy(), array)


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("given", [(1, 4), (3, 0), (13, 2), (1, 0)])
def test_rule_084_the_result_is_on_the_cpu_whatever_the_producer_says(given, copy):
    """One that ignores dl_device gives host memory by another name."""
    producer = Forged(device_type=given[0], device_id=given[1])
    with dlw.from_dlpack(producer, device="cpu", copy=copy) as tensor:
        assert tensor.device == (1, 0) == tensor.__dlpack_device__()
        shares = tensor.numpy().ctypes.data == ctypes.addressof(producer.memory)
        assert shares == (copy is not True)
    with dlw.from_dlpack(Forged(device_type=given[0], device_id=given[1])) as tensor:
        assert tensor.device == given
    producer = Forged(device_type=given[0], device_id=given[1])
    with dlw.from_dlpack(producer, dtype="float16") as tensor:
        assert (tensor.device, tensor.dtype) == ((1, 0), "float16")


class OldArray(np.ndarray):
    """Of NumPy before 2.1, whose `__dlpack__` has no keyword but `stream`."""

    copies = False

    def __dlpack__(self, stream=None):
        array = np.array(self) if self.copies else np.asarray(self)
        return dlw.from_dlpack(array).__dlpack__()


class OldCopying(OldArray):
    copies = True


@pytest.mark.parametrize("device", [None, "cpu", (1, 0)])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (), (0, 3)])
def test_rule_080_an_old_producer_shares_what_its_buffer_has(shape, device):
    array = np.ones(shape, "f8").view(OldArray)
    for x in (array, array.T, array[..., ::-1] if shape else array):
        with dlw.from_dlpack(x, copy=False, device=device) as tensor:
            assert np.shares_memory(tensor.numpy(), x) == (x.size > 0)
            assert not tensor.read_only
        with dlw.from_dlpack(x, copy=True, device=device) as tensor:
            assert not np.shares_memory(tensor.numpy(), x)


def test_rule_080_an_old_producer_that_copies_is_found_out():
    array = np.ones(3).view(OldCopying)
    before = dlw.live_tensors()
    with pytest.raises(dlw.CopyError, match=r"DLPack before 1\.0"):
        dlw.from_dlpack(array, copy=False)
    with pytest.raises(TypeError, match="unexpected keyword"):  # one without a buffer
        dlw.from_dlpack(Recorder(np.ones(3), ()), copy=False)
    gc.collect()
    assert dlw.live_tensors() == before
    with dlw.from_dlpack(array) as tensor:
        assert tensor.numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("code", ["?", "i1", "u4", "f2", "f8", "c16"])
def test_rule_080_ndarrays_are_shared_whatever_numpy_there_is(code):
    array = np.ones((2, 3), code)
    for x in (array, array.T, array[:, ::-1], array[:0], array.view(OldArray)):
        for options in ({}, {"device": "cpu"}, {"dtype": array.dtype.name}):
            with dlw.from_dlpack(x, copy=False, **options) as tensor:
                assert np.shares_memory(tensor.numpy(), x) == (x.size > 0)


def test_rule_084_the_producer_is_not_asked_for_another_device():
    """To a GPU the consumer moves, in a browser; NumPy could only refuse."""
    producer = Recorder(np.arange(3))
    with contextlib.suppress(BufferError):  # no browser, or no device yet
        dlw.from_dlpack(producer, device="webgpu").release()
    assert all(call.get("dl_device") is None for call in producer.calls)


@pytest.mark.parametrize("device", ["gpu", "webgpu:", "webgpu:-1", "cpu:1", (2, 0)])
def test_rule_084_unknown_devices_are_refused(device):
    wrong = ValueError if isinstance(device, str) else BufferError
    with pytest.raises(wrong, match="'cpu', 'webgpu' and 'webgpu:<index>'"):
        dlw.from_dlpack(np.arange(3), device=device)
    with pytest.raises(TypeError, match="device must be a str or a Device"):
        dlw.from_dlpack(np.arange(3), device=1.5)


def test_rule_085_the_producer_is_asked_for_a_copy():
    asked = Recorder(np.arange(3))
    dlw.from_dlpack(asked, copy=True)
    assert asked.calls[0]["copy"] is True


@pytest.mark.parametrize("flags", [IS_COPIED, 0])
def test_rule_085_a_producers_unaligned_copy_is_copied(flags):
    """Where WebGPU and typed arrays need it to be."""
    producer = Forged(flags=flags, byte_offset=2, ndim=1, shape=(2,), strides=(2,))
    bytes_ = np.frombuffer(producer.memory, np.uint8).copy()
    with dlw.from_dlpack(producer, copy=True) as tensor:
        assert producer.deleted == 1
        assert np.asarray(tensor).ctypes.data % 4 == 0
        expected = bytes_[[2, 3, 4, 5, 10, 11, 12, 13]]
        assert np.asarray(tensor).tobytes() == expected.tobytes()
        assert not tensor.read_only


def test_rule_085_unaligned_memory_is_shared_where_any_will_do():
    """As for uploads, which pack it: no copy is made that nobody asked for."""
    producer = Forged(byte_offset=2, ndim=1, shape=(2,), strides=(1,))
    with _core._from_dlpack_on(producer, None, None, True) as tensor:
        assert producer.deleted == 0
        assert tensor.shape == (2,)
    assert producer.deleted == 1


def test_rule_085_what_cannot_be_copied_stays_the_capsules():
    """A producer that does not copy what a GPU has; we cannot either."""
    producer = Forged(device_type=15, data=7)
    with pytest.raises(BufferError, match="host memory only"):
        dlw.from_dlpack(producer, copy=True)
    assert producer.deleted == 1


def test_rule_085_what_a_gpu_has_is_aligned_by_its_own_rules():
    """A producer's copy on a device is taken as it is: there is no address to align."""
    producer = Forged(flags=IS_COPIED, device_type=15, data=7, byte_offset=2)
    with dlw.from_dlpack(producer, copy=True) as tensor:
        assert (tensor.byte_offset, producer.deleted) == (2, 0)
    assert producer.deleted == 1


def test_rule_086_copy_error_is_both():
    assert issubclass(dlw.CopyError, BufferError)
    assert issubclass(dlw.CopyError, ValueError)
    for options in ({}, {"dtype": "float32"}):
        producer = Forged(flags=IS_COPIED)
        with pytest.raises(dlw.CopyError, match="although copy=False"):
            dlw.from_dlpack(producer, copy=False, **options)
        assert producer.deleted == 1


@pytest.mark.parametrize("copy", [1, 0, "yes"])
def test_rule_086_copy_is_a_bool(copy):
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        dlw.from_dlpack(np.arange(3), copy=copy)
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        dlw.empty(3).to_device("cpu", dtype="float16", copy=copy)


@pytest.mark.parametrize("error", [KeyError, BufferError, MemoryError, ValueError])
def test_rule_087_exceptions_of_producers_propagate(error):
    raised = error("mine")

    class Failing:
        def __dlpack__(self, **keywords):
            raise raised

    with pytest.raises(error) as caught:
        dlw.from_dlpack(Failing())
    assert caught.value is raised


def test_rule_088_read_only_is_honoured():
    with dlw.from_dlpack(Forged(flags=READ_ONLY)) as tensor:
        assert tensor.read_only
        assert not any(back.flags.writeable for back in arrays_of(tensor))
        assert memoryview(tensor).readonly


def test_rule_089_legacy_capsules_are_read_only():
    """A legacy struct cannot say whether its memory may be written."""
    assert dlw.from_dlpack(Forged(flavour=Legacy)).read_only
    assert dlw.from_dlpack(Recorder(np.arange(3), knows=())).read_only


def test_rule_091_shape_and_strides_are_our_own():
    producer = Forged()
    tensor = dlw.from_dlpack(producer)
    producer.shape[0], producer.strides[1] = 99, 99
    assert (tensor.shape, tensor.strides) == ((2, 3), (3, 1))
    tensor.release()


@pytest.mark.parametrize("others", [0, 1, 4, 5, 8, 1 << 31, 1 << 33, 1 << 63 | 1])
@pytest.mark.parametrize("copied", [0, IS_COPIED])
def test_rule_085_one_flag_alone_says_copied(copied, others):
    """Whatever the others are: a producer that ignores copy=True is not trusted, and a
    producer's copy is not copied again."""
    flags = copied | others
    producer = Forged(flags=flags)
    if copied:
        with pytest.raises(dlw.CopyError):
            dlw.from_dlpack(producer, copy=False)
    else:
        dlw.from_dlpack(producer, copy=False).release()
    for copy, shared in ((None, True), (True, bool(copied))):
        producer = Forged(flags=flags)
        with dlw.from_dlpack(producer, copy=copy) as tensor:
            assert producer.deleted == (0 if shared else 1)
            assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
            assert tensor.read_only == (shared and bool(flags & READ_ONLY))
            address = np.asarray(tensor).ctypes.data
            assert (address == ctypes.addressof(producer.memory)) == shared
        assert producer.deleted == 1
