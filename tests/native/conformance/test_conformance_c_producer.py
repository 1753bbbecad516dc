"""Rules 36 to 61: `__dlpack__` and `__dlpack_device__` of our tensors."""

import numpy as np
import pytest
from forge import (
    IS_COPIED,
    READ_ONLY,
    SUBBYTE_PADDED,
    Forged,
    get_name,
    versioned,
)

import dlpack_web as dlw
from dlpack_web._backends import default


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


@pytest.fixture
def on_gpu():
    """To C a WebGPU tensor is a handle: one that no GPU knows will do."""
    with dlw.from_dlpack(Forged(device_type=15, device_id=3, data=0x1234)) as tensor:
        yield tensor


def export(tensor, **keywords):
    return versioned(tensor.__dlpack__(max_version=(1, 0), **keywords))


def test_rule_036_keywords_only(tensor):
    with pytest.raises(TypeError, match="keyword arguments only"):
        tensor.__dlpack__(None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'version'"):
        tensor.__dlpack__(version=(1, 0))


@pytest.mark.parametrize("given", [1, [1, 0], (1,), (1, 0, 0), ("1", 0), "1.0"])
def test_rule_037_max_version_is_a_pair(tensor, given):
    with pytest.raises(TypeError, match="max_version must be None or a tuple of two"):
        tensor.__dlpack__(max_version=given)


@pytest.mark.parametrize(
    "keywords", [{}, {"max_version": None}, {"max_version": (0, 8)}]
)
def test_rule_038_legacy_without_max_version(tensor, keywords):
    assert get_name(tensor.__dlpack__(**keywords)) == b"dltensor"


@pytest.mark.parametrize("max_version", [(1, 0), (1, 3), (1, 99), (2, 0), (100, 3)])
def test_rule_001_039_040_versioned_at_our_own_version(tensor, max_version):
    capsule = tensor.__dlpack__(max_version=max_version)
    assert get_name(capsule) == b"dltensor_versioned"
    struct = versioned(capsule)
    assert (struct.major, struct.minor, struct.flags) == (1, 3, 0)


def test_rule_041_read_only_cannot_be_legacy(frozen):
    with pytest.raises(BufferError, match=r"read-only.*max_version=\(1, 0\)"):
        frozen.__dlpack__()


def test_rule_041_padded_elements_cannot_be_legacy():
    """A legacy consumer would take them for packed ones."""
    with dlw.from_dlpack(Forged(code=0, bits=4, flags=SUBBYTE_PADDED)) as padded:
        for copy in (None, True):
            with pytest.raises(BufferError, match="padded sub-byte"):
                padded.__dlpack__(copy=copy)


def test_rule_042_legacy_copies_are_allowed(frozen):
    assert get_name(frozen.__dlpack__(copy=True)) == b"dltensor"


@pytest.mark.parametrize("stream", [0, 1, -1, 2, "s"])
def test_rule_043_044_stream_must_be_none(tensor, on_gpu, stream):
    for each, device in ((tensor, None), (tensor, (1, 0)), (on_gpu, None)):
        with pytest.raises(ValueError, match="stream must be None"):
            each.__dlpack__(stream=stream, dl_device=device)
    assert get_name(tensor.__dlpack__(stream=None)) == b"dltensor"


@pytest.mark.parametrize("dl_device", [None, (1, 0), dlw.Device(1, 0)])
@pytest.mark.parametrize("copy", [None, False])
def test_rule_045_050_051_053_exports_share_and_say_so(tensor, dl_device, copy):
    struct = export(tensor, dl_device=dl_device, copy=copy)
    assert struct.flags == 0
    assert struct.dl_tensor.data == tensor.numpy().ctypes.data


def test_rule_046_cpu_of_a_gpu_tensor_is_offered_or_named(on_gpu, monkeypatch):
    """Where Python may block it is read back (tests/browser/cases/py/gpu_cases.py)."""
    monkeypatch.setattr(default(), "can_block", lambda: False)
    with pytest.raises(BufferError, match=r"await t\.to_host"):
        on_gpu.__dlpack__(dl_device=(1, 0))


@pytest.mark.parametrize("dl_device", [(15, 0), (2, 0), (3, 0), (7, 0)])
def test_rule_047_056_other_devices_are_refused(tensor, dl_device):
    with pytest.raises(BufferError, match="only the tensor's own device"):
        tensor.__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("dl_device", ["cpu", 1, (1,), [1, 0], ("1", 0)])
def test_rule_047_dl_device_is_a_pair(tensor, dl_device):
    with pytest.raises(
        TypeError, match="dl_device must be None or a tuple of two ints"
    ):
        tensor.__dlpack__(dl_device=dl_device)


def test_rule_048_another_device_without_a_copy_is_refused(on_gpu):
    with pytest.raises(dlw.CopyError, match="copies it"):
        on_gpu.__dlpack__(dl_device=(1, 0), copy=False)


def test_rule_049_copy_true_copies(tensor):
    struct = export(tensor, copy=True)
    assert struct.flags == IS_COPIED
    assert struct.dl_tensor.data != tensor.numpy().ctypes.data
    tensor.numpy()[0, 0] = 99
    with dlw.from_dlpack(tensor.__dlpack__(max_version=(1, 0), copy=True)) as copy:
        tensor.numpy()[0, 0] = 7
        assert copy.numpy()[0, 0] == 99


def test_rule_049_copy_true_never_aliases_on_a_gpu(on_gpu):
    with pytest.raises(BufferError, match="copy=True is supported for CPU"):
        on_gpu.__dlpack__(copy=True)


def test_rule_053_a_copy_of_somebody_else_is_not_ours():
    assert export(dlw.from_dlpack(Forged(flags=IS_COPIED))).flags == 0


@pytest.mark.parametrize("copy", [1, 0, "yes", np.array(True), np.True_])
def test_rule_052_copy_is_a_bool(tensor, copy):
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        tensor.__dlpack__(copy=copy)


def test_rule_054_read_only_memory_is_flagged(frozen):
    assert export(frozen).flags == READ_ONLY
    assert export(dlw.from_buffer(b"abc")).flags == READ_ONLY
    broadcast = dlw.from_dlpack(np.broadcast_to(np.arange(3), (2, 3)))
    assert export(broadcast).flags == READ_ONLY
    assert export(dlw.from_buffer(bytearray(3))).flags == 0


def test_rule_055_copies_are_writable(frozen):
    assert export(frozen, copy=True).flags == IS_COPIED
    with dlw.from_dlpack(frozen, copy=True) as copy:
        copy.numpy()[0] = 5


@pytest.mark.parametrize(
    "hold",
    [dlw.from_buffer, lambda x: dlw.from_buffer(x).__dlpack__(max_version=(1, 0))],
    ids=["Tensor", "capsule"],
)
def test_rule_057_memory_stays_while_a_managed_tensor_lives(hold):
    data = bytearray(4)
    held = hold(data)
    with pytest.raises(BufferError):
        data.append(1)  # would move it
    del held
    data.append(1)


def test_rule_058_device_is_a_pair_of_ints(tensor, on_gpu):
    assert tensor.__dlpack_device__() == (1, 0)
    assert on_gpu.__dlpack_device__() == (15, 3)
    assert [type(part) for part in tensor.__dlpack_device__()] == [int, int]
    with pytest.raises(TypeError):
        tensor.__dlpack_device__(1)
    assert tensor.device == dlw.Device(dlw.DLDeviceType.kDLCPU, 0)
    assert (str(tensor.device), str(on_gpu.device)) == ("cpu", "webgpu:3")


def test_rule_060_device_need_not_be_asked_first():
    fresh = dlw.from_dlpack(np.arange(3))
    assert np.from_dlpack(fresh).tolist() == [0, 1, 2]  # NumPy does not ask


def test_rule_061_083_re_exports_keep_the_device(on_gpu):
    again = dlw.from_dlpack(dlw.from_dlpack(on_gpu))
    assert again.__dlpack_device__() == (15, 3)
    struct = export(again).dl_tensor
    assert (struct.device_type, struct.device_id) == (15, 3)


@pytest.mark.parametrize("beyond", [2**31, 2**32, 2**40, 2**100])
def test_rule_037_numbers_beyond_32_bits_are_not_cut(tensor, beyond):
    """A version of 2**32 is not 0, and 2**32 + 1 not the CPU."""
    capsule = tensor.__dlpack__(max_version=(beyond, 0))
    assert get_name(capsule) == b"dltensor_versioned"
    assert get_name(tensor.__dlpack__(max_version=(-beyond, 0))) == b"dltensor"
    for device in ((1 + beyond, 0), (1 - beyond, 0)):
        with pytest.raises(BufferError, match="cannot export to device"):
            tensor.__dlpack__(dl_device=device)
