# dlpack_web_page.widget without anywidget and a browser: a kernel and a fake page.
import asyncio
import linecache
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import run
from fake_page import DOUBLE, Channel, FakePage, finish, joined, read, tidied

import dlpack_web as dlw
from dlpack_web import _core
from dlpack_web._tensor.transfer import read as read_all
from dlpack_web_page._page import host as hosts
from dlpack_web_page._page.tensors import Tensors

A = np.arange(24.0, dtype="f4").reshape(4, 6)
THERE = [(np.arange(1, 8).astype(kind), {}) for kind in ("f4", "i8", "u1", "?", "c8")]
THERE += [(A.T[::2], {}), (np.arange(3.0), {"dtype": "float32"})]
VIEWS = [
    (lambda t: t[...], A),
    (lambda t: t[1:3], A[1:3]),
    (lambda t: t.permute_dims((1, 0)), A.T),
]


@pytest.mark.parametrize(("given", "options"), THERE)
def test_an_array_to_the_page_and_back_is_equal(given, options):
    host, page, channel = joined()
    with dlw.from_dlpack(given, device=host.device, **options) as t:
        assert t.device == host.device
        assert str(t.device) == f"webgpu:{host.device.id}"
        back = read(channel, t)
    assert back.dtype == options.get("dtype", given.dtype)
    assert np.array_equal(back, given)
    assert tidied(page, host) == {}


@pytest.mark.parametrize(("view", "expected"), VIEWS)
def test_views_and_strided_tensors_are_read(view, expected):
    host, _, channel = joined()
    with dlw.from_dlpack(A, device=host.device) as t, view(t) as seen:
        assert np.array_equal(read(channel, seen), expected)


def test_an_error_of_the_host_is_the_error_of_the_kernel():
    """And not that wgpu is missing, which the desktop's kernels need. What follows is
    sent."""
    host, _, channel = joined()
    link = host.backend().link

    def post(content, buffers, post=link._post):
        if "wgsl" in str(content):
            raise OSError("the channel cannot carry it")
        post(content, buffers)

    link._post = post
    with dlw.empty(4, device=host.device) as t:
        with pytest.raises(OSError, match="the channel cannot carry it"):
            dlw.webgpu.Kernel(DOUBLE, "double")(t)
        assert read(channel, t).tolist() == [0] * 4


