"""tinygrad on the GPU of a page: in a process of its own (tools/make/suites.mk), since tinygrad has one device."""

import pytest
from fake_page import end_all, joined

dlwt = pytest.importorskip("dlpack_web_tinygrad")


def test_install_takes_a_page():
    """tinygrad's limits are the page's, and its memory is there."""
    pytest.importorskip("tinygrad.tensor")
    host, _, _ = joined()
    limits = vars(host.device.gpu.limits)
    sizes = {f"maxComputeWorkgroupSize{axis}": 64 for axis in "XYZ"}
    limits |= sizes | dict.fromkeys(
        (
            "maxComputeInvocationsPerWorkgroup",
            "maxComputeWorkgroupStorageSize",
            "maxStorageBuffersPerShaderStage",
        ),
        128,
    )
    assert dlwt.install(host.device) == host.device
    from tinygrad import Tensor

    with dlwt.to_dlpack(Tensor([1.0, 2.0], device="WEBGPU").realize()) as tensor:
        assert tensor.device == host.device
    dlwt._device._found.infinity.release()  # else until tinygrad gets another device
    end_all()
