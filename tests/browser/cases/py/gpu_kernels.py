"""Kernels from Python: numbers, offsets, bind groups, compile errors, times."""

import asyncio
import ctypes

import numpy as np
import pytest
from gpu_world import adapter, collect, destroy, has_feature, limit

import dlpack_web as dlw
from dlpack_web._backends import default

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> factor: f32;
@group(0) @binding(3) var<uniform> first: u32;
@group(0) @binding(4) var<uniform> offset: i32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x + first;
  if (i < arrayLength(&y)) { y[i] = factor * x[i] + f32(offset); }
}
"""
ADD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() {
  for (var i = 0u; i < arrayLength(&y); i++) { y[i] += x[i]; }
}
"""
BOTH = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] += 1; y[0] += 10; }
"""


FILL = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> value: f32;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = value; }
"""


def upload(values):
    return dlw.from_dlpack(np.asarray(values, np.float32), device="webgpu")


@pytest.mark.parametrize(
    ("factor", "first", "offset"),
    [(2, 0, 0), (0.5, 1, -3), (np.float32(2), np.uint8(2), np.int64(4)), (-0.0, 0, 9)],
)
async def test_numbers_are_uniforms(factor, first, offset):
    kernel = dlw.webgpu.Kernel(SCALE)
    with upload([1, 2, 3, 4]) as x, upload([0] * 4) as y:
        kernel(x, y, factor, first, offset, workgroups=1)
        result = await y.to_host()
    expected = np.array([1, 2, 3, 4]) * float(factor) + int(offset)
    expected[: int(first)] = 0
    np.testing.assert_array_equal(result, expected.astype(np.float32))


def test_numbers_that_do_not_fit():
    kernel = dlw.webgpu.Kernel(SCALE)
    with upload([1]) as x, upload([0]) as y:
        for numbers, error, words in (
            ((1, -1, 0), ValueError, "binding 3: -1 is not a valid u32"),
            ((1, 0, 1.5), ValueError, "binding 4: 1.5 is not a valid i32"),
            ((1, 2**32, 0), ValueError, "is not a valid u32"),
            (
                (1, 0),
                ValueError,
                r"for each binding \(.*, .*\): 5, not 4",
            ),
            ((1, 0, "2"), TypeError, "argument 4 has type str"),
        ):
            with pytest.raises(error, match=words):
                kernel(x, y, *numbers, workgroups=1)
        with pytest.raises(
            TypeError, match=r"binding 0: numbers are for .*f32, i32 and u32$"
        ):
            kernel(1.0, y, 1, 0, 0, workgroups=1)


STRUCTURE = """
struct Params { scale: f32, bias: vec2f, count: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < params.count) { x[id.x] = params.scale * x[id.x] + params.bias.y; }
}
"""


async def test_a_structure_is_a_uniform_of_its_size():
    kernel = dlw.webgpu.Kernel(STRUCTURE)
    # WGSL's layout: scale at 0, bias at 8, count at 16; 24 bytes in all.
    params = np.array([2, 0, 0, 10, 0, 0], "f4")
    params.view("u4")[4] = 2
    with (
        upload([1, 2, 3]) as x,
        dlw.from_dlpack(params.view("u1"), device="webgpu") as whole,
        dlw.empty(16, "uint8", device="webgpu") as short,
    ):
        kernel(x, whole)
        assert (await x.to_host()).tolist() == [12, 14, 3]
        with pytest.raises(BufferError, match="16 bytes, the shader's Params needs 24"):
            kernel(x, short)


@pytest.mark.parametrize("kind", ["f32", "i32", "u32", "atomic<u32>"])
@pytest.mark.parametrize(
    ("dtype", "fits", "instead"),
    [
        ("float32", "f32", None),
        ("int32", "i32", None),
        ("uint32", "u32", None),
        ("complex64", "f32", None),
        ("uint8", "u32", None),
        ("float64", None, "float32"),
        ("complex128", None, "complex64"),
        ("int64", None, "int32"),
        ("uint64", None, "uint32"),
    ],
)
def test_elements_are_of_the_shaders_type(dtype, fits, instead, kind):
    kernel = dlw.webgpu.Kernel(
        f"@group(0) @binding(0) var<storage, read_write> x: array<{kind}>;"
        "@compute @workgroup_size(1) fn main() { _ = &x; }"
    )
    value, kind = f"array<{kind}>", kind.removeprefix("atomic<").removesuffix(">")
    with dlw.empty(4, dtype, device="webgpu") as x:
        if kind == fits or ("atomic" in value and dtype == "int32"):
            kernel(x, workgroups=1)
            return
        with pytest.raises(BufferError) as told:
            kernel(x, workgroups=1)
    assert f"is {dtype}, the shader's {value} is of {kind}: " in str(told.value)
    if instead:
        assert f'upload it with dtype "{instead}"' in str(told.value)


