"""Each framework's arrays as tensors, and tensors as its arrays: one memory, two names."""

import gc

import numpy as np
import pytest
from forge import Forged
from frameworks import ALL, TITLE, address, aligned

import dlpack_web as dlw

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


SHARING = [kind for kind in ALL if kind.shares]


@pytest.fixture
def asked(monkeypatch):
    """The keywords of every call of `__dlpack__` of a Tensor."""
    calls = []
    real = dlw.Tensor.__dlpack__

    def recording(self, **keywords):
        calls.append(keywords)
        return real(self, **keywords)

    monkeypatch.setattr(dlw.Tensor, "__dlpack__", recording, raising=False)
    return calls


def way(calls):
    """How a consumer came to the memory, in words."""
    if not calls:
        return "exchange API"
    (keywords,) = calls
    version = keywords.get("max_version")
    return f"`__dlpack__`, {'{}.{}'.format(*version) if version else 'before 1.0'}"


def test_their_array_is_shared(framework, note):
    array = framework.zeros((2, 3), "float32")
    has_api = hasattr(type(array), "__dlpack_c_exchange_api__")
    with dlw.from_dlpack(array) as tensor:
        assert (tensor.shape, tensor.dtype) == ((2, 3), "float32")
        assert str(tensor.device) == "cpu"
        assert address(tensor) == framework.address(array)
        assert tensor.read_only is not framework.writable
        text = f"shared ({'exchange API' if has_api else '`__dlpack__`'})"
        if tensor.read_only:
            text += ", read-only"
    note(framework, "summary", "to dlpack-web", text)


@pytest.mark.parametrize(
    "framework", [kind for kind in SHARING if kind.writable], indirect=True, ids=TITLE
)
def test_writes_to_their_array_are_seen_on_both_sides(framework):
    array = framework.zeros((2, 3), "float32")
    with dlw.from_dlpack(array) as tensor:
        seen = tensor.numpy()
        framework.write(array, 7)
        assert seen[0, 0] == 7
        seen[1, 2] = 8
        assert framework.numpy(array)[1, 2] == 8


def test_our_tensor_is_shared(framework, note, asked):
    values = aligned(VALUES)
    with dlw.from_dlpack(values) as tensor:
        array = framework.from_dlpack(tensor)
        text = f"shared ({way(asked)})"
    shared = framework.address(array) == values.ctypes.data
    assert shared is framework.shares
    np.testing.assert_array_equal(framework.numpy(array), VALUES)
    if not shared:
        text = text.replace("shared", "copied")
    note(framework, "summary", "from dlpack-web", text)


@pytest.mark.parametrize("framework", SHARING, indirect=True, ids=TITLE)
def test_writes_to_our_tensor_are_seen_on_both_sides(framework):
    values = aligned(VALUES)
    with dlw.from_dlpack(values) as tensor:
        array = framework.from_dlpack(tensor)
        tensor.numpy()[1, 2] = 8
        assert framework.numpy(array)[1, 2] == 8
        writes = framework.writable if framework.writes is None else framework.writes
        if writes:
            framework.write(array, 7)
            assert values[0, 0] == 7


@pytest.mark.parametrize("framework", SHARING, indirect=True, ids=TITLE)
@pytest.mark.parametrize("last", ["ours", "theirs", "ours again"])
def test_memory_lives_until_the_last_holder(framework, last):
    """A foreign deleter is called once, when neither side holds the memory."""
    values = aligned(VALUES)
    producer = Forged(data=values.ctypes.data)
    holders = {"ours": dlw.from_dlpack(producer)}
    holders["theirs"] = framework.from_dlpack(holders["ours"])
    holders["ours again"] = dlw.from_dlpack(holders["theirs"])
    for name in [name for name in holders if name != last]:
        del holders[name]
    assert producer.deleted == 0
    values[1, 2] = 9
    holder = holders.pop(last)
    seen = framework.numpy(holder) if last == "theirs" else holder.numpy()
    assert seen[1, 2] == 9
    del seen, holder
    if framework.lazy:
        gc.collect()
    assert producer.deleted == 1


