# More than 500 lines: one suite, whose tests share their fixtures.
"""What only the desktop has: the package wgpu itself, its buffers, and its ways to end a
process."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import wgpu
from gpu_world import USAGE, make_buffer

import dlpack_web as dlw
from dlpack_web._backends.desktop import idle
from dlpack_web._backends.desktop import wgpu as our_wgpu
from dlpack_web._backends.model.buffers.table import slot_of
from dlpack_web._backends.model.errors.operations import attempt

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

ALL = USAGE["STORAGE"] | USAGE["COPY_SRC"] | USAGE["COPY_DST"]
FILL = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
  x[id.x] = 7;
}"""


def lent(device, values):
    """A wgpu.GPUBuffer with these numbers."""
    data = np.asarray(values, "f4")
    return device.gpu.create_buffer_with_data(data=data, usage=ALL)


# --- without a copy, both ways ------------------------------------------------------------


async def test_a_buffer_of_wgpu_is_shared(device):
    buffer = lent(device, [1, 2, 3, 4, 5, 6])
    with dlw.webgpu.from_wgpu(buffer, (2, 3), "float32") as tensor:
        assert (tensor.device, tensor.shape) == (device, (2, 3))
        assert (await tensor.to_host()).tolist() == [[1, 2, 3], [4, 5, 6]]
        assert tensor.to_wgpu() is buffer
        dlw.webgpu.Kernel(FILL)(tensor)
    back = np.frombuffer(device.gpu.queue.read_buffer(buffer), "f4")
    assert back.tolist() == [7] * 6


async def test_a_tensor_is_a_buffer_of_wgpu(device):
    array = np.arange(6, dtype="f4")
    with dlw.from_dlpack(array, device=device) as tensor:
        buffer = tensor.to_wgpu()
        assert isinstance(buffer, wgpu.GPUBuffer)
        with tensor[2:] as view:
            assert view.to_wgpu() is buffer
            assert view.byte_offset == 8
    # It outlives the tensor, and is never used for another.
    with dlw.from_dlpack(np.zeros(6, "f4"), device=device) as other:
        assert other.to_wgpu() is not buffer
    assert bytes(device.gpu.queue.read_buffer(buffer, 0, 24)) == array.tobytes()


def test_a_strided_tensor_is_no_buffer_of_wgpu(device):
    """The receiver would read its neighbours."""
    with (
        dlw.empty((4, 4), device=device) as tensor,
        tensor[:, ::2] as view,
        pytest.raises(BufferError, match=r"has strides \(4, 2\): on WebGPU it can be"),
    ):
        view.to_wgpu()


async def test_a_device_of_wgpu_is_registered_once(device):
    assert dlw.webgpu.use_device(device.gpu) == device
    gpu = (await wgpu.gpu.request_adapter_async()).request_device_sync()
    buffer = gpu.create_buffer(size=16, usage=ALL)
    with dlw.webgpu.from_wgpu(buffer, 4, "int32") as tensor:
        assert tensor.device.gpu is gpu
        assert tensor.device == dlw.webgpu.use_device(gpu)
    with pytest.raises(TypeError, match="GPUDevice"):
        dlw.webgpu.use_device(buffer)
    gpu.destroy()


# --- what would end the process -----------------------------------------------------------


async def test_a_buffer_of_another_device_is_refused(device):
    other = await dlw.webgpu.request_device(label="other")
    buffer = lent(other, [1, 2, 3, 4])
    with pytest.raises(BufferError, match="another device"):
        dlw.from_gpu_buffer(buffer, 4, "float32", device=device)
    with (
        dlw.from_gpu_buffer(buffer, 4, "float32", device=other) as there,
        dlw.empty(4, device=device) as here,
    ):
        for copy in (False, None):
            with pytest.raises(BufferError) as caught:
                there.to_device(device, copy=copy)
            assert str(other) in str(caught.value)
            assert str(device) in str(caught.value)
        # The default device may have the label of the program that asked for it first.
        words = (
            rf'^Tensor float32.* on {other} cannot be used on {device}( \(".+"\))?: devices do not '
            r"share buffers; await its to_host\(\), then upload it with to_device\(\)$"
        )
        with pytest.raises(BufferError, match=words):
            here.write(there)
    other.gpu.destroy()


def test_a_mapped_buffer_is_refused(device):
    mapped = device.gpu.create_buffer(size=16, usage=ALL, mapped_at_creation=True)
    with pytest.raises(BufferError, match="is mapped: unmap"):
        dlw.webgpu.from_wgpu(mapped, 4, "float32")
    mapped.unmap()
    dlw.webgpu.from_wgpu(mapped, 4, "float32").release()


