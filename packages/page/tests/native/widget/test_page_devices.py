# `device=page` in each public function that takes a device: it works, or the page refuses it
# in its own words.
import asyncio
import io
import re
from pathlib import Path

import numpy as np
import pytest
from fake_page import DOUBLE, end_all, finish, joined, read

import dlpack_web as dlw

NAMES = Path(__file__).parents[5] / "tests/native/public_names.txt"
TAKE_ONE = {
    line.partition("(")[0]
    for line in NAMES.read_text("utf-8").splitlines()
    if re.search(r"[(, ]device[=,]", line) and ".backends." not in line
}


class Page:
    """What is given as a device: as `dlpack_web_page.widget.Page`."""

    def __init__(self, host, channel):
        self.host, self.channel = host, channel

    @property
    def _page_device(self):
        return self.host.device

    def finish(self, coroutine):
        return finish(self.channel, coroutine)

    def has(self, tensor, expected):
        with tensor:
            assert tensor.device == self.host.device
            assert read(self.channel, tensor).tolist() == expected


@pytest.fixture
def page():
    host, _, channel = joined()
    yield Page(host, channel)
    end_all()


def refused(what):
    return pytest.raises(BufferError, match=f"^the GPU is in the page.* {what}")


def from_dlpack(page):
    page.has(dlw.from_dlpack(np.arange(3.0), device=page), [0, 1, 2])


def to_device(page):
    with dlw.from_dlpack(np.arange(3.0)) as host:
        page.has(host.to_device(page), [0, 1, 2])
        with pytest.raises(dlw.CopyError, match=r"the GPU is in the page$"):
            host.to_device(page, copy=False)
    with (
        dlw.empty(3, device=page) as there,
        pytest.raises(dlw.CopyError, match=r"the GPU is in the page$"),
    ):
        there.to_device("cpu", copy=False)


def empty(page):
    page.has(dlw.empty(2, device=page), [0, 0])


def from_gpu_buffer(page):
    with refused("wrapping GPUBuffers"):
        dlw.from_gpu_buffer(object(), 3, "float32", device=page)


def open_(page):
    file = io.BytesIO()
    np.save(file, np.arange(3.0))
    opened = page.finish(dlw.open(file.getvalue(), device=page))
    page.has(opened, [0, 1, 2])


KERNELS = {
    "Kernel": (DOUBLE, "double"),
    "ElementwiseKernel": ("f32 x", "f32 y", "y = 2 * x", "double"),
    "ReductionKernel": ("f32 x", "f32 y", "x", "a + b", "y = a", "0"),
}


def ready(kind):
    def call(page):
        kernel = getattr(dlw.webgpu, kind)(*KERNELS[kind])
        with pytest.raises(dlw.KernelError, match="no such name"):  # the fake's answer
            page.finish(kernel.ready(page))

    return call


def from_image(page):
    with refused("images"):
        asyncio.run(dlw.webgpu.from_image(np.zeros((2, 2, 4), "u1"), page))


def frames(page):
    with refused("videos"):
        dlw.webgpu.frames(object(), page)


def use_device(page):
    """There are no libraries of JavaScript to give it to, whatever the device."""
    with pytest.raises(BufferError, match="JavaScript is available only in Pyodide"):
        asyncio.run(dlw.adapter("ndarray", None))


CALLS = {
    "dlpack_web.from_dlpack": from_dlpack,
    "dlpack_web.Tensor.to_device": to_device,
    "dlpack_web.empty": empty,
    "dlpack_web.from_gpu_buffer": from_gpu_buffer,
    "dlpack_web.open": open_,
    **{f"dlpack_web.webgpu.{kind}.ready": ready(kind) for kind in KERNELS},
    "dlpack_web.webgpu.from_image": from_image,
    "dlpack_web.webgpu.frames": frames,
    "dlpack_web.Adapter.use_device": use_device,
}


def test_all_that_take_a_device_are_here():
    assert CALLS.keys() == TAKE_ONE


@pytest.mark.parametrize("name", CALLS)
def test_a_page_is_a_device(name, page):
    CALLS[name](page)