def test_a_written_tensor_that_shares_its_last_word_is_named():
    kernel = dlw.webgpu.Kernel(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;"
        "@compute @workgroup_size(1) fn main() { x[0] = 1; }"
    )
    with (
        dlw.empty(8, "uint8", device="webgpu") as whole,
        whole[:3] as part,
        pytest.raises(
            BufferError, match=r"^binding 0: .*uint8.*shares its last word of 4 bytes"
        ),
    ):
        kernel(part, workgroups=1)


async def test_offsets_that_cannot_be_bound_are_copied_on_the_gpu():
    """WebGPU binds at multiples of 256; neighbours stay as they are."""
    with upload(np.arange(32)) as whole:
        device, buffer = whole.device, whole.gpu_buffer

        def part(offset):
            options = {"device": device, "byte_offset": offset}
            return dlw.from_gpu_buffer(buffer, 4, "float32", **options)

        copied = sum(row["copied"] for row in dlw.webgpu.stats())
        copies = sum(row["copies"] for row in dlw.webgpu.stats())
        with part(4) as x, part(64) as y:
            dlw.webgpu.Kernel(ADD)(x, y, workgroups=1)
        # Some adapters bind at 64; the other one, and there and back, are copied.
        direct = 64 % limit(device.gpu, "minStorageBufferOffsetAlignment") == 0
        times = 1 if direct else 3
        after = dlw.webgpu.stats()
        assert sum(row["copied"] for row in after) - copied == times * 16
        assert sum(row["copies"] for row in after) - copies == times
        expected = np.arange(32.0)
        expected[16:20] += expected[1:5]
        np.testing.assert_array_equal(await whole.to_host(), expected)


def copied_tensors():
    return sum(row["copies"] for row in dlw.webgpu.stats())


def parts(whole, way, *ranges):
    """Tensors over floats of one GPUBuffer: views, or each with a handle of its own."""
    if way == "views":
        return [whole[begin:end] for begin, end in ranges]
    device, buffer = whole.device, whole.gpu_buffer
    return [
        dlw.from_gpu_buffer(
            buffer, end - begin, "float32", device=device, byte_offset=4 * begin
        )
        for begin, end in ranges
    ]


WAYS = pytest.mark.parametrize("way", ["views", "one GPUBuffer"])


# Elements 0, 64 and 128 can be bound where they are (with Dawn on NVIDIA all at multiples of 16
# bytes can); the others are put aside.
@WAYS
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 4), (0, 4)),
        ((0, 4), (1, 5)),
        ((1, 5), (0, 4)),
        ((1, 5), (1, 5)),
        ((1, 5), (4, 8)),
        ((4, 8), (1, 5)),
        ((64, 128), (0, 65)),
        ((0, 65), (64, 128)),
        ((65, 66), (64, 128)),
        ((127, 130), (64, 128)),
    ],
)
async def test_written_arguments_that_overlap_are_refused(first, second, way):
    kernel = dlw.webgpu.Kernel(BOTH)
    with upload(np.arange(192)) as whole:
        x, y = parts(whole, way, first, second)
        before = copied_tensors()
        with (
            x,
            y,
            pytest.raises(BufferError, match="arguments 0 and 1 of the kernel overlap"),
        ):
            kernel(x, y, workgroups=1)
        assert copied_tensors() == before, "something was put aside"
        np.testing.assert_array_equal(await whole.to_host(), np.arange(192))