async def test_a_destroyed_buffer_is_refused_wherever_it_is_used(device):
    buffer = lent(device, [1, 2, 3, 4])
    kernel = dlw.webgpu.Kernel(FILL)
    with (
        dlw.webgpu.from_wgpu(buffer, 4, "float32") as tensor,
        dlw.empty(4, device=device) as good,
    ):
        kernel(tensor)
        buffer.destroy()
        for use in (
            lambda: kernel(tensor),
            lambda: tensor.write(np.zeros(4, "f4")),
            lambda: good.write(tensor),
            lambda: np.asarray(tensor),
            lambda: dlw.webgpu.from_wgpu(buffer, 4, "float32"),
        ):
            with pytest.raises(BufferError, match="was destroyed"):
                use()
        with pytest.raises(BufferError, match="was destroyed"):
            await tensor.to_host()
        assert not (await good.to_host()).any()


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        ("Parent device is lost", True),
        ('Validation Error: Device "my GPU" is lost', True),
        ('[Device "my GPU"] is lost', True),
        ("[Device] is lost.", True),
        ("Device my GPU is lost", False),
        ("the device was not lost", False),
    ],
)
def test_errors_of_a_lost_device_are_known_by_their_words(told, lost):
    assert our_wgpu.is_lost(RuntimeError(told)) == lost


def test_a_buffer_is_taken_at_no_negative_offset(device):
    buffer = make_buffer(device, 16)
    with pytest.raises(ValueError, match=r"^byte_offset -1 is negative$"):
        dlw.webgpu.from_wgpu(buffer, 2, "uint8", byte_offset=-1)


async def test_an_adapter_in_software():
    device = await dlw.webgpu.request_device(
        forceFallbackAdapter=True, featureLevel="core"
    )
    assert dlw.empty(3, "float32", device=device).device == device
    with pytest.raises(TypeError, match=r"^forceFallbackAdapter must be a boolean"):
        await dlw.webgpu.request_device(forceFallbackAdapter="yes")


async def test_a_feature_that_there_is_not_is_named():
    with pytest.raises(TypeError, match=r"^no such feature: .*no-such-feature"):
        await dlw.webgpu.request_device(features=["no-such-feature"])


async def test_a_device_that_is_lost_while_a_read_waits_for_it(monkeypatch):
    lost = await dlw.webgpu.request_device(label="lost")
    with dlw.empty(4, device=lost) as tensor:
        never = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(our_wgpu, "finish", lambda promise: never)
        reading = asyncio.ensure_future(tensor.to_host())
        await asyncio.sleep(0.05)
        lost.gpu.destroy()
        with pytest.raises(dlw.DeviceLostError, match="destroyed"):
            await asyncio.wait_for(reading, 120)
    never.cancel()


async def test_times_are_in_ticks_of_the_queue(monkeypatch, device):
    if "timestamp-query" not in device.gpu.features:
        pytest.skip("the adapter has no timestamp-query")
    monkeypatch.setattr(our_wgpu, "tick", lambda gpu: 0.0, raising=False)
    with dlw.empty(1, device=device) as x:
        assert await dlw.webgpu.Kernel(FILL).time(x, workgroups=1) == 0


async def test_nothing_is_asked_of_a_device_that_is_known_to_be_lost():
    """The GPU does not say so of every call."""
    gone = await dlw.webgpu.request_device(label="gone")
    record = idle.devices[gone.id]
    asked = []
    assert attempt(record, "asking", lambda: asked.append(1)) is None
    record.lose("taken away")
    with pytest.raises(dlw.DeviceLostError, match="taken away"):
        attempt(record, "asking", lambda: asked.append(2))
    assert asked == [1]
    gone.gpu.destroy()


# --- what is missing ----------------------------------------------------------------------


START = """
import asyncio, sys
sys.path[:0] = {path!r}
{before}
import dlpack_web as dlw
"""


def ask(code, before="", **environment):
    """What a fresh Python says that imported dlpack_web, `before` that something else."""
    start = START.format(path=sys.path, before=before)
    command = [sys.executable, "-c", start + code]
    done = subprocess.run(
        command,
        capture_output=True,
        check=True,
        text=True,
        timeout=100,
        env=os.environ | environment,
    )
    return done.stdout + done.stderr


