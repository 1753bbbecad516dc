"""`__dlpack__`, `__dlpack_device__` and from_dlpack: keywords and their meaning."""

import numpy as np
import pytest
from forge import IS_COPIED, READ_ONLY, Forged, get_name, legacy, versioned

import dlpack_web as dlw


@pytest.fixture
def tensor():
    with dlw.from_dlpack(np.arange(6.0).reshape(2, 3)) as tensor:
        yield tensor


@pytest.fixture
def frozen():
    array = np.arange(3)
    array.flags.writeable = False
    with dlw.from_dlpack(array) as tensor:
        yield tensor


@pytest.mark.parametrize("max_version", [None, (0, 8)])
def test_capsule_is_legacy_before_1_0(tensor, max_version):
    assert get_name(tensor.__dlpack__(max_version=max_version)) == b"dltensor"
    assert get_name(tensor.__dlpack__()) == b"dltensor"


@pytest.mark.parametrize("max_version", [(1, 0), (1, 3), (1, 99), (2, 0), (100, 3)])
def test_capsule_is_versioned_from_1_0(tensor, max_version):
    capsule = tensor.__dlpack__(max_version=max_version)
    assert get_name(capsule) == b"dltensor_versioned"
    struct = versioned(capsule)
    assert (struct.major, struct.minor, struct.flags) == (1, 3, 0)


@pytest.mark.parametrize("given", [1, [1, 0], (1,), (1, 0, 0), ("1", 0), "1.0"])
def test_max_version_must_be_a_pair(tensor, given):
    with pytest.raises(TypeError, match="max_version must be None or a tuple of two"):
        tensor.__dlpack__(max_version=given)


def test_keywords_only(tensor):
    with pytest.raises(TypeError, match="keyword arguments only"):
        tensor.__dlpack__(None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'version'"):
        tensor.__dlpack__(version=(1, 0))


@pytest.mark.parametrize("stream", [0, 1, -1])
def test_stream_must_be_none(tensor, stream):
    with pytest.raises(ValueError, match="stream must be None"):
        tensor.__dlpack__(stream=stream)


@pytest.mark.parametrize("copy", [1, 0, "yes", np.array(True)])
def test_copy_must_be_a_bool(tensor, copy):
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        tensor.__dlpack__(copy=copy)
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        dlw.from_dlpack(tensor, copy=copy)


@pytest.mark.parametrize("dl_device", [None, (1, 0), dlw.Device(1, 0)])
def test_own_device_shares(tensor, dl_device):
    struct = versioned(tensor.__dlpack__(max_version=(1, 0), dl_device=dl_device))
    assert struct.flags == 0
    assert struct.dl_tensor.data == tensor.numpy().ctypes.data


@pytest.mark.parametrize("dl_device", [(15, 0), (2, 0), (1, 1)])
def test_other_device_is_refused(tensor, dl_device):
    with pytest.raises(BufferError, match="only the tensor's own device"):
        tensor.__dlpack__(dl_device=dl_device)


def test_copy_is_flagged_and_does_not_alias(tensor):
    struct = versioned(tensor.__dlpack__(max_version=(1, 0), copy=True))
    assert struct.flags == IS_COPIED
    assert struct.dl_tensor.data != tensor.numpy().ctypes.data
    assert versioned(tensor.__dlpack__(max_version=(1, 0), copy=False)).flags == 0


def test_read_only_is_flagged(frozen):
    assert versioned(frozen.__dlpack__(max_version=(1, 0))).flags == READ_ONLY


def test_read_only_cannot_be_legacy_without_a_copy(frozen):
    with pytest.raises(BufferError, match=r"read-only.*max_version=\(1, 0\)"):
        frozen.__dlpack__()
    assert get_name(frozen.__dlpack__(copy=True)) == b"dltensor"


def test_device(tensor):
    assert tensor.__dlpack_device__() == (1, 0)
    assert tensor.device == dlw.Device(dlw.DLDeviceType.kDLCPU, 0)
    assert str(tensor.device) == "cpu"
    assert str(dlw.Device(15, 2)) == "webgpu:2"


def test_legacy_struct_has_the_tensor(tensor):
    struct = legacy(tensor.__dlpack__()).dl_tensor
    assert (struct.ndim, struct.bits, struct.shape[1]) == (2, 64, 3)
    assert struct.data == tensor.numpy().ctypes.data


class Recorder:
    """A producer that notes how it was called, and may know fewer keywords."""

    def __init__(self, array, knows=("stream", "max_version", "dl_device", "copy")):
        self.array, self.knows, self.calls = array, knows, []

    def __dlpack_device__(self):
        raise AssertionError("__dlpack__ must not depend on __dlpack_device__")

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if not set(keywords) <= set(self.knows):
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**keywords)