@WAYS
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 4), (4, 8)),
        ((4, 8), (0, 4)),
        ((1, 5), (5, 9)),
        ((5, 9), (1, 5)),
        ((64, 128), (0, 64)),
        ((63, 64), (64, 128)),
        ((128, 129), (127, 128)),
        ((2, 2), (0, 4)),
        ((0, 4), (2, 2)),
    ],
)
async def test_written_neighbours_are_both_written(first, second, way, device):
    kernel = dlw.webgpu.Kernel(BOTH)
    expected = np.arange(192, dtype=np.float32)
    with upload(expected) as whole:
        x, y = parts(whole, way, first, second)
        before = copied_tensors()
        with x, y:
            kernel(x, y, workgroups=1)
        if first[1] > first[0] and second[1] > second[0]:  # there and back
            step = limit(device.gpu, "minStorageBufferOffsetAlignment")
            aside = [begin for begin, _ in (first, second) if 4 * begin % step]
            assert copied_tensors() - before == 2 * len(aside)
        for (begin, end), added in ((first, 1), (second, 10)):
            expected[begin : min(begin + 1, end)] += added
        np.testing.assert_array_equal(await whole.to_host(), expected)


@WAYS
@pytest.mark.parametrize(
    ("read", "written", "copies"),
    [
        ((0, 4), (1, 5), 2),
        ((1, 5), (0, 4), 1),
        ((1, 5), (1, 5), 3),
        ((0, 4), (0, 4), 1),
    ],
)
async def test_read_arguments_have_what_was_there_before(read, written, copies, way):
    kernel = dlw.webgpu.Kernel(ADD)
    expected = np.arange(192, dtype=np.float32)
    with upload(expected) as whole:
        x, y = parts(whole, way, read, written)
        before = copied_tensors()
        with x, y:
            kernel(x, y, workgroups=1)
        assert copied_tensors() - before == copies
        expected[slice(*written)] += np.arange(192)[slice(*read)]
        np.testing.assert_array_equal(await whole.to_host(), expected)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("element", ["f32", "vec2f", "vec4f", "mat4x4f"])
async def test_tensors_without_elements_are_bound(element, check):
    """An array of a shader has one element at least."""
    kernel = dlw.webgpu.Kernel(
        f"@group(0) @binding(0) var<storage, read> x: array<{element}>;"
        f"@group(0) @binding(1) var<storage, read_write> y: array<{element}>;"
        "@compute @workgroup_size(1) fn main() { y[0] = x[0]; }",
        check=check,
    )
    with dlw.empty((0, 4), device="webgpu") as x, upload([]) as y:
        kernel(x, y, workgroups=1)
        if check:
            kernel(x, y)
        assert len(await y.to_host()) == 0
        assert (await x.to_host()).shape == (0, 4)


async def test_kept_bind_groups_are_those_of_the_arguments():
    """Buffers change, are released and used again: each run sees its own."""
    kernel = dlw.webgpu.Kernel(ADD)
    with upload([0] * 3) as total, upload([0] * 3) as other:
        for turn in range(40):
            with upload([turn] * 3) as x:
                kernel(x, total if turn % 2 else other, workgroups=1)
        assert (await total.to_host() == sum(range(1, 40, 2))).all()
        assert (await other.to_host() == sum(range(0, 40, 2))).all()


async def test_a_call_that_comes_again_is_refused_as_the_first_would_be():
    kernel = dlw.webgpu.Kernel(FILL)
    double = dlw.webgpu.ElementwiseKernel(
        "f32 x, f32 k, f32 c", "f32 y", "y = k * x + c"
    )
    huge = 10**400
    with upload([1, 2]) as x, upload([0, 0]) as y:
        refused = [
            *(
                (kernel, (x, 1), {"workgroups": one})
                for one in ((0, 0, 0), 0, (), (1,) * 4)
            ),
            *(
                (kernel, (x, 1), {"workgroups": one})
                for one in ((1.0,), huge, (huge, 1))
            ),
            (kernel, (x, 1), {"workgroups": (huge, np.int64(1))}),
            (kernel, (x, huge), {}),
            (kernel, (x, "1"), {}),
            (kernel, (1, x), {}),
            (double, (x, huge, np.float32(3), y), {}),
            (double, (x, 2, huge, y), {}),
            (double, (x, 2, 1e39, y), {}),
            (double, (x, 2, 1, 3), {}),
            (double, (x, 2, 1, y), {"size": 2}),
        ]
        first = [error_of(call) for call in refused]
        assert None not in first
        for _ in range(3):
            kernel(x, 1)
            kernel(x, 1, workgroups=1)
            assert double(x, 2, 1, y) is y
            assert [error_of(call) for call in refused] == first
        assert (await y.to_host() == 3).all()


