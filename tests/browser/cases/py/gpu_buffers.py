"""GPUBuffers that cross the border between us and others: made elsewhere, or handed out."""

import asyncio
import gc

import numpy as np
import pytest
from gpu_fixtures import live
from gpu_world import (
    bytes_of,
    callback,
    collect,
    forget,
    make_buffer,
    only_in_a_page,
    same,
    write_buffer,
)

import dlpack_web as dlw
from dlpack_web._backends import default

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


@pytest.fixture
def gpu(device):
    """The GPUDevice, as those have it who know nothing of us."""
    return device.gpu


def buffer_of(device, values):
    """A GPUBuffer with these bytes."""
    raw = np.ascontiguousarray(values).view(np.uint8).ravel()
    buffer = make_buffer(device, max(16, -(-raw.size // 4) * 4))
    write_buffer(device, buffer, raw)
    return buffer


async def settled(before):
    """Waits for both garbage collectors, and for what the GPU has still to do."""
    for _ in range(3000):
        collect()
        await asyncio.sleep(0.02)
        if live() == before:
            return
    pytest.fail(f"tensors alive: {live()}, before: {before}")


def taken(device):
    (row,) = (row for row in dlw.webgpu.stats() if row["device"] == str(device))
    return row["taken"]


async def test_a_buffer_made_elsewhere_is_shared_both_ways(device):
    buffer = buffer_of(device, np.arange(6, dtype="float32"))
    with dlw.from_gpu_buffer(buffer, (2, 3), "float32", device=device) as tensor:
        assert (tensor.shape, str(tensor.dtype), tensor.device) == (
            (2, 3),
            "float32",
            device,
        )
        assert (await tensor.to_host()).tolist() == [[0, 1, 2], [3, 4, 5]]
        tensor.write(np.full((2, 3), 9, "float32"))
    # Released, and its maker's still.
    assert (
        np.frombuffer(await bytes_of(device, buffer, 24), "float32").tolist() == [9] * 6
    )


async def test_at_an_offset_it_begins_there_and_ends_with_its_shape(device):
    buffer = buffer_of(device, np.arange(8, dtype="float32"))
    options = {"device": device, "byte_offset": 8}
    with dlw.from_gpu_buffer(buffer, 3, np.float32, **options) as tensor:
        assert (await tensor.to_host()).tolist() == [2, 3, 4]
        tensor.write(np.zeros(3, "float32"))
    expected = [0, 1, 0, 0, 0, 5, 6, 7]
    assert (
        np.frombuffer(await bytes_of(device, buffer, 32), "float32").tolist()
        == expected
    )


async def test_one_part_of_a_buffer_is_written_over_another(device):
    buffer = buffer_of(device, np.arange(8, dtype="float32"))
    options = {"shape": 4, "dtype": "float32", "device": device}
    with (
        dlw.from_gpu_buffer(buffer, **options) as x,
        dlw.from_gpu_buffer(buffer, **options, byte_offset=16) as y,
    ):
        x.write(y)
        assert (await x.to_host()).tolist() == [4, 5, 6, 7]


async def test_a_part_of_a_word_is_copied_only_into_a_buffer_that_shaders_can_write(
    device,
):
    buffer = make_buffer(device, 16, "COPY_SRC", "COPY_DST")
    nines = np.full(6, 9, "u1")
    with (
        dlw.from_gpu_buffer(buffer, 6, "uint8", device=device) as x,
        dlw.from_dlpack(nines, device=device) as y,
    ):
        with pytest.raises(BufferError, match=r"a part of a word needs .*\.STORAGE"):
            x.write(y)
        x[:4].write(y[:4])
        assert (await x.to_host()).tolist() == [9] * 4 + [0] * 2
        x.write(nines)
        assert (await x.to_host()).tolist() == [9] * 6


async def test_elements_need_not_be_aligned_to_be_read(device):
    raw = np.arange(16, dtype="u1")
    buffer, options = buffer_of(device, raw), {"device": device, "byte_offset": 2}
    with dlw.from_gpu_buffer(buffer, 2, "uint32", **options) as tensor:
        assert (await tensor.to_host()).tobytes() == bytes(range(2, 10))
        with pytest.raises(
            BufferError, match="shares words of 4 bytes with its neighbours"
        ):
            tensor.write(np.zeros(2, "u4"))
    assert list(await bytes_of(device, buffer, 16)) == [*range(16)]


@pytest.mark.parametrize("views", [0, 1, 3])
def test_release_is_called_once_after_the_last_view(views, device):
    calls = []
    release = callback(lambda: calls.append(1))
    tensor = dlw.from_gpu_buffer(
        buffer_of(device, [1.0]), 1, "float32", device=device, release=release
    )
    others = [tensor[:] for _ in range(views)]
    tensor.release()
    for each in others:
        assert calls == []
        each.release()
    assert calls == [1]
    tensor.release()
    assert calls == [1]
    forget(release)


@pytest.mark.parametrize("how", ["release", "end", "garbage"])
async def test_release_may_call_back_with_the_same_tensor_and_buffer(how, device):
    """It is somebody else's code, and runs when nothing of the tensor is half done."""
    buffer = buffer_of(device, np.arange(4, dtype="float32"))
    told, lent, counts = [], [], [live()]

    def on_release():
        counts.append(live())
        if kept:
            kept[0].release()  # again
        held = [row for row in dlw.inspect({}).tensors if row.device == str(device)]
        told.append((len(held), [each.released for each in kept]))
        if len(told) == 1:
            lent.append(lend())

    def lend():
        options = {"device": device, "release": release}
        return dlw.from_gpu_buffer(buffer, 4, "float32", **options)

    release = callback(on_release)
    tensor = lend()
    kept = [tensor] if how == "release" else []
    if how == "release":
        tensor.release()
    elif how == "garbage":
        loop = [tensor]
        loop.append(loop)
        del loop
    del tensor
    gc.collect()
    assert told == [(0, [True] * len(kept))]
    assert counts[1] == counts[0]  # the hold was gone
    (again,) = lent
    assert (await again.to_host()).tolist() == [0, 1, 2, 3]
    again.write(np.ones(4, "float32"))
    again.release()
    again.release()
    assert len(told) == 2
    assert (
        np.frombuffer(await bytes_of(device, buffer, 16), "float32").tolist() == [1] * 4
    )
    forget(release)


def test_release_may_request_kernels_and_uploads(device):
    """The table of buffers is changed by what is called while it changes."""
    made = []

    def on_release():
        with dlw.from_dlpack(np.arange(3.0), device=device) as tensor:
            made.append(dlw.empty(4, device=device))
            made.append(tensor[1:])

    release = callback(on_release)
    buffer = buffer_of(device, np.zeros(4, "float32"))
    for _ in range(5):
        dlw.from_gpu_buffer(
            buffer, 4, "float32", device=device, release=release
        ).release()
    assert len(made) == 10
    assert [tensor.shape for tensor in made] == [(4,), (2,)] * 5
    for tensor in made:
        tensor.release()
    forget(release)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shape": 5}, ValueError, "20 bytes|does not fit|16"),
        ({"shape": -1}, ValueError, "negative"),
        ({"shape": 2**62}, ValueError, "."),
        ({"byte_offset": 4}, ValueError, "."),
        ({"byte_offset": -4}, ValueError, "."),
        ({"byte_offset": 0.5}, (ValueError, TypeError), "."),
        ({"dtype": "f4x"}, TypeError, "f4x"),
        ({"device": "cpu"}, BufferError, "WebGPU device"),
        ({"device": (15, 99)}, BufferError, "99"),
        ({"buffer": "no buffer"}, TypeError, "GPUBuffer"),
        ({"buffer": None}, TypeError, "GPUBuffer"),
        ({"release": 3}, TypeError, "release"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_released(options, error, message, device):
    calls = []
    given = {
        "buffer": buffer_of(device, np.zeros(4, "float32")),
        "shape": 4,
        "dtype": "float32",
        "device": device,
        "release": lambda: calls.append(1),
    }
    with pytest.raises(error, match=message):
        dlw.from_gpu_buffer(**(given | options))
    assert calls == []


@only_in_a_page("from_js, which takes a GPUBuffer of JavaScript")
def test_a_bare_buffer_is_told_what_it_lacks(device):
    buffer = buffer_of(device, [1.0])
    with pytest.raises((TypeError, BufferError), match="from_gpu_buffer"):
        dlw.from_js(buffer)
    with pytest.raises(AttributeError, match="from_js"):
        dlw.from_dlpack(buffer)


class Wgpu:
    """What wgpu-py's backend for browsers (its pull request 753) has of a GPUDevice or
    GPUBuffer: a stand-in, no release of wgpu-py having that. The objects within are real."""

    def __init__(self, internal, device=None):
        self._internal, self._device = internal, device


@only_in_a_page("tests/desktop/test_wgpu.py has the real wgpu")
async def test_buffers_of_wgpu_in_the_browser(device):
    raw = buffer_of(device, np.float32([1, 2, 3, 4]))
    theirs = Wgpu(raw, Wgpu(device.gpu))
    assert dlw.webgpu.use_device(theirs._device) == device
    with dlw.webgpu.from_wgpu(theirs, 3, "float32", byte_offset=4) as tensor:
        assert (tensor.device, tensor.shape) == (device, (3,))
        assert same(tensor.gpu_buffer, raw)
        assert (await tensor.to_host()).tolist() == [2, 3, 4]
        with pytest.raises(BufferError, match=r"wgpu-py#753.*use t\.gpu_buffer"):
            tensor.to_wgpu()
    for wrong in (
        raw,
        Wgpu(None),
        Wgpu(raw),
        Wgpu(raw, Wgpu("no device")),
        b"no buffer",
    ):
        with pytest.raises(
            TypeError, match=r"takes a GPUBuffer of the package wgpu.*from_"
        ):
            dlw.webgpu.from_wgpu(wrong, 4, "float32")
    with pytest.raises(TypeError, match="GPUDevice"):
        dlw.webgpu.from_wgpu(Wgpu(raw, Wgpu(raw)), 4, "float32")
    with pytest.raises(TypeError, match="GPUDevice"):
        dlw.webgpu.use_device(Wgpu("no device"))
    with pytest.raises(ValueError, match="the GPUBuffer has 16"):
        dlw.webgpu.from_wgpu(theirs, 5, "float32")
    raw.destroy()
    with (
        dlw.webgpu.from_wgpu(theirs, 3, "float32") as tensor,
        pytest.raises(BufferError, match="destroyed"),
    ):
        await tensor.to_host()


async def test_a_buffer_that_was_taken_outlives_its_tensor(device):
    array = np.arange(8, dtype="float32")
    before = taken(device)
    buffer = dlw.from_dlpack(
        array, device=device
    ).gpu_buffer  # of a tensor that is gone
    gc.collect()
    for _ in range(4):  # nobody gets it from the pool
        with dlw.from_dlpack(np.full(8, 7, "float32"), device=device) as other:
            assert not same(other.gpu_buffer, buffer)
    assert await bytes_of(device, buffer, 32) == array.tobytes()
    assert taken(device) >= before + 1
    with dlw.from_gpu_buffer(buffer, 8, "float32", device=device) as again:
        assert (await again.to_host()).tolist() == array.tolist()


def test_one_buffer_counts_once(device):
    with dlw.empty(3, device=device) as tensor:
        before = taken(device)
        assert same(tensor.gpu_buffer, tensor.gpu_buffer)
        assert taken(device) == before + 1
    with dlw.empty(3, device=device), dlw.empty(3) as host:
        assert taken(device) == before + 1
        with pytest.raises(BufferError, match="no GPUBuffer"):
            host.gpu_buffer  # noqa: B018


async def test_the_gpu_device_is_that_of_the_page(device, gpu):
    assert dlw.webgpu.use_device(gpu) == device
    with dlw.empty(1, device=device) as tensor:
        assert same(tensor.device.gpu, gpu)
    with dlw.empty(1) as tensor, pytest.raises(BufferError, match="cpu"):
        tensor.device.gpu  # noqa: B018


@only_in_a_page("JavaScript")
async def test_a_javascript_tensor_made_on_the_way_ends_with_the_garbage():
    if not collect():
        pytest.skip("this browser cannot be told to collect garbage")
    before = live()
    for i in range(20):
        assert dlw.from_js(dlw.to_js(np.full(3, i))).numpy().tolist() == [i] * 3
    await settled(before)


async def test_an_interrupt_while_a_buffer_waits_for_the_gpu_comes_once(
    monkeypatch, device
):
    calls = []

    def interrupted(*_):
        calls.append(1)
        raise KeyboardInterrupt

    before = live()
    monkeypatch.setattr(default(), "read_blocking", interrupted)
    with dlw.empty(3, device=device) as tensor:
        for read in (memoryview, np.asarray, bytes):
            calls.clear()
            with pytest.raises(KeyboardInterrupt):
                read(tensor)
            assert calls == [1], read
    await settled(before)