ASK = """
try:
    asyncio.run(dlw.webgpu.request_device())
except BufferError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("sys.modules['wgpu'] = None", "pip install 'dlpack-web[webgpu]'"),
        (
            "import types; old = types.ModuleType('wgpu'); old.__version__ = '0.21.1'; "
            + "sys.modules['wgpu'] = old",
            (
                "wgpu 0.21.1 is too old; 0.32 or newer is needed: pip install "
                "'dlpack-web[webgpu]' --upgrade"
            ),
        ),
        (
            "import types; sys.modules['wgpu'] = types.ModuleType('wgpu')",
            "wgpu 0 is too old; 0.32 or newer is needed: pip install",
        ),
    ],
    ids=["missing", "too old", "nameless"],
)
def test_what_to_install(before, words):
    assert words in ask(ASK, before)


def test_a_newer_version_is_taken():
    before = "import wgpu; wgpu.__version__ = '1.2.3'"
    assert "is needed" not in ask(ASK, before)


def test_no_adapter_says_what_to_install():
    """WGPU_BACKEND_TYPE is wgpu-py's own; there is no Direct3D here."""
    said = ask(
        ASK,
        WGPU_BACKEND_TYPE="D3D12",
        VK_DRIVER_FILES="/nowhere.json",
    )
    assert "found no adapter" in said
    assert "mesa-vulkan-drivers" in said


def test_importing_dlpack_web_imports_nothing_of_it():
    said = ask("""
with dlw.from_buffer(b"abc") as t:
    dlw.inspect()
    t.to_device("cpu").release()
    found = [name for name in sys.modules if name.partition(".")[0] == "numpy"]
    repr(t)  # shows the elements as NumPy does
found += [name for name in sys.modules if name.partition(".")[0] == "wgpu"]
print(found + [name for name in sys.modules if "dlpack_web._backends.desktop" in name])
""")
    assert said.strip() == "[]"


@pytest.mark.parametrize("count", [1, 5, 6, 7])
async def test_copies_of_odd_lengths_show_nothing_of_their_neighbours(count, device):
    """What is behind the elements of a copy is 0."""
    whole = np.full(64, 255, "u1")
    with (
        dlw.from_dlpack(whole, device=device) as tensor,
        tensor[4:][:count] as part,
        dlw.empty(count, "uint8", device=device) as copy,
    ):
        copy.write(part)
        raw = bytes(device.gpu.queue.read_buffer(copy.to_wgpu()))
    assert raw == b"\xff" * count + bytes(len(raw) - count)


# --- besides --------------------------------------------------------------------------------


def test_features_name_the_adapter():
    found = dlw.features()
    assert found["browser"] is False
    assert found["webgpu"]["available"]
    assert found["webgpu"]["maxBufferSize"] >= 1 << 28


def test_without_an_event_loop_awaiting_blocks(device):
    """A coroutine that is sent into by hand."""
    with dlw.from_dlpack(np.arange(3), device=device) as tensor:
        with pytest.raises(StopIteration) as ended:
            tensor.to_host().send(None)
        assert ended.value.value.tolist() == [0, 1, 2]


def test_threads_share_a_device(device):
    """Each sees its own elements, whoever lets go of them."""
    handed = []

    def work(seed):
        for turn in range(30):
            array = np.full((50, 40), seed * 100 + turn, "f8")
            tensor = dlw.from_dlpack(array[::2, ::2]).to_device(device, dtype="float32")
            assert (np.asarray(tensor) == array[::2, ::2]).all()
            handed.append(tensor)
            if len(handed) > 5:
                handed.pop(0).release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for tensor in handed:
        tensor.release()


def test_a_read_that_fails_keeps_no_holds(device):
    with dlw.empty(4, device=device) as tensor:
        dlw.webgpu.Kernel(FILL.replace("7", "nonsense"))(tensor, workgroups=1)
        before = dlw.live_tensors()
        with pytest.raises(dlw.KernelError) as told:
            tensor.numpy()
        # The traceback has the frames, and with them what would have been returned.
        assert dlw.live_tensors() <= before + 1, told
        del told


def test_a_buffer_that_ends_within_a_word_says_how_to_mend_it(device):
    buffer = make_buffer(device, 6)
    with (
        dlw.from_gpu_buffer(buffer, 6, "uint8", device=device) as tensor,
        pytest.raises(BufferError, match=r"8 bytes.*\(it has 6\): .*multiple of 16"),
    ):
        tensor.numpy()
    with (
        dlw.from_gpu_buffer(buffer, 6, "uint8", device=device) as tensor,
        dlw.empty(6, "uint8", device=device) as other,
        pytest.raises(
            BufferError,
            match=r"copying .* and 8 bytes in its GPUBuffer \(it has 6\): "
            "pad the buffer to a multiple of 16$",
        ),
    ):
        other.write(tensor)