def test_consumer_asks_for_its_version():
    producer = Recorder(np.arange(3))
    dlw.from_dlpack(producer)
    assert producer.calls == [{"max_version": (1, 3)}]


def test_consumer_passes_copy_on():
    producer = Recorder(np.arange(3))
    dlw.from_dlpack(producer, copy=False)
    assert producer.calls[0]["copy"] is False


def test_old_producer_is_called_again_without_keywords():
    array = np.arange(3)
    producer = Recorder(array, knows=())
    tensor = dlw.from_dlpack(producer)
    assert producer.calls[-1] == {}
    assert np.shares_memory(tensor.numpy(), array)
    assert tensor.read_only  # a legacy capsule cannot say that it may be written


def test_old_producer_and_copy_true_copies_here():
    array = np.arange(3)
    tensor = dlw.from_dlpack(Recorder(array, knows=()), copy=True)
    assert not np.shares_memory(tensor.numpy(), array)
    assert not tensor.read_only


def test_old_producer_and_copy_false_is_not_guessed():
    producer = Recorder(np.arange(3), knows=())
    with pytest.raises(TypeError):
        dlw.from_dlpack(producer, copy=False)
    assert len(producer.calls) == 1


def test_old_producer_on_the_cpu_may_be_asked_for_the_cpu():
    tensor = dlw.from_dlpack(Recorder(np.arange(3), knows=()), device="cpu")
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_copy_true_is_verified():
    """A producer that ignores copy=True is not trusted."""
    producer = Forged()
    with dlw.from_dlpack(producer, copy=True) as tensor:
        assert producer.deleted == 1
        np.asarray(tensor)[0, 0] = 99
    assert producer.memory[0] == 0


def test_copy_false_is_verified():
    producer = Forged(flags=IS_COPIED)
    with pytest.raises(dlw.CopyError, match="although copy=False"):
        dlw.from_dlpack(producer, copy=False)
    assert producer.deleted == 1


def test_copied_flag_is_not_passed_on():
    tensor = dlw.from_dlpack(Forged(flags=IS_COPIED))
    assert versioned(tensor.__dlpack__(max_version=(1, 0))).flags == 0


def test_copy_error_is_both():
    assert issubclass(dlw.CopyError, BufferError)
    assert issubclass(dlw.CopyError, ValueError)


def test_producer_exceptions_propagate():
    class Failing:
        def __dlpack__(self, **keywords):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dlw.from_dlpack(Failing())


def test_no_dlpack_method_is_an_attribute_error():
    with pytest.raises(AttributeError, match="__dlpack__"):
        dlw.from_dlpack([1, 2])


def test_from_dlpack_takes_one_array():
    with pytest.raises(TypeError, match="exactly one positional"):
        dlw.from_dlpack()
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtype'"):
        dlw.from_dlpack(np.arange(3), dtype="int8")


@pytest.mark.parametrize("device", ["cpu", (1, 0), dlw.Device(1, 0)])
def test_device_cpu_of_a_cpu_array(device):
    array = np.arange(3)
    assert np.shares_memory(dlw.from_dlpack(array, device=device).numpy(), array)


@pytest.mark.parametrize("device", ["gpu", "webgpu:", "webgpu:-1", "cpu:1", (2, 0)])
def test_unknown_device_is_refused(device):
    with pytest.raises(BufferError, match="'cpu', 'webgpu' and 'webgpu:<index>'"):
        dlw.from_dlpack(np.arange(3), device=device)


def test_device_must_be_a_device():
    with pytest.raises(TypeError, match="device must be a str or a Device"):
        dlw.from_dlpack(np.arange(3), device=1.5)


def test_to_device_on_the_cpu():
    array = np.arange(3)
    tensor = dlw.from_dlpack(array)
    assert np.shares_memory(tensor.to_device("cpu").numpy(), array)
    assert not np.shares_memory(tensor.to_device("cpu", copy=True).numpy(), array)


def test_capsule_itself_can_be_consumed():
    array = np.arange(3)
    for capsule in (array.__dlpack__(), array.__dlpack__(max_version=(1, 0))):
        assert np.shares_memory(dlw.from_dlpack(capsule).numpy(), array)
        with pytest.raises(ValueError, match="consumed already"):
            dlw.from_dlpack(capsule)


def test_tensor_cannot_be_called():
    with pytest.raises(TypeError, match="from_dlpack"):
        dlw.Tensor()


def test_repr_says_what_it_is(tensor, frozen):
    assert repr(tensor) == "Tensor(shape=(2, 3), dtype='float64', device='cpu')"
    assert "read_only" in repr(frozen)