def error_of(call):
    function, args, options = call
    try:
        function(*args, **options)
    except (TypeError, ValueError, OverflowError, BufferError) as error:
        return f"{type(error).__name__}: {error}"
    return None


async def test_kernels_come_and_go_and_memory_grows():
    """Each runs by itself, whatever was collected meanwhile and wherever memory is."""
    with upload([0] * 3) as total, upload([1] * 3) as x:
        kept, grown = dlw.webgpu.Kernel(ADD), []
        for _ in range(6):
            dlw.webgpu.Kernel(ADD)(x, total, workgroups=1)
            collect()
            grown.append(bytearray(8 << 20))
            kept(x, total, workgroups=1)
            with pytest.raises(ValueError, match=r"each binding \(x, y\): 2, not 3"):
                kept(x, total, 3.5, workgroups=1)
        assert (await total.to_host() == 12).all()


@pytest.mark.parametrize(
    "end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"], ids=ascii
)
async def test_compile_errors_count_lines_as_wgsl_does(end):
    source = ADD.replace("x[i];", "nonsense;").replace("\n", end)
    with pytest.raises(dlw.KernelError) as caught:
        await dlw.webgpu.Kernel(source).ready()
    at = next(i for i, row in enumerate(source.split(end), 1) if "nonsense" in row)
    assert caught.value.line == at
    assert f"line {at}:" in str(caught.value)
    rows = str(caught.value).splitlines()
    caret = next(i for i, row in enumerate(rows) if row.strip() == "^")
    assert rows[caret - 1][rows[caret].index("^") :].startswith("nonsense")


async def test_names_of_an_object_in_javascript_are_names():
    source = """
        @group(0) @binding(0) var<storage, read_write> toString: array<f32>;
        @compute @workgroup_size(1) fn main() {
            var constructor = 2.0;
            let valueOf = 1.0;
            if (valueOf < constructor) { toString[0] = constructor; }
        }"""
    kernel = dlw.webgpu.Kernel(source)
    with upload([1, 3]) as x:
        kernel(x)  # needs to know the bindings and the workgroups
        assert (await x.to_host()).tolist() == [2, 3]
        ints = dlw.from_dlpack(np.array([1], np.int32), device="webgpu")
        with (
            ints,
            pytest.raises(BufferError, match=r"is int32, the shader's array<f32>"),
        ):
            kernel(ints)


async def test_time_of_a_kernel(gpu_features):
    kernel = dlw.webgpu.Kernel(SCALE)
    with upload(np.ones(1000)) as x, upload(np.zeros(1000)) as y:
        if "timestamp-query" not in gpu_features:
            with pytest.raises(BufferError, match="timestamp-query"):
                await kernel.time(x, y, 2.0, 0, 0, workgroups=16)
        else:
            ms = await kernel.time(x, y, 2.0, 0, 0, workgroups=16)
            assert 0 <= ms < 60_000
            assert (await y.to_host() == 2).all()


async def test_a_timing_that_fails_keeps_no_tensors():
    kernel = dlw.webgpu.Kernel(ADD)
    with upload(np.ones(4)) as x, upload(np.zeros(4)) as y:
        before = dlw.live_tensors()
        with pytest.raises((ValueError, BufferError)) as told:
            await kernel.time(x, y, workgroups=0)
        assert dlw.live_tensors() == before, told  # whose traceback has the frames


async def test_tensors_released_while_a_kernel_is_timed(gpu_features):
    """By whoever runs meanwhile; the one that was begun keeps them."""
    if "timestamp-query" not in gpu_features:
        pytest.skip("the adapter has no timestamp-query")
    kernel = dlw.webgpu.Kernel(ADD)
    x, y = upload(np.ones(1000)), upload(np.zeros(1000))
    with dlw.from_dlpack(y) as kept:
        timing = asyncio.ensure_future(kernel.time(x, y, workgroups=1))
        await asyncio.sleep(0)
        x.release()
        y.release()
        others = [upload(np.full(1000, 9.0)) for _ in range(8)]
        assert await timing >= 0
        assert (await kept.to_host() == 1).all()
        for other in others:
            other.release()


def test_tensor_released_by_a_later_argument_is_refused():
    class Number:
        def __float__(self):
            x.release()
            other.append(upload(np.full(4, 9.0)))
            return 2.0

    other = []
    x = upload(np.ones(4))
    kernel = dlw.webgpu.Kernel(FILL)
    with pytest.raises(dlw.ReleasedError):
        kernel(x, Number(), workgroups=4)
    other[0].release()