def test_no_elements_are_no_copy(device):
    with dlw.empty(0, device=device) as source, dlw.empty(0, device=device) as target:
        before = dlw.webgpu.stats()[device.id]["copies"]
        target.write(source)
        assert dlw.webgpu.stats()[device.id]["copies"] == before


def test_a_buffer_that_the_gpu_refuses(device, monkeypatch):
    def refuse(**_):
        raise wgpu.GPUOutOfMemoryError("no room left")

    monkeypatch.setattr(device.gpu, "create_buffer", refuse)
    with pytest.raises(BufferError) as told:
        dlw.empty(3_000_017, "uint8", device=device)
    label = device.gpu.label  # of the test that requested it
    named = f'{device} ("{label}")' if label else str(device)
    expected = f"createBuffer for 3000032 bytes failed on {named}: no room left"
    assert str(told.value) == expected


def test_what_was_written_is_gone_when_a_buffer_is_used_again(device):
    with dlw.empty(3000, device=device) as first:
        used = slot_of(first).buffer
        first[1000:2000].write(np.ones(1000, "f4"))
    with dlw.empty(3000, device=device) as second:
        assert slot_of(second).buffer is used
        assert not np.asarray(second).any()


async def test_a_device_without_buffers_is_looked_after(device):
    """Before its first buffer, too; and sizes that came once leave nothing behind."""
    other = await dlw.webgpu.request_device(label="without buffers")
    pool = idle.devices[other.id].pool
    idle.drop_idle()
    for count in (10_000, 20_000, 30_000):
        dlw.empty(count, device=other).release()
    while idle.drop_idle():
        pass
    assert (pool.idle_bytes, pool._idle) == (0, {})
    other.gpu.destroy()


def test_to_take_an_idle_buffer_is_a_use(device):
    dlw.empty(1000, device=device).release()
    dlw.empty(2000, device=device).release()
    idle.drop_idle()
    with dlw.empty(1000, device=device):
        idle.drop_idle()
        assert dlw.webgpu.stats()[device.id]["idleBytes"] >= 8000


def test_idle_buffers_are_counted(device):
    def row():
        return dlw.webgpu.stats()[device.id]

    def made():
        before = row()["bytes"]
        tensor = dlw.empty(1_000_003, device=device)
        return tensor, row()["bytes"] - before

    first, size = made()
    second, _ = made()
    idle = row()["idleBytes"]
    first.release()
    second.release()
    assert row()["idleBytes"] == idle + 2 * size
    again, _ = made()
    assert row()["idleBytes"] == idle + size
    again.release()


def test_idle_buffers_go_when_nothing_was_used_for_a_while(device):
    def kept():
        return next(row for row in dlw.webgpu.stats() if row["device"] == str(device))[
            "idleBytes"
        ]

    dlw.empty(1000, device=device).release()
    idle.drop_idle()
    assert kept() >= 4000  # it was used since the call before
    dlw.empty(1000, device=device).release()
    idle.drop_idle()
    assert kept() >= 4000
    assert not idle.drop_idle()
    assert kept() == 0
    with dlw.empty(1000, device=device) as tensor:
        assert not np.asarray(tensor).any()


def test_a_thread_looks_after_idle_buffers():
    """That of its own accord, and the process ends without waiting for it."""
    said = ask("""
import time
device = asyncio.run(dlw.webgpu.request_device())
from dlpack_web._backends.desktop import idle
assert idle._IDLE_S == 10  # as in js/src/webgpu/buffers/pool.ts
idle._IDLE_S = 0.01
for _ in range(2):
    dlw.empty(1000, device=device).release()
    for _ in range(3000):
        (row,) = dlw.webgpu.stats()
        if not row["idleBytes"]:
            break
        time.sleep(0.01)
    print(row["created"], row["idleBytes"])
idle._IDLE_S = 1000
dlw.empty(1000, device=device).release()
""")
    assert said.split() == ["1", "0", "2", "0"]


