"""Host memory that the GPU uses where it is: `copy=False`, over wgpudawn alone."""

import contextlib
import gc
import mmap
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import wgpu
from gpu_world import counted, has_feature, start_counting

import dlpack_web as dlw
from dlpack_web._backends import desktop
from dlpack_web._backends.desktop import dawn, host

pytestmark = pytest.mark.usefixtures("nothing_leaks")

PAGE = 4096  # of SwiftShader
DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {
  if (i.x < arrayLength(&x)) { x[i.x] = 2 * x[i.x]; }
}"""
ADD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {
  y[i.x] += x[i.x];
}"""
SLOW = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {
  for (var n = 0u; n < 2000u; n++) { x[i.x] = x[i.x] * 3u + n; }
}"""


@pytest.fixture(autouse=True)
def sharing(request, device):
    """The device, where it can share memory; else only what says so is run."""
    can = has_feature(device.gpu, "host-mapped-pointer")
    if not can and "elsewhere" not in request.node.name:
        pytest.skip("only Dawn shares host memory, where the adapter can")
    return device


@pytest.fixture
def nothing_leaks(nothing_leaks):
    yield
    for device_id in desktop.backend.device_ids():
        settled(dlw.Device(15, device_id))


def pages(count=2, dtype="f4"):
    """An array that begins and ends with a page."""
    array = np.frombuffer(mmap.mmap(-1, count * PAGE), dtype)
    array[:] = np.arange(array.size) % 1000
    return array


def owner_of(array):
    """A weak reference to what has the memory of an array."""
    base = array.base
    return weakref.ref(base if isinstance(base, mmap.mmap) else base.obj)


def shared(array):
    return dlw.from_dlpack(array).to_device("webgpu", copy=False)


def settled(device):
    """The GPU has finished, and memory that it alone held is let go."""
    gc.collect()
    host.free(desktop.backend.registered(device.id))
    gc.collect()


def test_elsewhere_it_is_refused_with_the_reason(device):
    if has_feature(device.gpu, "host-mapped-pointer"):
        pytest.skip("this device can")
    with pytest.raises(dlw.CopyError, match="only wgpudawn can share host memory"):
        shared(pages())


def test_a_kernel_writes_into_an_array():
    array = pages()
    kernel = dlw.webgpu.Kernel(DOUBLE)
    start_counting()
    with shared(array) as tensor:
        kernel(tensor)
        with tensor.to_device("cpu", copy=False) as host:
            assert np.shares_memory(host.numpy(), array)
            assert host.numpy().flags.writeable
            assert (array == 2 * (np.arange(2048) % 1000)).all()
        array[:] = 3  # and the other way
        kernel(tensor)
        tensor.to_device("cpu", copy=False).release()
        assert (array == 6).all()
    found = counted()
    assert (found.copies, found.copied_bytes) == (0, 0)


async def test_it_is_read_and_written_as_any_other():
    array = pages()
    with dlw.from_dlpack(array, device="webgpu", copy=False) as tensor:
        assert (await tensor.to_host() == array).all()
        tensor.write(np.full(2048, 5, "f4"))
        with tensor[64:66] as view:
            assert np.asarray(view).tolist() == [5, 5]
            view_on_host = view.to_device("cpu", copy=False)
        with view_on_host:
            assert np.shares_memory(view_on_host.numpy(), array[64:66])
            assert not np.shares_memory(view_on_host.numpy(), array[66:])
            assert view_on_host.numpy().tolist() == [5, 5]
        with tensor.reshape((32, 64))[1] as row, row.to_device("cpu", copy=False) as at:
            assert np.shares_memory(at.numpy(), array[64:128])
    assert (array == 5).all()


def test_without_asking_for_it_nothing_is_shared():
    array = pages()
    with dlw.from_dlpack(array, device="webgpu") as tensor:
        dlw.webgpu.Kernel(DOUBLE)(tensor)
        with pytest.raises(dlw.CopyError, match="not shared host memory"):
            tensor.to_device("cpu", copy=False)
        assert np.asarray(tensor)[1] == 2
    assert array[1] == 1


def read_only():
    array = pages()
    array.flags.writeable = False
    return array


def from_the_second_byte():
    return np.frombuffer(memoryview(mmap.mmap(-1, 3 * PAGE))[16 : 16 + PAGE], "f4")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (read_only, "read-only"),
        (from_the_second_byte, "begins 16 bytes after a multiple of 4096: make the"),
        (lambda: pages()[:1000], "4000 bytes, .* whole pages of 4096: make the array"),
        (lambda: pages()[:0], "it has 0 bytes"),
        (lambda: pages(4)[::2], r"strides are \(2,\)"),
        (lambda: pages().reshape(32, 64).T, r"strides are \(1, 64\)"),
    ],
    ids=["read-only", "misaligned", "half a page", "empty", "strided", "transposed"],
)
def test_memory_that_cannot_be_shared(make, reason, device):
    with pytest.raises(
        dlw.CopyError, match=f"webgpu:{device[1]} copies it: .*{reason}"
    ):
        shared(make())


def test_conversions_copy():
    with pytest.raises(dlw.CopyError, match="float32 to float16"):
        dlw.from_dlpack(pages()).to_device("webgpu", copy=False, dtype="float16")


def test_the_same_memory_has_one_buffer():
    """Else the GPU would not order what uses it."""
    array, seen = pages(), np.array(pages())
    with shared(array) as one, shared(array) as two:
        assert one.to_wgpu() is two.to_wgpu()
        dlw.webgpu.Kernel(ADD)(one, two)  # x is put aside
        dlw.webgpu.Kernel(DOUBLE)(two)
        with one.to_device("cpu", copy=False) as host:
            assert (host.numpy() == 4 * seen).all()
        with (
            shared(array.view("i4")) as integers,  # of another dtype
            integers.to_device("cpu", copy=False) as host,
        ):
            assert host.dtype == "int32"
            assert np.shares_memory(host.numpy(), array)
        two.release()
        one.to_device("cpu", copy=False).release()


@pytest.mark.parametrize("part", [slice(1024), slice(1024, None)])
def test_overlapping_memory_is_refused(part):
    array = pages()
    with shared(array), pytest.raises(dlw.CopyError, match="are already shared"):
        shared(array[part])
    with shared(array[part]), pytest.raises(dlw.CopyError, match="are already shared"):
        shared(array)
    with shared(array) as tensor:  # free again
        assert np.asarray(tensor)[1] == 1


def test_neighbours_are_no_overlap():
    array = pages()
    with shared(array[:1024]) as one, shared(array[1024:]) as two:
        assert one.to_wgpu() is not two.to_wgpu()
        dlw.webgpu.Kernel(DOUBLE)(two)
        two.to_device("cpu", copy=False).release()
    assert (array[:1024] == np.array(pages())[:1024]).all()
    assert (array[1024:] == 2 * np.array(pages())[1024:]).all()


async def test_devices_do_not_share_the_same_memory(device):
    other = await dlw.webgpu.request_device(label="other")
    array = pages()
    with shared(array), pytest.raises(dlw.CopyError, match=f"on webgpu:{device[1]}"):
        dlw.from_dlpack(array).to_device(other, copy=False)
    with dlw.from_dlpack(array).to_device(other, copy=False) as tensor:
        assert tensor.device == other
    settled(other)


def test_the_owner_is_held_until_the_gpu_has_finished(device):
    array = pages(16, "u4")
    alive = owner_of(array)
    tensor = shared(array)
    kernel = dlw.webgpu.Kernel(SLOW)
    kernel(tensor)
    tensor.release()  # while it is in use
    del array
    gc.collect()
    assert alive() is not None
    settled(device)
    assert alive() is None


def test_memory_in_use_is_shared_again_after_the_gpu(device):
    """In another way, too: the first use has to be over."""
    array = pages(16, "u4")
    start = array.copy()
    kernel = dlw.webgpu.Kernel(SLOW)
    with shared(array) as tensor:
        kernel(tensor)
    with shared(array[: 8 * 1024]) as half:
        assert half.shape == (8 * 1024,)
        after = array.copy()
    assert (after != start).all()


def test_it_never_comes_into_the_pool(device):
    array = pages()
    idle = dlw.webgpu.stats()[device.id]["idleBytes"]
    shared(array).release()
    assert dlw.webgpu.stats()[device.id]["idleBytes"] == idle
    with dlw.empty(2048, device=device) as tensor:
        dlw.webgpu.Kernel(DOUBLE)(tensor)
        tensor.write(np.full(2048, 9, "f4"))
        settled(device)
    assert array[1] == 1


def test_who_took_the_buffer_keeps_the_memory(device):
    array = pages(1)
    alive = owner_of(array)
    with shared(array) as tensor:
        buffer = tensor.to_wgpu()
    with shared(array) as again:  # still the same one
        assert again.to_wgpu() is buffer
    del array, again
    settled(device)
    assert alive() is not None
    assert np.frombuffer(device.gpu.queue.read_buffer(buffer), "f4")[3] == 3
    del buffer, tensor
    settled(device)
    assert alive() is None


def test_faults_are_raised_before_the_array_is_read():
    array = pages()
    with shared(array) as tensor:
        dlw.webgpu.Kernel(DOUBLE.replace("2 *", "nonsense *"))(tensor, workgroups=1)
        with pytest.raises(dlw.KernelError, match="nonsense"):
            tensor.to_device("cpu", copy=False)


def test_a_driver_that_refuses_spoils_nothing(monkeypatch):
    array = pages()

    def refuse(*_):
        raise wgpu.GPUValidationError("this memory is not for me")

    with monkeypatch.context() as patch:
        patch.setattr(dawn, "buffer_over", refuse)
        with pytest.raises(dlw.CopyError, match="not for me"):
            shared(array)
    shared(array).release()


def test_a_second_share_while_the_first_is_made(monkeypatch):
    """By a finalizer, say: there is one buffer, or an error."""
    array, real, errors = pages(), dawn.buffer_over, []

    def again(*args):
        with pytest.raises(dlw.CopyError, match="are already shared"):
            shared(array)
        errors.append("once")
        return real(*args)

    monkeypatch.setattr(dawn, "buffer_over", again)
    shared(array).release()
    assert errors == ["once"]


def test_threads_share_one_memory():
    array, found = pages(), []

    def work(_):
        with contextlib.suppress(dlw.CopyError):  # while it is made
            found.append(shared(array))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert found
    assert len({id(tensor.to_wgpu()) for tensor in found}) == 1
    for tensor in found:
        tensor.release()


def test_a_lost_device(device):
    array = pages()
    tensor = shared(array)
    device.gpu.destroy()
    with pytest.raises(dlw.DeviceLostError):
        tensor.to_device("cpu", copy=False)
    with pytest.raises(dlw.DeviceLostError):
        dlw.from_dlpack(array).to_device(device, copy=False)
    tensor.release()
    assert array[1] == 1