def test_two_arguments_that_are_written_must_not_overlap():
    host, _, _ = joined()
    both = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = y[0]; }""")
    with (
        dlw.empty(4, device=host.device) as t,
        pytest.raises(BufferError, match="arguments 0 and 1 of the kernel overlap"),
    ):
        both(t, t)


def test_empty_is_zeros_and_parts_are_written():
    host, _, channel = joined()
    with dlw.empty((1000, 4), "float32", device=host.device) as t:
        part = np.arange(40.0, dtype="f4").reshape(10, 4)
        before = host.backend().stats()[0]["up"]
        with t[100:110] as rows:
            rows.write(part)
        assert host.backend().stats()[0]["up"] - before == part.nbytes
        expected = np.zeros((1000, 4), "f4")
        expected[100:110] = part
        assert np.array_equal(read(channel, t), expected)
        with t[:10] as there, t[100:110] as rows:
            there.write(rows)
        expected[:10] = part
        assert np.array_equal(read(channel, t), expected)


@pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
def test_packed_and_padded_elements_are_converted_on_the_way(padded):
    host, page, channel = joined()
    raw = np.dtype("V1", metadata={"dlpack": "uint4"})
    octets = {False: bytes([0x21, 0x43, 0x65, 0x87]), True: bytes(range(1, 9))}

    def made(lies_padded):
        if lies_padded:
            return dlw.from_dlpack(np.frombuffer(octets[True], raw).copy())
        packed = dlw.empty(8, "uint4")
        memoryview(_core._raw(packed)[0])[:] = octets[False]
        return packed

    def elements():
        (found,) = page.tensors.values()
        return bytes(found)[: len(octets[padded])]

    with (
        made(padded) as given,
        made(not padded) as other,
        dlw.from_dlpack(given, device=host.device) as t,
    ):
        channel.deliver()
        assert t.padded == padded
        assert elements() == octets[padded]
        before = host.backend().stats()[0]["up"]
        with pytest.raises(BufferError, match="packed in one and padded in the other"):
            t.write(other)
        t.write(other, convert=True)
        assert host.backend().stats()[0]["up"] - before == t.nbytes
        channel.deliver()
        assert elements() == octets[padded]
        with (
            dlw.from_dlpack(other, device=host.device) as there,
            pytest.raises(BufferError, match="only uploads convert"),
        ):
            t.write(there, convert=True)
        assert read(channel, t).tobytes() == octets[True]


def test_kernels_and_batches_run_in_order():
    host, _, channel = joined()
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    with dlw.from_dlpack(np.arange(4, dtype="f4"), device=host.device) as t:
        double(t)
        with dlw.webgpu.batch() as batch:
            double(t)
            double(t)
            with pytest.raises(BufferError, match="cannot be read here"):
                read(channel, t)
        batch.run()
        batch.run()
        assert read(channel, t).tolist() == [0, 32, 64, 96]
        batch.release()


def test_a_batch_is_updated_between_its_runs():
    host, page, channel = joined()
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    with (
        dlw.from_dlpack(np.ones(4, "f4"), device=host.device) as one,
        dlw.from_dlpack(np.ones(4, "f4"), device=host.device) as other,
    ):
        with dlw.webgpu.batch() as batch:
            double(one)
            double(one)
        batch.run()
        with pytest.raises(
            ValueError, match="has 1 arguments that can change, not number 1"
        ):
            batch.update(1, {1: other})
        batch.update(1, {0: other})
        batch.run()
        assert read(channel, one).tolist() == [8] * 4
        assert read(channel, other).tolist() == [2] * 4
        first, second = page.ran[:2]
        assert page.ran == [first, second, first, second]  # faults name these lines
        assert first != second
        batch.release()
    assert tidied(page, host) == {}


def test_an_update_of_a_formula_is_checked_as_a_call_is(monkeypatch):
    host, page, channel = joined()
    plus = dlw.webgpu.ElementwiseKernel(
        "u32 x, raw f32 k", "f32 y", "y = f32(x) + k[0]"
    )
    kinds = {"u32": ("uint32", 4), "f32": ("float32", 4), "many": ("float32", 9)}
    kinds |= {"u8": ("uint8", 4), "c8": ("complex64", 4), "u16": ("uint16", 4)}
    made = {
        name: dlw.empty(count, dtype, device=host.device)
        for name, (dtype, count) in kinds.items()
    }
    with dlw.webgpu.batch() as batch:
        plus(made["u32"], made["f32"], made["f32"])
        result = plus(made["u32"], made["f32"])
    for at, name in (0, "u8"), (0, "u16"), (0, "f32"), (1, "c8"), (2, "u8"), (2, "u32"):
        with pytest.raises(BufferError, match=r'is \w+, the parameter is "(raw )?.32 '):
            batch.update(1, {at: made[name]})
    with pytest.raises(TypeError, match="k is raw and takes a Tensor"):
        batch.update(1, {1: 3})
    batch.update(1, {1: made["many"]})
    ran = []
    page.run = ran.append

    def full(content, buffers):
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(host.backend().link, "_post", full)
        with pytest.raises(OSError, match="full"):
            batch.run()
    for _ in range(2):
        batch.run()
        read(channel, result)
    assert [len(op["first"]) for op in ran] == [1, 0]  # which it computes
    assert page.recorded == [False] * len(made) + [True]
    for one in batch, result, *made.values():
        one.release()
    assert tidied(page, host) == {}


def test_the_page_knows_which_lines_of_wgsl_are_the_formula():
    host, page, channel = joined()
    double = dlw.webgpu.ElementwiseKernel("f32 x", "f32 y", "y = 2 * x")
    with dlw.empty(4, device=host.device) as x, pytest.raises(dlw.KernelError):
        finish(channel, double.ready(x.device))
    (kernel,) = page.kernels.values()
    assert [part[0] for part in kernel["parts"]] == ["operation"]


def test_arguments_are_checked_at_the_call():
    host, _, _ = joined()
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    with (
        dlw.empty(4, "float64", device=host.device) as t,
        pytest.raises(BufferError, match=r"binding 0: .* is float64"),
    ):
        double(t)
    with dlw.empty(8, "uint8", device=host.device) as t, t[:4] as part:
        for given, why in (t[::2], "strides"), (t[1:5], "offset"):
            with given, pytest.raises(BufferError, match=why):
                part.write(given)
    with pytest.raises(BufferError, match="268435472 bytes are needed"):
        dlw.empty(2**26 + 1, device=host.device)
    with dlw.empty(4, device=host.device) as t:
        with pytest.raises(ValueError, match="takes an argument for each binding"):
            double(t, t)
        with pytest.raises(dlw.CopyError, match="the GPU is in the page"):
            t.to_device("cpu", copy=False)
        with pytest.raises(
            BufferError, match="does not support handing out GPUBuffers"
        ):
            _ = t.gpu_buffer
        with pytest.raises(
            BufferError, match="whose messages arrive only while a cell awaits"
        ):
            t.numpy()


def test_errors_of_the_page_name_the_line_of_the_call():
    host, _, channel = joined()
    kernel = dlw.webgpu.Kernel(DOUBLE, "double", label="bad")

    async def cell():
        await kernel.ready(host.device)

    with pytest.raises(dlw.KernelError) as caught:
        finish(channel, cell())
    assert caught.value.line == 3
    assert caught.value.label == "bad"
    assert "no such name\ncalled at " in str(caught.value)
    assert "ready(host.device)" in linecache.getline(
        caught.value.filename, caught.value.lineno
    )


def test_nothing_is_offered_before_a_page_shows_it():
    channel = Channel()
    host = channel.host = hosts.Host(channel.to_pages)
    tensors = Tensors(host)
    for use in (
        lambda: host.device,
        lambda: asyncio.run(host.ready(0.01)),
        lambda: tensors.update(x=dlw.empty(3)),
    ):
        with pytest.raises(BufferError, match="no page shows this widget yet"):
            use()
    assert dict(tensors) == {}
    with pytest.raises(KeyError):
        del tensors["x"]


def test_ready_waits_for_a_page():
    channel = Channel()
    host = channel.host = hosts.Host(channel.to_pages)
    page = FakePage(channel)

    async def both():
        asyncio.get_running_loop().call_later(0.01, page.hello)
        asyncio.get_running_loop().call_later(0.05, channel.deliver)
        return await host.ready(20)

    assert asyncio.run(both()).type == 15


def test_a_page_without_webgpu_gives_cpu_tensors_and_a_warning():
    channel = Channel()
    host = channel.host = hosts.Host(channel.to_pages)
    page = FakePage(channel, {"webgpu": False, "reason": "no adapter"})
    page.hello()
    channel.deliver()
    with pytest.warns(RuntimeWarning, match=r"the page has no WebGPU \(no adapter\)"):
        device = asyncio.run(host.ready(1))
    assert device == "cpu"
    with pytest.raises(BufferError, match="the page has no WebGPU: no adapter"):
        Tensors(host)["x"] = dlw.empty(3)
    with dlw.from_dlpack(np.arange(3.0), device=device) as t:
        assert t.numpy().tolist() == [0, 1, 2]
    assert "no WebGPU here: no adapter" in page.said[0]["refused"]


def test_two_widgets_have_two_devices():
    one, _, channel = joined()
    two, _, other = joined()
    assert one.device != two.device
    with (
        dlw.from_dlpack(np.arange(3, dtype="f4"), device=one.device) as s,
        dlw.from_dlpack(np.arange(4, dtype="f4"), device=two.device) as t,
    ):
        with pytest.raises(BufferError, match="cannot be used on"):
            t[:3].write(s)
        with pytest.raises(BufferError, match="do not leave their device"):
            s.to_device(two.device)
        assert read(channel, s).tolist() == [0, 1, 2]
        assert read(other, t).tolist() == [0, 1, 2, 3]


def test_refused_elements_are_an_error_of_the_tensor_alone():
    host, page, channel = joined()
    page.wire._receiving._limit = 8
    t = dlw.from_dlpack(np.zeros(10), device=host.device)
    with pytest.raises(BufferError, match="the limit of 8"):
        read(channel, t)
    with dlw.from_dlpack(np.zeros(1), device=host.device) as small:
        assert read(channel, small).tolist() == [0]
    t.release()


def test_reading_ends_when_all_is_there_and_does_not_wait_for_the_page():
    host, page, channel = joined()
    a, b = np.arange(3.0), np.arange(5, dtype="i4")
    with (
        dlw.from_dlpack(a, device=host.device) as t,
        dlw.from_dlpack(b, device=host.device) as u,
    ):
        channel.deliver()

        async def both():
            task = asyncio.ensure_future(read_all([t, u], [None, None]))
            await asyncio.sleep(0)
            channel.deliver(1)  # the question; now the page sends, and hears nothing
            frames = [each for each in channel.queue if each[2]]
            assert len(frames) == 2
            channel.queue.clear()
            for sender, content, buffers in frames:
                assert sender is page
                assert not task.done()
                host.receive(content, [bytes(each) for each in buffers])
                await asyncio.sleep(0.01)
            return await task

        found = asyncio.run(both())
        assert [each.tolist() for each in found] == [a.tolist(), b.tolist()]
        link = host.backend().link
        wire = link._wire
        for kept in (
            link._landings,
            link._replies._open,
            wire.tensors,
            wire._receiving._ids,
        ):
            assert not kept
        assert read(channel, t).tolist() == a.tolist()


def test_a_write_that_was_interrupted_leaves_an_error_and_no_mixture(monkeypatch):
    """The page may have taken elements that the caller has changed meanwhile."""
    host, _, channel = joined()
    link = host.backend().link
    a = np.ones(400_000, "f4")  # more than is copied, and all of it is sent at once
    with (
        dlw.from_dlpack(np.zeros_like(a), device=host.device) as t,
        dlw.from_dlpack(np.zeros(1), device=host.device) as other,
    ):
        channel.deliver()

        def interrupt(future):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(link, "_thread", -1)  # Python can wait
            patch.setattr(link, "wait", interrupt)
            with pytest.raises(KeyboardInterrupt):
                t.write(a)
        a[100:] = 2
        with pytest.raises(BufferError, match="was freed"):
            read(channel, t)
        assert read(channel, other).tolist() == [0]


def test_python_waits_where_messages_arrive_on_another_thread():
    host, _, channel = joined()
    stop = threading.Event()

    def deliver():
        while not stop.is_set():
            channel.deliver()
            time.sleep(0.001)

    thread = threading.Thread(target=deliver)
    thread.start()
    try:
        a = np.random.default_rng(0).random(3_000_000, dtype="f4")
        t = dlw.from_dlpack(np.zeros(1), device=host.device)
        end = time.monotonic() + 20
        while not host.backend().can_block() and time.monotonic() < end:
            time.sleep(0.001)
        with dlw.from_dlpack(a, device=host.device) as large:
            assert np.array_equal(large.numpy(), a)
        assert t.numpy().tolist() == [0]
        assert "shape=(1,)" in repr(t)
        assert host.backend().block_on(t.to_host()).tolist() == [0]
        with pytest.raises(BufferError, match="does not support videos"):
            host.backend().block_on(failing())
        t.release()
        # A file of more pieces than are sent without an answer.
        a = np.resize(a, 4_194_305)
        with run(dlw.open(file_of(a), device=host.device)) as file:
            assert np.array_equal(file["w"].numpy(), a)
            file["w"].release()
    finally:
        stop.set()
        thread.join()


def file_of(array):
    with dlw.from_dlpack(array) as w:
        return run(dlw.save(None, {"w": w, "few": array[:9], "two": array[:3_000_000]}))


def test_python_does_not_wait_where_messages_arrive():
    host, _, channel = joined()
    a = np.arange(4_194_305, dtype="f4")
    before = dlw.live_tensors()
    with run(dlw.open(file_of(a), device=host.device)) as file:
        assert read(channel, file["few"]).tolist() == list(range(9))
        with pytest.raises(
            BufferError, match=r"cannot wait .*`await file.load\('w'\)`"
        ):
            file["w"]
        assert np.array_equal(read(channel, file["two"]), a[:3_000_000])
        file["few"].release()
        file["two"].release()
    assert dlw.live_tensors() == before


async def failing():
    raise BufferError("the GPU is in the page, which does not support videos")


def test_the_page_s_first_message_says_on_which_thread_the_others_arrive():
    found = []
    thread = threading.Thread(target=lambda: found.append(joined()))
    thread.start()
    thread.join()
    assert found[0][0].backend().can_block()
    assert not joined()[0].backend().can_block()


def test_stats_and_inspect_have_the_page():
    host, _, channel = joined()
    with dlw.from_dlpack(np.arange(4, dtype="f4"), device=host.device) as t:
        read(channel, t)
        rows = [r for r in dlw.webgpu.stats() if r["device"] == str(host.device)]
        assert (rows[0]["up"], rows[0]["down"], rows[0]["buffers"]) == (16, 16, 1)
        assert str(host.device) in str(dlw.inspect())


def test_importing_dlpack_web_imports_no_widget():
    code = (
        "import sys, dlpack_web\n"
        "assert not {'anywidget', 'dlpack_web_page._page'} & {*sys.modules}\n"
        "import importlib.util\n"
        "if importlib.util.find_spec('anywidget') is None:\n"
        "    try:\n"
        "        import dlpack_web_page.widget\n"
        "    except ModuleNotFoundError as error: print(error.name, error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert re.search("^anywidget .*pip install anywidget", found.stdout)
