"""Devices: their names, what they equal, and what is none."""

import numpy as np
import pytest

import dlpack_web as dlw

cpu, gpu = dlw.Device(1, 0), dlw.Device(15, 0)


@pytest.mark.parametrize(
    ("device", "name", "equal"),
    [
        (cpu, "cpu", True),
        (cpu, "webgpu", False),
        (cpu, "CPU", False),
        (cpu, "", False),
        (cpu, "gpu", False),
        (gpu, "webgpu", True),
        (gpu, "webgpu:0", True),
        (gpu, "webgpu:1", False),
        (gpu, "cpu", False),
        (gpu, "web", False),
        (gpu, "webgpu:", False),
        (dlw.Device(15, 1), "webgpu", True),
        (dlw.Device(15, 1), "webgpu:0", False),
        (dlw.Device(15, 1), "webgpu:1", True),
        (dlw.Device(3, 0), "cpu", False),
        (dlw.Device(99, 0), "cpu", False),
    ],
    ids=str,
)
def test_a_device_equals_its_name(device, name, equal):
    assert (device == name) is equal
    assert (name == device) is equal
    assert (device != name) is not equal
    assert (name != device) is not equal
    assert (device in (name,)) is equal


def test_a_device_equals_its_pair_and_nothing_else():
    for one, other in (cpu, (1, 0)), ((1, 0), cpu), (cpu, dlw.Device(1, 0)):
        assert (one == other, one != other) == (True, False)
    for other in (gpu, None, 1, [1, 0], (1,), b"cpu"):
        assert (cpu == other, cpu != other) == (False, True)


def test_a_device_is_a_key_by_its_pair():
    """What is equal need not be the same key: hashes of names are others, as NumPy's are."""
    assert {cpu: "host"}[1, 0] == "host"
    assert {(1, 0): "host"}[cpu] == "host"
    assert "cpu" not in {cpu}
    assert len({cpu, dlw.Device(1, 0), gpu, "cpu"}) == 3
    assert cpu < gpu


def test_a_device_shows_its_name():
    assert (repr(cpu), repr(gpu)) == ("<Device cpu>", "<Device webgpu:0>")
    assert f"{dlw.Device(1, 2)} {dlw.Device(2, 1)}" == "cpu:2 cuda:1"
    assert str(dlw.Device(99, 1)) == "type 99:1"


@pytest.mark.parametrize("name", ["gpu", "cuda", "webgpu:x", "webgpu:-1", "", "cpu:0"])
def test_an_unknown_name_is_a_value_error(name):
    for use in (
        lambda: dlw.empty(3, device=name),
        lambda: dlw.from_dlpack(np.zeros(3), device=name),
        lambda: dlw.from_buffer(b"abc").to_device(name),
    ):
        with pytest.raises(ValueError, match=r"unknown device.*'webgpu:<index>'"):
            use()


@pytest.mark.parametrize("device", [(2, 0), dlw.Device(2, 0), (15, -1), (99, 0)])
def test_a_device_that_cannot_be_used_is_a_buffer_error(device):
    with pytest.raises(BufferError, match=r"unknown device.*'webgpu:<index>'"):
        dlw.empty(3, device=device)


@pytest.mark.parametrize("kind", dlw.DLDeviceType, ids=lambda kind: kind.name)
def test_memory_of_the_host_is_the_cpus(kind):
    """Such as CUDA's pinned memory, which the CPU reads as its own."""
    device = dlw.Device(kind, 1)
    if device.is_host:
        with dlw.empty(3, device=device) as tensor:
            assert tensor.device == cpu
    elif device.type != gpu.type:
        with pytest.raises(BufferError, match="unknown device"):
            dlw.empty(3, device=device)


@pytest.mark.parametrize("device", [3, b"cpu", [1, 0], (1, 0, 0), object()])
def test_what_is_no_device_at_all(device):
    with pytest.raises(TypeError, match="device must be a str or a Device, not "):
        dlw.empty(3, device=device)
