"""Reading back: into what, and what is given up."""

import asyncio
import gc
import weakref

import numpy as np
import pytest
from gpu_world import counted, start_counting

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

KERNEL = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] += 1; }
}"""
COUNT = 300_000


def upload(count=COUNT, start=0):
    return dlw.from_dlpack(np.arange(start, start + count, dtype="f4"), device="webgpu")


async def all_is_done():
    """The GPU has done what was submitted, and JavaScript what came of it."""
    for _ in range(3):
        with upload(4) as later:
            await later.to_host()


async def cancel(work):
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)  # it has begun
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def time_out(work):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work, 0)


async def leave_a_group(work):
    """Another task of the group fails."""

    async def fail():
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(work)
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await both()


async def throw_in(work):
    """As KeyboardInterrupt comes into a coroutine that waits."""

    class Stop(BaseException):
        pass

    waiting = work.__await__()
    waiting.send(None)
    with pytest.raises(Stop):
        waiting.throw(Stop())


WAYS = [cancel, time_out, leave_a_group, throw_in]


@pytest.mark.parametrize("way", WAYS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("strided", [False, True], ids=["whole", "strided"])
async def test_a_read_that_is_given_up_writes_nothing(way, strided):
    wide = np.full((COUNT, 2), 7, "f4")
    out = wide[:, 0] if strided else np.full(COUNT, 7, "f4")
    with upload() as tensor:
        work = tensor.to_host(out)
        await way(work)
        await all_is_done()
        assert (out == 7).all()
        assert (wide == 7).all()
        assert await tensor.to_host(out) is out
        assert (out == np.arange(COUNT)).all()


@pytest.mark.parametrize("way", WAYS, ids=lambda each: each.__name__)
async def test_nothing_keeps_what_a_read_was_given(way):
    outs = [np.zeros(COUNT, "f4"), np.zeros(5, "f4")]
    refs = [*map(weakref.ref, outs)]
    tensors = [upload(), upload(5)]
    live = dlw.live_tensors()
    for tensor, out in zip(tensors, outs, strict=True):
        await way(tensor.to_host(out))
    del out, outs
    assert dlw.live_tensors() == live  # at once
    for tensor in tensors:
        tensor.release()
    await all_is_done()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


async def test_reads_around_one_that_is_given_up_are_whole():
    """Staging buffers are not another read's as long as they are mapped."""
    for turn in range(20):
        with upload(1000, turn) as a, upload(1000, -turn) as b:
            works = [asyncio.ensure_future(x.to_host()) for x in (a, b, a, b)]
            await asyncio.sleep(0)
            for given_up in works[turn % 2 :: 2]:
                given_up.cancel()
            found = await asyncio.gather(*works, return_exceptions=True)
            again = await dlw.to_host(a, b)
            for at, got in enumerate(found):
                if at % 2 == turn % 2:
                    assert isinstance(got, asyncio.CancelledError)
                else:
                    assert (got == again[at % 2]).all()
            assert (again[0] == np.arange(turn, turn + 1000)).all()
            assert (again[1] == np.arange(-turn, 1000 - turn)).all()


async def test_two_reads_into_one_array_are_one_of_them():
    out = np.zeros(COUNT, "f4")
    with upload() as a, upload(start=1) as b:
        await asyncio.gather(a.to_host(out), b.to_host(out))
    assert (out - np.arange(COUNT) == out[0]).all()
    assert out[0] in (0, 1)


async def test_a_tensor_that_is_released_meanwhile_is_read():
    tensor, out = upload(), np.zeros(COUNT, "f4")
    reading = asyncio.ensure_future(tensor.to_host(out))
    await asyncio.sleep(0)
    tensor.release()
    others = [dlw.empty(COUNT, device="webgpu") for _ in range(3)]
    assert await reading is out
    assert (out == np.arange(COUNT)).all()
    for other in others:
        other.release()


async def test_timing_that_is_given_up_uses_no_tensor(gpu_features):
    if "timestamp-query" not in gpu_features:
        pytest.skip("this GPU measures no times")
    kernel = dlw.webgpu.Kernel(KERNEL)
    tensor = upload(64)
    before = np.arange(64) + (not dlw.features()["browser"])  # where it runs at once
    timing = asyncio.ensure_future(kernel.time(tensor))
    await asyncio.sleep(0)
    timing.cancel()
    await asyncio.gather(timing, return_exceptions=True)
    assert (await tensor.to_host() == before).all()
    await all_is_done()
    assert (await tensor.to_host() == before).all()
    tensor.release()


# --- the array that is given -----------------------------------------------------------------

