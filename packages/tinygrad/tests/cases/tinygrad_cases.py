"""install() of dlpack_web_tinygrad, devices that are lost, kernels, examples."""

import re
from importlib import metadata, util
from types import SimpleNamespace

import numpy as np
import pytest
from docstring_cases import docstrings, is_as_said, said
from gpu_world import destroy
from tinygrad import Device, Tensor
from tinygrad_world import held, installed, moved, upload  # noqa: F401

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt
from dlpack_web._backends import default
from dlpack_web_tinygrad import _device
from dlpack_web_tinygrad._device import in_use, place

pytestmark = pytest.mark.usefixtures("installed")


# --- install -----------------------------------------------------------------------------


def test_install_again_changes_nothing():
    opened = Device["WEBGPU"]
    assert dlwt.install() == in_use()
    assert Device["WEBGPU"] is opened
    assert Device.DEFAULT == "WEBGPU"
    assert dlwt.install(in_use()) == in_use()


def test_install_refuses_the_cpu():
    with pytest.raises(BufferError, match="needs no install"):
        dlwt.install("cpu")


@pytest.mark.parametrize("version", ["0.13.0", "0.15.0", "1.0", "0.9.2"])
def test_other_versions_are_refused(version, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(
        ImportError, match=rf"{version} is installed; supported is tinygrad>=0.14"
    ):
        dlwt.install()


def test_without_tinygrad_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dlpack_web_tinygrad.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install 'tinygrad"):
        dlwt.install()
    assert util.find_spec("tinygrad") is not None


def test_tinygrads_own_device_is_not_replaced_once_it_is_open(monkeypatch):
    monkeypatch.setattr(_device, "WebGpuDevice", type("Another", (), {}))
    with pytest.raises(BufferError, match="has opened its own WEBGPU"):
        dlwt.install()


def test_there_is_one_device():
    with pytest.raises(BufferError, match="one device, WEBGPU"):
        Tensor([1.0], device="WEBGPU:1").realize()


async def test_a_lost_device():
    t = (Tensor([1.0, 2.0]) + 1).realize()
    Tensor.rand(2).realize()  # the seed is on the device
    await destroy(in_use())
    for _ in range(3):  # a browser reports it a little later
        await dlw.to_host()
    with pytest.raises((dlw.DeviceLostError, BufferError)):
        await dlwt.to_host(t)
    new = dlwt.install(await dlw.webgpu.request_device())
    assert new == in_use()
    again = Tensor([1.0, 2.0]) + 1
    assert (await dlwt.to_host(again)).tolist() == [2, 3]
    assert (await dlwt.to_host(Tensor.rand(3))).shape == (3,)
    with pytest.raises(BufferError, match="must share a device"):
        await dlwt.to_host(t + 1)


# --- kernels -----------------------------------------------------------------------------


def _shader(source, name):
    return _device.Shader(
        Device["WEBGPU"], SimpleNamespace(name=name, lib=source.encode())
    )


def test_kernels_declare_what_they_only_read():
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([True, False]).realize()
    sources = []
    with pytest.MonkeyPatch.context() as patch:
        kernel = _device.Kernel
        patch.setattr(
            _device,
            "Kernel",
            lambda wgsl, *more, **named: (
                sources.append(wgsl) or kernel(wgsl, *more, **named)
            ),
        )
        found = (b.where(a, a * 3) + 0.125).tolist()
    assert found == [1.125, 6.125]
    found = re.findall(r"var<storage,(\w+)>", sources[-1])
    assert sorted(found) == ["read", "read", "read_write"]
    assert "atomic" not in sources[-1]


def test_read_only_tensors_may_be_read():
    with upload([1, 2]) as x:
        capsule_of = SimpleNamespace(
            __dlpack__=lambda **options: x.__dlpack__(**options),
            __dlpack_device__=x.__dlpack_device__,
        )
        t = dlwt.from_dlpack(capsule_of)
        assert (t + 1).tolist() == [2, 3]


def test_the_same_source_is_compiled_once():
    source = """@group(0) @binding(0) var<uniform> INFINITY: f32;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn same() { x[0] += INFINITY; }"""
    one, other = _shader(source, "same"), _shader(source, "same")
    assert one.kernel is other.kernel
    with upload([1]) as x:
        one(x)
        assert np.asarray(x).tolist() == [np.inf]


def test_limits_are_named(monkeypatch):
    here = place()
    one = (Tensor([1.0]) + 5).contiguous()
    monkeypatch.setitem(here._most, "maxStorageBuffersPerShaderStage", 0)
    with pytest.raises(
        BufferError,
        match=r"tinygrad's kernel '\w+' has 2 buffers, webgpu:\d+ allows 0 \(maxStorageBuffers",
    ):
        one.realize()
    monkeypatch.undo()
    assert (Tensor([1.0]) + 5).item() == 6


def test_a_device_has_the_limits_that_shaders_need():
    renderer = Device["WEBGPU"].renderer
    assert renderer.local_max[0] == default().limit(
        in_use().id, "maxComputeWorkgroupSizeX"
    )
    assert renderer.shared_max == default().limit(
        in_use().id, "maxComputeWorkgroupStorageSize"
    )


@pytest.mark.parametrize("timestamps", [True, False])
def test_kernels_are_timed(timestamps, monkeypatch):
    if not timestamps:
        monkeypatch.setattr(default(), "has_feature", lambda device, name: False)
    here = place()
    seen = []
    with upload([1]) as x:
        shader = _shader(
            """@group(0) @binding(0) var<uniform> INFINITY: f32;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn timed() { x[0] = min(INFINITY, 4.0); }""",
            "timed",
        )
        seen.append(shader(x, wait=True))
        assert np.asarray(x).tolist() == [4]
    assert 0 <= seen[0] < 60
    monkeypatch.setattr(default(), "can_block", lambda: False)
    with upload([1]) as x:
        assert here.time(shader.kernel, (here.infinity, x), (1, 1, 1)) is None


# --- examples ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", dlwt.__all__)
async def test_example_is_true(name):
    names = {"np": np, "dlw": dlw}
    for example in docstrings.examples(getattr(dlwt, name).__doc__):
        output, error = await said(example.source, names)
        assert is_as_said(example, output, error), f"{example.source}{error or output}"
    assert "dlwt" in names


async def test_example_of_the_module_is_true():
    names = {"np": np, "dlw": dlw}
    for example in docstrings.examples(dlwt.__doc__):
        output, error = await said(example.source, names)
        assert is_as_said(example, output, error), f"{example.source}{error or output}"
