"""PyPI's package webgpu, the real one, in Pyodide: its buffers as Tensors.

Out of the box its objects are proxies of a link to the page that has the GPU. Here they are
JavaScript's own, of this page: the package asks of such an object a set of names, which it does
not have by itself.
"""

import gc
import threading

import js
import numpy as np
import pytest
from gpu_world import same, write_buffer
from pyodide.ffi import JsProxy, create_proxy
from webgpu import utils
from webgpu.link.proxy import Proxy
from webgpu.webgpu_api import Buffer, BufferUsage, Device, flush_pending_destroys

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("theirs", "nothing_leaks")
USAGE = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
VALUES = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture
def theirs(device):
    """The device of the package, which it has one of; it is left without."""
    names = create_proxy(set())
    for kind in js.GPUBuffer, js.GPUDevice:
        kind.prototype._noreturn_names = names
    utils._device = Device(device.gpu)
    yield utils._device
    utils._device = None
    utils.device_generation = 0
    for kind in js.GPUBuffer, js.GPUDevice:
        del kind.prototype._noreturn_names
    names.destroy()


def filled(theirs, values=VALUES):
    buffer = theirs.createBuffer(size=values.nbytes, usage=USAGE)
    write_buffer(dlw.webgpu.use_device(theirs.handle), buffer.handle, values.tobytes())
    return buffer


async def test_its_buffer_is_shared(theirs):
    buffer = filled(theirs)
    device = dlw.webgpu.use_device(theirs.handle)
    with dlw.webgpu.from_wgpu(buffer, (2, 3), "float32") as tensor:
        assert (tensor.shape, tensor.device) == ((2, 3), device)
        assert same(tensor.gpu_buffer, buffer.handle)
        assert (await tensor.to_host() == VALUES).all()
    with dlw.webgpu.from_wgpu(buffer, 2, "float32", byte_offset=8) as tensor:
        assert (await tensor.to_host()).tolist() == [2, 3]
    with pytest.raises(ValueError, match="the GPUBuffer has 24"):
        dlw.webgpu.from_wgpu(buffer, 7, "float32")


async def test_a_tensor_keeps_the_buffer_that_it_is_over(theirs):
    """The package destroys what Python has collected."""
    gc.collect()
    flush_pending_destroys()
    buffer = filled(theirs)
    tensor = dlw.webgpu.from_wgpu(buffer, (2, 3), "float32")
    view = tensor[1]
    del buffer
    tensor.release()
    gc.collect()
    flush_pending_destroys()
    assert (await view.to_host()).tolist() == [3, 4, 5]
    raw = view.gpu_buffer
    view.release()
    gc.collect()
    flush_pending_destroys()
    again = dlw.from_gpu_buffer(
        raw, (2, 3), "float32", device=dlw.webgpu.use_device(theirs.handle)
    )
    with again, pytest.raises(BufferError, match="destroyed"):
        await again.to_host()


async def test_its_device_is_registered(theirs):
    device = dlw.webgpu.use_device(theirs)
    assert dlw.webgpu.use_device(theirs.handle) == device
    assert same(device.gpu, theirs.handle)


async def test_a_buffer_of_a_device_that_is_not_known_is_refused(theirs):
    buffer = filled(theirs)
    way = r"from_gpu_buffer\(buffer\.handle, shape, dtype, device=\.\.\.\)"
    for change in (
        lambda: setattr(utils, "device_generation", 1),  # the device was lost
        lambda: setattr(utils, "_device", None),
        lambda: delattr(buffer, "_generation"),  # not by createBuffer
    ):
        change()
        with pytest.raises(BufferError, match=way):
            dlw.webgpu.from_wgpu(buffer, (2, 3), "float32")
        utils._device, utils.device_generation = theirs, 0
    device = dlw.webgpu.use_device(theirs.handle)
    with dlw.from_gpu_buffer(buffer.handle, (2, 3), "float32", device=device) as tensor:
        assert (await tensor.to_host() == VALUES).all()


class Link:
    """As much of the package's link as its proxies ask of it."""

    def __init__(self):
        self._refcount_lock = threading.Lock()
        self._js_id_refcount, self._release_queue, self._cache = {}, [], {}

    def call_method_ignore_return(self, id, prop, args):
        pass


async def test_a_buffer_behind_a_link_is_refused(theirs):
    buffer = Buffer(Proxy(Link(), id=3))
    buffer._generation = utils.device_generation
    assert not isinstance(buffer.handle, JsProxy)
    with pytest.raises(BufferError, match=r"webgpu\.utils\.read_buffer\(buffer\)"):
        dlw.webgpu.from_wgpu(buffer, (2, 3), "float32")
    with pytest.raises(TypeError, match="GPUDevice"):
        dlw.webgpu.use_device(Device(Proxy(Link(), id=4)))