# Elements of each kind: NumPy's own, of a byte and more that it lacks, packed, lanes.
DTYPES = ["float32", "int64", "bool", "complex64", "bfloat16", "float8_e4m3fn", "int4"]
DTYPES += ["uint2", "float4_e2m1fn", "float32x4", "bfloat16x2"]


def tensor_of(dtype, padded=False):
    raw = np.arange(1, 61, dtype="u1")
    if dtype == "bool":
        raw = raw % 2
    kind = dlw.DType(dtype)
    bits = 8 if padded else kind.bits * kind.lanes
    raw = raw[: 60 * 8 // bits * bits // 8]
    with dlw.from_buffer(raw) as whole:
        target = dlw.empty((raw.size * 8 // bits,), dtype)
        memory = memoryview(dlw._core._raw(target)[0])
        memory[:] = memoryview(whole)[: len(memory)]
    return target


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
@pytest.mark.parametrize("strided", [False, True], ids=["whole", "strided"])
async def test_an_array_like_the_result_is_written(dtype, where, strided):
    """Whatever the dtype, as it is read without one."""
    with tensor_of(dtype) as host, host.to_device(where) as tensor:
        result = await tensor.to_host()
        wide = np.zeros((*result.shape, 2), result.dtype)
        out = wide[..., 0] if strided else np.zeros_like(wide[..., 0])
        assert await tensor.to_host(out) is out
        assert out.tobytes() == result.tobytes()
        assert result.tobytes().strip(b"\0")
        assert not wide[..., 1].tobytes().strip(b"\0")


ROWS = {
    "contiguous": np.s_[20:30],
    "none": np.s_[20:20],
    "one": np.s_[7],
    "strided": np.s_[3:60:7],
    "backwards": np.s_[60:3:-7],
    "contiguous backwards": np.s_[30:20:-1],
    "every other column of strided": np.s_[3:60:7, ::2],
    "rows backwards within": np.s_[::13, ::-1],
    "three": np.s_[::40, None, 5:],
}


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
@pytest.mark.parametrize("odd", [False, True], ids=["words", "odd"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
async def test_rows_alone_are_read(rows, odd, dtype):
    """Where they begin within words, too: each copy then has the whole words around it."""
    width = 6003 if odd else 6000
    a = np.random.default_rng(0).integers(0, 256, (64, width)).astype(dtype)
    expected = a[rows]
    with dlw.from_dlpack(a, device="webgpu") as t, t[rows] as part:
        start_counting()
        result = await part.to_host()
        moved = counted().gpu_bytes
    assert np.array_equal(result, expected)
    each = (
        sum(6 + bytes_from_low_to_high(row) for row in expected)
        if expected.ndim > 1
        else a.nbytes
    )
    assert expected.nbytes <= moved <= min(each, 6 + bytes_from_low_to_high(expected))


def bytes_from_low_to_high(array):
    low, high = np.lib.array_utils.byte_bounds(array)
    return high - low if array.size else 0


@pytest.mark.parametrize("where", ["cpu", "webgpu"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float32x4"])
async def test_what_is_no_array_of_it_is_refused(where, dtype):
    with tensor_of(dtype) as host, host.to_device(where) as tensor:
        right = await tensor.to_host()
        for wrong, kind in [
            ([0, 0], "a list"),
            ((), "a tuple"),
            (b"abc", "a bytes"),
            (memoryview(b"abc"), "a memoryview"),
            (0, "an int"),
            (right.dtype.type, "a type"),
            (tensor, "a Tensor"),
        ]:
            with pytest.raises(
                TypeError, match=f"out must be a NumPy array, not {kind}"
            ):
                await tensor.to_host(wrong)
        for other in ("u2", ">f4", "f8", "V2", "V4", "S2", "M8[s]", "O"):
            out = np.empty(right.shape, other)
            with pytest.raises(
                ValueError, match=r"out has shape .* and dtype .*the tensor"
            ):
                await tensor.to_host(out)
        for shape in ((), (0,), right.shape[:-1], (*right.shape, 1), (1, *right.shape)):
            with pytest.raises(ValueError, match="out has shape"):
                await tensor.to_host(np.empty(shape, right.dtype))
        right.flags.writeable = False
        with pytest.raises(ValueError, match="out is read-only"):
            await tensor.to_host(right)


async def test_other_bits_of_the_same_width_are_no_out():
    """The message has both names."""
    with tensor_of("bfloat16") as a, tensor_of("float8_e4m3fn") as b:
        out = await b.to_host()
        with pytest.raises(ValueError, match=r"dtype float8_e4m3fn; .* and bfloat16"):
            await a.to_host(out)