async def test_default_device_has_the_adapters_limits():
    offered = await adapter()
    made = (await dlw.webgpu.request_device(label="fresh")).gpu
    for name in ("maxBufferSize", "maxStorageBufferBindingSize"):
        assert limit(made, name) == limit(offered, name)
    for name in ("shader-f16", "subgroups", "timestamp-query"):
        assert has_feature(made, name) == has_feature(offered, name)
    plain = (await dlw.webgpu.request_device(features=[], maxBufferSize=2**28)).gpu
    assert limit(plain, "maxBufferSize") == 2**28
    assert not has_feature(plain, "timestamp-query")


def test_synchronous_forms_read_back():
    assert default().can_block()
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    with upload(values) as tensor:
        for read in (
            np.asarray,
            dlw.Tensor.numpy,
            lambda t: np.from_dlpack(t, device="cpu"),
            lambda t: np.asarray(memoryview(t)),
        ):
            np.testing.assert_array_equal(read(tensor), values)
        assert memoryview(tensor).readonly
        with pytest.raises(TypeError, match="not writable"):
            (ctypes.c_char * tensor.nbytes).from_buffer(tensor)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint4"])
async def test_arrays_that_are_read_back_are_read_only(dtype):
    """Writes would not reach the GPU, and nothing said so; copies are writable."""
    with dlw.empty((2, 8), dtype) as host, host.to_device("webgpu") as tensor:
        if default().can_block():
            reads = [
                np.asarray,
                dlw.Tensor.numpy,
                dlw.Tensor.to_numpy,
                dlw.Tensor.__array__,
            ]
            for read in reads:
                array = read(tensor)
                assert not array.flags.writeable
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = array[1]
            for copy in (np.array, lambda t: t.__array__(copy=True)):
                assert copy(tensor).flags.writeable
            if dtype == "float32":
                with np.errstate(invalid="ignore"):  # what empty() has may be any NaN
                    assert np.asarray(tensor, "float64").flags.writeable
        if dtype != "uint4":  # which is unpacked, and read-only on the CPU, too
            assert (await tensor.to_host()).flags.writeable
            assert host.numpy().flags.writeable


async def test_a_lost_device_takes_its_tensors_and_nothing_else():
    lost = await dlw.webgpu.request_device(label="lost")
    values = np.arange(4, dtype=np.float32)
    with (
        dlw.from_dlpack(values) as host,
        host.to_device(lost) as doomed,
        host.to_device("webgpu") as other,
    ):
        kernel = dlw.webgpu.Kernel(ADD)
        await destroy(lost)
        for use in (
            lambda: host.to_device(lost),
            lambda: doomed.write(values),
            lambda: kernel(doomed, doomed, workgroups=1),
            lambda: dlw.empty(1, device=lost),
        ):
            with pytest.raises(dlw.DeviceLostError, match="destroyed"):
                use()
        with pytest.raises(dlw.DeviceLostError, match="destroyed"):
            await doomed.to_host()
        (row,) = [r for r in dlw.webgpu.stats() if r["device"] == str(lost)]
        assert "destroyed" in row["lost"]
        assert row["idleBytes"] == 0
        assert (await other.to_host() == values).all()
        assert (host.numpy() == values).all()
        again = await dlw.webgpu.request_device(label="lost")
        assert again != lost
        with host.to_device(again) as fresh:
            assert (await fresh.to_host() == values).all()


async def test_more_workgroups_than_an_axis_has_are_refused_with_the_way_out(device):
    count = dlw.webgpu.Kernel("""
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1)
        fn main(
          @builtin(global_invocation_id) id: vec3u,
          @builtin(num_workgroups) groups: vec3u,
        ) {
          let i = id.x + id.y * groups.x;
          if (i < arrayLength(&x)) { x[i] += i; }
        }
    """)
    n = 65536 + 5
    with dlw.empty(n, "uint32", device=device) as x:
        for given in ({}, {"workgroups": n}):
            with pytest.raises(
                (ValueError, BufferError), match=r"65535.*num_workgroups"
            ):
                count(x, **given)
        count(x, workgroups=(-(-n // 2), 2))
        np.testing.assert_array_equal(await x.to_host(), np.arange(n, dtype="u4"))