def test_their_memory_outlives_their_array(framework):
    array = framework.zeros((2, 3), "float32")
    place = framework.address(array)
    with dlw.from_dlpack(array) as tensor:
        del array
        others = [framework.zeros((2, 3), "float32") for _ in range(8)]
        assert place not in [framework.address(other) for other in others]
        assert address(tensor) == place
        assert tensor.numpy().tolist() == [[0] * 3] * 2


def test_a_thousand_rounds_leave_nothing(framework):
    producer = Forged(data=aligned(VALUES).ctypes.data)
    tensor = dlw.from_dlpack(producer)
    live = dlw.live_tensors()
    for _ in range(1000):
        with dlw.from_dlpack(framework.from_dlpack(tensor)) as again:
            assert again.shape == (2, 3)
    del again
    if framework.lazy:
        gc.collect()
    assert dlw.live_tensors() == live
    tensor.release()
    assert producer.deleted == 1


def test_our_read_only_tensor(framework, note):
    """Kept: what they export again is read-only; ignored: it may be written."""
    values = aligned(VALUES)
    values.flags.writeable = False
    with dlw.from_dlpack(values) as tensor:
        if framework.read_only == "refused":
            with pytest.raises(framework.refusal):
                framework.from_dlpack(tensor)
        else:
            array = framework.from_dlpack(tensor)
            shared = framework.address(array) == values.ctypes.data
            assert shared is (framework.read_only != "copied")
            with dlw.from_dlpack(array) as again:
                assert again.read_only is (framework.read_only == "kept")
    note(framework, "summary", "read-only tensor", framework.read_only)


def test_copy_true_of_our_tensor(framework, note):
    values = aligned(VALUES)
    with dlw.from_dlpack(values) as tensor:
        if framework.copy == "no keyword":
            with pytest.raises(TypeError):
                framework.from_dlpack(tensor, copy=True)
        else:
            array = framework.from_dlpack(tensor, copy=True)
            aliased = framework.address(array) == values.ctypes.data
            assert aliased is (framework.copy == "aliased")
            np.testing.assert_array_equal(framework.numpy(array), VALUES)
    note(framework, "summary", "copy=True of ours", framework.copy)


def test_copy_false_of_our_tensor(framework):
    values = aligned(VALUES)
    with dlw.from_dlpack(values) as tensor:
        if framework.copy == "no keyword":
            with pytest.raises(TypeError):
                framework.from_dlpack(tensor, copy=False)
        elif not framework.shares:
            with pytest.raises(framework.refusal):
                framework.from_dlpack(tensor, copy=False)
        else:
            array = framework.from_dlpack(tensor, copy=False)
            assert framework.address(array) == values.ctypes.data


def test_copy_true_of_their_array(framework, note):
    array = framework.zeros((2, 3), "float32")
    if framework.producer_copy == "refused":
        with pytest.raises(framework.refusal):
            dlw.from_dlpack(array, copy=True)
    else:
        with dlw.from_dlpack(array, copy=True) as tensor:
            assert address(tensor) != framework.address(array)
            assert tensor.numpy().tolist() == [[0] * 3] * 2
    note(framework, "summary", "copy=True of theirs", framework.producer_copy)


def test_webgpu_tensor(framework, note):
    """A handle is no address: it is passed on as it is, or refused."""
    producer = Forged(device_type=15, device_id=3, data=0x1234, byte_offset=256)
    tensor = dlw.from_dlpack(producer)
    if framework.webgpu == "refused":
        with pytest.raises(framework.refusal):
            framework.from_dlpack(tensor)
        tensor.release()
    else:
        with dlw.from_dlpack(framework.from_dlpack(tensor)) as again:
            tensor.release()
            assert str(again.device) == "webgpu:3"
            assert again.byte_offset == 256
            assert address(again) == 0x1234 + 256
            assert producer.deleted == 0
    assert producer.deleted == 1
    note(framework, "summary", "WebGPU handle", framework.webgpu)
