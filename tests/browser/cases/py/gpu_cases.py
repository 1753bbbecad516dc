"""WebGPU from Python, inside the page: what goes up must come down unchanged."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from gpu_world import (
    counted,
    get_bytes,
    only_in_a_page,
    run,
    same,
    set_bytes,
    start_counting,
)

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

TABLE = json.loads((Path(__file__).parents[3] / "dtypes.json").read_text())
NAMES = [entry["name"] for entry in TABLE] + ["float32x4", "float4_e2m1fnx2"]


@pytest.mark.parametrize("shape", [(3, 5), (1,), (7,), (), (0, 4)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_round_trip_keeps_every_byte(name, shape):
    with dlw.empty(shape, name) as tensor:
        pattern = bytes(i * 37 % 251 for i in range(int(tensor.nbytes)))
        set_bytes(tensor, pattern)
        # Without what lies behind packed elements, in the last byte.
        elements = tensor.tobytes()
        assert elements[:-1] == pattern[:-1]
        with tensor.to_device("webgpu") as on_gpu:
            assert (on_gpu.shape, on_gpu.dtype) == (shape, name)
            assert str(on_gpu.device).startswith("webgpu:")
            with on_gpu.to_device("cpu") as back:
                assert get_bytes(back) == elements


@pytest.mark.parametrize("count", [1, 3, 5, 7])
@pytest.mark.parametrize("dtype", ["uint8", "float16"])
async def test_odd_lengths_keep_their_neighbours(dtype, count):
    """WebGPU copies groups of 4 bytes; what lies behind the array must stay."""
    memory = np.zeros(count + 8, dtype)
    source = np.arange(1, count + 1).astype(dtype)
    with dlw.from_dlpack(source).to_device("webgpu") as on_gpu:
        await on_gpu.to_host(out=memory[:count])
    assert (memory[:count] == source).all()
    assert not memory[count:].any()


@only_in_a_page("JavaScript sees the padding, too")
@pytest.mark.parametrize("make", [lambda bits: bits, np.ndarray.copy])
async def test_padded_elements_keep_a_byte_each(make):
    """Without ml_dtypes an array of int4 is raw bytes that carry the name."""
    raw = np.dtype("V1", metadata={"dlpack": "int4"})
    array = make(np.arange(5, dtype=np.uint8)).view(raw)
    with dlw.from_dlpack(array) as host, host.to_device("webgpu") as on_gpu:
        for tensor in (host, host.js, on_gpu, on_gpu.js, dlw.from_js(on_gpu.js)):
            assert (tensor.dtype, tensor.nbytes, tensor.padded) == ("int4", 5, True)
        assert list(host.js.data.to_py()) == [0, 1, 2, 3, 4]
        assert host.js.data.byteOffset == array.ctypes.data
        back = await on_gpu.to_host()
    assert back.dtype.metadata == raw.metadata
    assert back.tobytes() == array.tobytes()


async def test_packed_elements_are_unpacked_on_the_way_to_numpy():
    with dlw.empty(3, "uint4") as host:
        set_bytes(host, bytes([0x21, 0xF3]))
        with host.to_device("webgpu") as on_gpu:
            assert on_gpu.nbytes == 2
            assert (await on_gpu.to_host()).tobytes() == bytes([1, 2, 3])


async def test_strided_gpu_tensor_of_another_producer_is_read(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "native")
    from forge import versioned

    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with dlw.from_dlpack(array).to_device("webgpu") as on_gpu:
        capsule = on_gpu.__dlpack__(max_version=(1, 0))
        struct = versioned(capsule).dl_tensor
        struct.shape[0], struct.shape[1] = 3, 2
        struct.strides[0], struct.strides[1] = 1, 3
        with dlw.from_dlpack(capsule) as transposed:
            assert transposed.strides == (1, 3)
            np.testing.assert_array_equal(await transposed.to_host(), array.T)
            np.testing.assert_array_equal(np.asarray(transposed), array.T)


@only_in_a_page("JavaScript")
def test_packed_elements_with_strides_do_not_reach_javascript(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "native")
    from forge import Forged

    producer = Forged(code=1, bits=4, shape=(3, 2), strides=(1, 3))
    with dlw.from_dlpack(producer) as host:
        with pytest.raises(BufferError, match="strided uint4 cannot come to JS"):
            _ = host.js
        with dlw.from_dlpack(host, copy=True) as copy:
            assert copy.js.nbytes == 3


async def test_strided_array_arrives_packed():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (array.T, array[::-1, ::2], np.broadcast_to(array[0], (3, 6))):
        with dlw.from_dlpack(view) as host, host.to_device("webgpu") as on_gpu:
            assert (await on_gpu.to_host() == view).all()


async def test_several_readbacks_share_one_map():
    arrays = [np.full(n, n, np.float32) for n in (1, 100, 3000)]
    tensors = [dlw.from_dlpack(array).to_device("webgpu") for array in arrays]
    start_counting()
    results = await dlw.to_host(*tensors)
    counts = counted()
    assert (counts.map_async, counts.copies) == (1, 3)
    assert counts.copied_bytes == sum(array.nbytes for array in arrays)
    assert all((a == b).all() for a, b in zip(arrays, results, strict=True))
    for tensor in tensors:
        tensor.release()


async def test_upload_and_readback_copy_once():
    array = np.ones(1000, np.float32)
    start_counting()
    tensor = dlw.from_dlpack(array).to_device("webgpu")
    up = counted()
    start_counting()
    await tensor.to_host()
    down = counted()
    tensor.release()
    assert (up.copies, up.copied_bytes, up.map_async) == (1, 4000, 0)
    assert (down.copies, down.copied_bytes, down.map_async) == (1, 4000, 1)


def test_tasks_that_block_at_once_get_their_own():
    """Each is suspended in the middle of Python, and woken when its own elements are there."""
    tensors = [
        dlw.from_dlpack(np.full(1 << (20 - 4 * (i % 5)), i, "f4"), device="webgpu")
        for i in range(15)
    ]

    async def read(i):
        await asyncio.sleep(0)
        return np.asarray(tensors[i])

    async def everything():
        return await asyncio.gather(*map(read, range(15)))

    for i, array in enumerate(run(everything())):
        assert array.shape == tensors[i].shape
        assert (array == i).all()
    for tensor in tensors:
        tensor.release()


def test_upload_takes_a_snapshot():
    array = np.zeros(4, np.float32)
    with dlw.from_dlpack(array).to_device("webgpu") as tensor:
        array[:] = 9
        assert not np.asarray(tensor).any()


def test_same_device_is_shared_not_copied():
    with dlw.empty(3, device="webgpu") as tensor, tensor.to_device("webgpu") as again:
        assert same(again.gpu_buffer, tensor.gpu_buffer)
    assert again.released


@only_in_a_page("JavaScript")
def test_tensor_outlives_its_js_side():
    tensor = dlw.from_dlpack(np.arange(4, dtype=np.float32)).to_device("webgpu")
    tensor.js.release()
    assert (np.asarray(tensor) == [0, 1, 2, 3]).all()
    tensor.release()


async def test_small_gpu_tensors_show_themselves_and_large_ones_are_not_read():
    small = dlw.from_dlpack(np.arange(32, dtype=np.float32), device="webgpu")
    large = dlw.empty(1 << 20, device="webgpu")
    with small, large:
        name = str(small.device)

        def down():
            rows = {row["device"]: row for row in dlw.webgpu.stats()}
            return rows[name]["down"]

        before = down()
        assert "histogram: 0 to 31" in small._repr_html_()
        assert down() == before + 128
        text = large._repr_html_()
        assert "[0., 0., 0., ..., 0., 0., 0.]" in text
        assert ">all elements: await t.to_host()<" in text
        assert "too large" not in text
        ends = down() - before - 128
        assert 24 <= ends <= 8192  # three elements of both ends, and what is near
        assert f">{name}<" in large._repr_html_()
        assert ">dlpack_web, in its pool<" in large._repr_html_()


async def test_inspect_tells_what_the_gpu_holds():
    with dlw.from_dlpack(np.zeros(1000, np.float32), device="webgpu") as x:
        report = dlw.inspect({"x": x})
        (row,) = [row for row in report.devices if row["device"] == str(x.device)]
        assert row["buffers"] >= 1
        assert row["bytes"] >= 4000
        assert row["up"] >= 4000
        assert report.nbytes == {str(x.device): 4000}
        await x.to_host()
        dlw.from_dlpack(np.zeros(3), device="webgpu").release()
        (later,) = [r for r in dlw.inspect().devices if r["device"] == str(x.device)]
        moved = [later[name] - row[name] for name in ("up", "down", "copied", "copies")]
        assert moved == [24, 4000, 0, 2]
        assert f">{x.device}<" in report._repr_html_()