def test_a_release_that_raises_spoils_nothing_else(device, monkeypatch):
    seen, calls = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_value))

    def fails():
        calls.append("fails")
        raise ValueError("a release of others")

    buffer = make_buffer(device, 16)
    tensors = [
        dlw.from_gpu_buffer(buffer, 4, "float32", device=device, release=release)
        for release in (fails, lambda: calls.append("works"), fails)
    ]
    for tensor in tensors:
        tensor.release()
    assert calls == ["fails", "works", "fails"]
    assert [str(error) for error in seen] == ["a release of others"] * 2
    seen.clear()


USES = """
import numpy as np

KERNEL = dlw.webgpu.Kernel({fill!r})
DATA = asyncio.run(dlw.save(None, dlw.from_buffer(b"abc"), format="npy"))
USES = [
    lambda: dlw.from_dlpack(np.arange(3.0), device="webgpu").device,
    lambda: dlw.from_buffer(b"abc").to_device("webgpu").device,
    lambda: dlw.empty(3, device="webgpu").device,
    lambda: asyncio.run(dlw.open(DATA, device="webgpu")).device,
    lambda: asyncio.run(dlw.webgpu.from_image(np.zeros((2, 2, 4), "u1"))).device,
    lambda: asyncio.run(KERNEL.ready()),
]
async def in_a_loop():
    return dlw.empty(3, device="webgpu").device
USES.append(lambda: asyncio.run(in_a_loop()))
for i, use in enumerate(USES):
    use()
    rows = dlw.webgpu.stats()
    assert len(rows) == i + 1, (i, rows)
    assert str(asyncio.run(dlw.webgpu.request_device())) == rows[i]["device"]
    dlw.Device(15, i).gpu.destroy()
print("all")
"""


def test_a_program_that_asked_for_no_device_gets_one():
    said = ask(USES.format(fill=FILL))
    assert said.split() == ["all"]


def test_a_buffer_of_a_device_that_is_not_registered():
    """No fresh device could be the buffer's."""
    said = ask("""
try:
    dlw.from_gpu_buffer(None, 3, "float32", device="webgpu")
except BufferError as error:
    print(error)
print(dlw.webgpu.stats())
""")
    assert "use_device(gpu)" in said
    assert said.endswith("[]\n")


def test_without_options_the_first_device_is_given_whoever_made_it():
    said = ask("""
import wgpu
theirs = dlw.webgpu.use_device(wgpu.gpu.request_adapter_sync().request_device_sync())
labelled = asyncio.run(dlw.webgpu.request_device(label="ours"))
print(asyncio.run(dlw.webgpu.request_device()) == theirs != labelled)
""")
    assert said.split() == ["True"]


def test_two_threads_that_request_a_device_get_one():
    said = ask("""
import threading
found, barrier = [], threading.Barrier(4)
def request():
    barrier.wait()
    found.append(asyncio.run(dlw.webgpu.request_device()))
threads = [threading.Thread(target=request) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)), len(dlw.webgpu.stats()))
""")
    assert said.split() == ["4", "1", "1"]


def test_a_fault_that_nobody_reads_is_told_at_the_end():
    said = ask(f"""
t = dlw.empty(3, device=asyncio.run(dlw.webgpu.request_device()))
k = dlw.webgpu.Kernel({FILL.replace("7", "wrong")!r}, label="unread")
k(t)
""")
    assert 'RuntimeWarning: compiling kernel "unread"' in said


@pytest.mark.parametrize(
    "view",
    [np.s_[::2, 1:], np.s_[::-1, ::-1], np.s_[3, ::3]],
    ids=["steps", "reversed", "row"],
)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
async def test_strided_views_are_read(dtype, view, device):
    array = np.arange(7 * 9).reshape(7, 9).astype(dtype)
    with dlw.from_dlpack(array, device=device) as tensor, tensor[view] as part:
        assert (await part.to_host() == array[view]).all()
        with part.permute_dims(tuple(range(part.ndim))[::-1]) as turned:
            assert (np.asarray(turned) == array[view].T).all()


# --- images -----------------------------------------------------------------------------------


def pattern(height, width):
    """RGBA pixels, every channel different."""
    pixels = (np.arange(height * width * 4) * 37 % 251).astype("u1")
    return pixels.reshape(height, width, 4)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
async def test_arrays_are_images(dtype, channels, device):
    pixels = pattern(5, 3)
    image = await dlw.webgpu.from_image(pixels, device, dtype, channels)
    with image:
        assert (image.shape, image.dtype) == ((5, 3, channels), dtype)
        assert (await dlw.webgpu.to_image(image) == pixels[..., :channels]).all()


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 1), (5, 3, 3)])
async def test_arrays_without_alpha_are_opaque(shape, device):
    pixels = (np.arange(np.prod(shape)) * 37 % 251).astype("u1").reshape(shape)
    expected = np.full((5, 3, 4), 255, "u1")
    expected[..., :3] = pixels if shape[2:] == (3,) else pixels.reshape(5, 3, 1)
    with await dlw.webgpu.from_image(pixels, device) as image:
        assert np.asarray(image).tolist() == expected.tolist()


@pytest.mark.parametrize("format", ["rgba8unorm", "bgra8unorm"])
async def test_textures_of_wgpu(format, device):
    pixels = pattern(3, 70)
    texture = device.gpu.create_texture(
        size=(70, 3, 1), format=format, usage="COPY_SRC | COPY_DST"
    )
    order = [0, 1, 2, 3] if format == "rgba8unorm" else [2, 1, 0, 3]
    device.gpu.queue.write_texture(
        {"texture": texture},
        np.ascontiguousarray(pixels[..., order]),
        {"bytes_per_row": 280},
        (70, 3, 1),
    )
    with await dlw.webgpu.from_image(texture, device) as tensor:
        assert (np.asarray(tensor) == pixels).all()


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        (np.zeros((2, 2, 2), "u1"), {}, BufferError, "is not an image"),
        (np.zeros((2, 2, 3)), {}, BufferError, "float64"),
        (
            np.zeros((0, 2, 3), "u1"),
            {},
            BufferError,
            "an image of 2 x 0 has no pixels: it is empty, closed, or not loaded yet$",
        ),
        (
            [[1]],
            {},
            TypeError,
            "^from_image takes an array, a Pillow image or a wgpu.GPUTexture, not a list: PIL",
        ),
    ],
)
async def test_images_that_are_refused(source, options, error, words, device):
    with pytest.raises(error, match=words):
        await dlw.webgpu.from_image(source, device, **options)


async def test_textures_that_are_refused(device):
    def texture(usage, format="rgba8unorm"):
        return device.gpu.create_texture(size=(2, 2, 1), format=format, usage=usage)

    needed = (
        r"format rgba8unorm or bgra8unorm with GPUTextureUsage\.COPY_SRC, 2d, of one "
        "layer and one sample; this is "
    )
    for one, told in (
        (texture(2), "rgba8unorm with usage 2, 2d, of 1 and 1$"),
        (texture(3, "r32float"), "r32float with usage 3, 2d, of 1 and 1$"),
    ):
        with pytest.raises(BufferError, match=needed + told):
            await dlw.webgpu.from_image(one, device)


async def test_a_destroyed_texture_is_refused(device):
    texture = device.gpu.create_texture(
        size=(2, 2, 1), format="rgba8unorm", usage="COPY_SRC"
    )
    texture.destroy()
    before = dlw.live_tensors()
    with pytest.raises(BufferError, match=r"(?i)reading a GPUTexture .*destroyed"):
        await dlw.webgpu.from_image(texture, device)
    assert dlw.live_tensors() == before


async def test_tensors_that_are_no_images(device):
    for shape in ((2, 2), (2, 2, 2), (2, 2, 3, 1)):
        with dlw.empty(shape, "uint8") as tensor:
            with pytest.raises(BufferError) as caught:
                await dlw.webgpu.to_image(tensor)
            assert str(caught.value) == (
                f"{tensor._facts_alone()} is not an image: its shape must be (height, "
                "width, channels), channels being 1, 3 or 4"
            )
    with dlw.empty((2, 2, 3), "float64") as tensor:
        with pytest.raises(BufferError) as caught:
            await dlw.webgpu.to_image(tensor)
        assert str(caught.value) == (
            f"{tensor._facts_alone()} as an image is not supported: use uint8 (0 to 255) "
            "or float32 (0 to 1)"
        )
    for given, name in (
        (np.zeros((2, 2, 3), "u1"), "an ndarray"),
        (None, "a NoneType"),
    ):
        with pytest.raises(TypeError, match=f"^to_image takes a Tensor, not {name}$"):
            await dlw.webgpu.to_image(given)
    with (
        dlw.empty((2, 2, 3), device=device) as tensor,
        pytest.raises(BufferError, match="JavaScript is available only in Pyodide"),
    ):
        await dlw.webgpu.to_canvas(tensor, None)
    with pytest.raises(TypeError, match=r"^to_canvas draws a Tensor, not an ndarray$"):
        await dlw.webgpu.to_canvas(np.zeros((2, 2, 3), "u1"), None)
