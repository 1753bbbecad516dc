"""Batches of kernels: recorded once, run many times in one submit."""

import asyncio
import gc
import random
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from gpu_kernels import BOTH, FILL, upload
from gpu_world import destroy, has_feature

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

INCREMENT = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> k: f32;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += k; }
"""
MIX = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> k: f32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < min(arrayLength(&a), arrayLength(&y))) { y[id.x] = 0.5 * y[id.x] + k * a[id.x]; }
}
"""
BYTES = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() {
  for (var i = 0u; i < arrayLength(&x); i++) { x[i] += 0x01010101u; }
}
"""


ADD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { if (id.x < arrayLength(&y)) { y[id.x] += x[id.x]; } }
"""


def increment():
    return dlw.webgpu.Kernel(INCREMENT, label="increment")


async def test_kernels_run_when_the_batch_does():
    kernel = increment()
    with upload([1, 2, 3]) as x, upload([0] * 3) as y:
        with dlw.webgpu.batch() as b:
            kernel(x, 1)
            dlw.webgpu.Kernel(ADD)(x, y)
        assert len(b) == 2
        assert (await x.to_host()).tolist() == [1, 2, 3]
        b.run()
        assert (await y.to_host()).tolist() == [2, 3, 4]
        b.run()
        b.run()
        assert (await x.to_host()).tolist() == [4, 5, 6]
        assert (await y.to_host()).tolist() == [2 + 3 + 4, 3 + 4 + 5, 4 + 5 + 6]
        kernel(x, 1)  # after the block kernels run at once
        assert (await x.to_host()).tolist() == [5, 6, 7]
        b.release()


async def test_a_batch_holds_its_tensors():
    buffers = held()
    x, y = upload([1, 2, 3]), upload([0] * 3)
    seen = dlw.from_dlpack(y)
    with dlw.webgpu.batch() as b:
        dlw.webgpu.Kernel(ADD)(x, y)
    x.release()
    y.release()
    with upload([100, 100, 100]):  # would get the buffer of x
        b.run()
        assert (await seen.to_host()).tolist() == [1, 2, 3]
    seen.release()
    assert held() == buffers + 2
    b.release()
    b.release()
    assert b.released
    assert held() == buffers
    for use in (b.run, lambda: b.update(0, {}), b.__enter__):
        with pytest.raises(dlw.ReleasedError, match="the batch was released"):
            use()


def held():
    return sum(row["buffers"] for row in dlw.webgpu.stats())


def test_a_forgotten_batch_is_collected():
    buffers = held()
    with dlw.webgpu.batch() as b, upload([1]) as x:
        increment()(x, 1)
    assert held() == buffers + 2  # of the number, too
    del b
    gc.collect()
    assert held() == buffers


async def test_updates():
    kernel = increment()
    with upload([0] * 4) as x, upload([0] * 4) as y:
        with dlw.webgpu.batch() as b:
            kernel(x, 1)
            kernel(x, 10, workgroups=2)
        b.run()
        b.update(0, {1: 2})
        b.update(-1, {1: np.float32(20)}, workgroups=3)
        b.run()
        assert (await x.to_host()).tolist() == [33, 33, 23, 3]
        b.update(0, {0: y})
        b.update(1, workgroups=1)
        b.run()
        assert (await x.to_host()).tolist() == [53, 33, 23, 3]
        assert (await y.to_host()).tolist() == [2] * 4
        b.update(1, {0: y, 1: 100}, workgroups=[4])
        b.update(0, {})
        b.run()
        assert (await y.to_host()).tolist() == [104] * 4
        b.release()


async def test_an_update_with_a_tensor_of_another_size_counts_again():
    with upload([0] * 4) as x, upload([0] * 9) as y:
        with dlw.webgpu.batch() as b:
            increment()(x, 1)
        b.update(0, {0: y})
        b.run()
        assert (await y.to_host()).tolist() == [1] * 9
        b.release()


async def test_a_formula_is_recorded_for_its_shapes():
    """Its workgroups and sizes are theirs."""
    plus = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = x + k", "plus")
    total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
    with (
        upload([1] * 6) as x,
        upload([2] * 6) as same,
        upload(0) as s,
        upload([0] * 6) as y,
    ):
        with dlw.webgpu.batch() as b:
            plus(x, 1, y)
            total(x, s)
            with upload([1] * 9000) as many:
                total(many, s)
        others = [same[:5], same.reshape((2, 3)), upload([1] * 999), upload(3), 7]
        for call, name in (0, "plus"), (1, "reduce_kernel"):
            for other in others:
                text = f'kernel "{name}" was recorded for other shapes: record a batch'
                with pytest.raises(ValueError, match=text):
                    b.update(call, {0: other})
        with pytest.raises(ValueError, match="for other shapes"):
            b.update(0, {1: same})
        with pytest.raises(ValueError, match='of kernel "plus" follow from its shapes'):
            b.update(0, workgroups=1)
        with pytest.raises(
            ValueError, match="has 2 arguments that can change, not number 2"
        ):
            b.update(1, {2: 7})  # the sizes, which a call is not given
        for call, partial in (2, 1), (3, 0):  # the results of the first pass
            with pytest.raises(
                ValueError, match=rf"1 arguments that can change, not number {partial}"
            ):
                b.update(call, {partial: x})
        b.update(0, {0: same, 1: 10})
        b.update(1, {0: same})
        b.run()
        assert (await y.to_host()).tolist() == [12] * 6
        assert (await s.to_host()) == 9000
        b.release()
        for other in others[:-1]:
            other.release()


async def test_an_update_counts_an_input_that_is_an_output():
    """Which is bound once, and neither changes without the other."""
    minus = dlw.webgpu.ElementwiseKernel(
        "f32 x, f32 y, f32 k", "f32 z", "z = x - y * k"
    )
    with upload([1] * 4) as x, upload([2] * 4) as y, upload([5] * 4) as new:
        with dlw.webgpu.batch() as b:
            minus(x, y, 1, x)
        for at in 0, 3:
            text = f"has 2 arguments that can change, not number {at}: record another"
            with pytest.raises(ValueError, match=text):
                b.update(0, {at: new})
        b.update(0, {1: new, 2: 10})
        b.run()
        for tensor, value in (x, -49), (y, 2), (new, 5):
            assert (await tensor.to_host()).tolist() == [value] * 4
        b.release()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
async def test_an_update_takes_what_a_call_takes(seed, device):
    """Random formulas and arguments: the same are refused, but for other shapes and kinds,
    and the others give the same elements."""
    r = random.Random(seed)
    types = ["f32", "i32", "u32", *["f16"] * has_feature(device.gpu, "shader-f16")]
    names, main = ["p", "q", "s", "t"][: r.randrange(2, 5)], r.choice([(4,), (2, 2)])
    raw = [i > 0 and r.random() < 0.3 for i in range(len(names))]
    given, made = [[r.choice(types) for _ in found] for found in (names, "yz")]
    pool = [
        np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)
        for dtype in ("f4", "i4", "u4", "f2", "u1", "c8")
        for shape in ((4,), (2, 2), ())
    ]
    one = r.random() < 0.5
    pool += [np.zeros(() if one else main, NUMPY[type_]) for type_ in made]
    tensors = [dlw.from_dlpack(array, device=device) for array in pool]

    def like(type_, shape):
        found = ((NUMPY[type_], shape) == (a.dtype.str[1:], a.shape) for a in pool)
        return tensors[list(found).index(True)]

    args = [like(given[0], main)]
    for type_, is_raw in list(zip(given, raw, strict=True))[1:]:
        kinds = [like(type_, main), like(type_, ())]
        args.append(r.choice(kinds if is_raw else [*kinds, 3]))
    args += tensors[-2:]
    params = [
        f"{'raw ' * is_raw}{type_} {name}"
        for name, type_, is_raw in zip(names, given, raw, strict=True)
    ]
    terms = [f"{name}{'[0]' * is_raw}" for name, is_raw in zip(names, raw, strict=True)]
    text = " + ".join(f"{made[0]}({term})" for term in terms)
    definition = ", ".join(params), f"{made[0]} y, {made[1]} z"
    if one:
        post = f"y = a; z = {made[1]}(a);"
        kernel = dlw.webgpu.ReductionKernel(*definition, text, "a + b", post, 0)
    else:
        operation = f"y = {text}; z = {made[1]}(y);"
        kernel = dlw.webgpu.ElementwiseKernel(*definition, operation)

    def refusal(call):
        for tensor, array in zip(tensors, pool, strict=True):
            tensor.write(array)
        try:
            call()
        except (BufferError, TypeError, ValueError) as error:
            return error
        return None

    def form(x):
        return x.shape if isinstance(x, dlw.Tensor) else None

    others = [0, 2.5, -1, 70000, 1e39, None, "1", dlw.empty(4), *tensors]
    with dlw.webgpu.batch() as b:
        kernel(*args)
    for _ in range(40):
        at, new = r.randrange(len(args) + 1), r.choice(others)
        changed = [*args[:at], new, *args[at + 1 :]]
        refused = refusal(lambda args=changed: kernel(*args))
        if refused is None and not (at < len(raw) and raw[at]):
            refused = form(new) != form(args[at])
        expected = await dlw.to_host(*tensors)
        found = refusal(lambda args={at: new}: b.update(0, args))
        what = definition, text, at, new, refused, found
        assert bool(refused) == (found is not None), what
        if not refused:
            args = changed
            b.run()
            for mine, theirs in zip(await dlw.to_host(*tensors), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs, str(what))
    b.release()
    for tensor in tensors:
        tensor.release()


NUMPY = {"f32": "f4", "i32": "i4", "u32": "u4", "f16": "f2"}


async def test_results_of_a_batch_that_has_not_run_are_errors(device):
    """Those that it makes, not tensors that were given: they have their elements."""
    plus = dlw.webgpu.ElementwiseKernel("f32 x, f32 k", "f32 y", "y = x + k")
    total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", 0)
    refused = partial(pytest.raises, BufferError, match="has not run: call its run")
    with upload([1] * 9000) as x, upload([7] * 9000) as kept, upload(0) as last:
        with dlw.webgpu.batch() as b:
            y = plus(x, 1)
            plus(y, 1, kept)
            s = total(y)
            mixed = plus(x, 1, upload([0] * 9000))
        later = plus(y, 1)
        plus(y, 1, mixed)  # of zeros, which the batch may add to
        for one in y, y[5:], s, later:
            with refused():
                await one.to_host()
        assert (await kept.to_host()).tolist() == [7] * 9000
        b.run()
        b.run()
        assert (await y.to_host()).tolist() == [2] * 9000
        assert (await kept.to_host()).tolist() == [3] * 9000
        assert float(await s.to_host()) == 18000
        for one in later, mixed:
            with refused():
                await one.to_host()
        with dlw.webgpu.batch() as other:
            z, changed, never = plus(x, 1), plus(x, 2), plus(x, 3)
            plus(never, 1, kept)
            total(changed, last)
        other.update(1, {2: y})
        dlw.webgpu.Kernel(ADD)(x, z)
        with refused():
            await z.to_host()
        z.write(np.zeros(9000, "f4"))
        assert (await z.to_host()).tolist() == [0] * 9000
        with dlw.webgpu.batch() as before:
            plus(never, 5, x)
            dlw.webgpu.Kernel(ADD)(kept, never)
        before.run()
        for one in x, never:
            with refused():
                await one.to_host()
        x.write(np.ones(9000, "f4"))
        other.run()
        for tensor, value in (z, 2), (never, 4), (kept, 5), (y, 3):
            assert (await tensor.to_host()).tolist() == [value] * 9000
        for one in changed, last:
            with refused():
                await one.to_host()
        with dlw.webgpu.batch() as gone:
            lost = plus(x, 1)
            dlw.webgpu.Kernel(ADD)(x, lost)
        gone.update(0, {2: kept})  # nothing computes what the second adds to
        gone.run()
        with refused():
            await lost.to_host()
        gone.release()
        for one in b, other, before, y, s, later, z, changed, never, lost:
            one.release()


async def test_numbers_of_f16_are_in_its_range(device):
    if not has_feature(device.gpu, "shader-f16"):
        pytest.skip("this device has no shader-f16")
    times = dlw.webgpu.ElementwiseKernel("f16 x, f16 k, f32 l", "f16 y", "y = x * k")
    ones = dlw.from_dlpack(np.ones(5, "f2"), device=device)
    with ones as x, dlw.empty(5, "float16", device=device) as y:
        with dlw.webgpu.batch() as b:
            times(x, 2, 1, y)
        with pytest.raises(ValueError, match=r"^k: 65505.* not a valid f16"):
            b.update(0, {1: 65505})
        with pytest.raises(
            ValueError, match="has 4 arguments that can change, not number 4"
        ):
            b.update(0, {4: 2})  # the number of elements, which neither is
        for number in 65504, np.inf:
            b.update(0, {1: number, 2: 1e6})
            b.run()
            assert (await y.to_host()).tolist() == [number] * 5
        b.release()


async def test_arguments_of_an_update_are_by_position():
    with upload([1]) as x:
        with dlw.webgpu.batch() as b:
            increment()(x, 1)
        for args in ([x], x, 5, "01"):
            with pytest.raises(
                TypeError, match=r"args of update\(\) are the new arguments by"
            ):
                b.update(0, args)
        with pytest.raises(TypeError, match="arg"):
            b.update(0, arg={1: 2})
        b.release()


async def test_a_refused_update_changes_nothing():
    with upload([0] * 4) as x, dlw.empty(4, "int32", device="webgpu") as ints:
        with dlw.webgpu.batch() as b:
            increment()(x, 1, workgroups=4)
        for args, error, words in (
            ((1, {}), IndexError, "the batch has 1 calls, and no number 1"),
            ((-2, {}), IndexError, "the batch has 1 calls, and no number -2"),
            (
                (0, {2: 1}),
                ValueError,
                '"increment" has 2 arguments that can change, not number 2',
            ),
            ((0, {-1: 1}), ValueError, "not number -1"),
            ((0, {0: 1}), TypeError, "binding 0: numbers are for"),
            (
                (0, {0: ints}),
                BufferError,
                "is int32, the shader's array<f32> is of f32",
            ),
            ((0, {1: 2, 0: ints}), BufferError, "is int32"),
            ((0, {1: "2"}), TypeError, "^argument 1 has type str"),
            ((0, {0: dlw.empty(4)}), BufferError, "^argument 0 is on cpu"),
        ):
            with pytest.raises(error, match=words):
                b.update(*args)
        with pytest.raises(ValueError, match="workgroups must be"):
            b.update(0, {1: 5}, workgroups=1 << 30)
        b.run()
        assert (await x.to_host()).tolist() == [1] * 4
        b.release()


async def test_what_a_recorded_kernel_uses_is_not_touched_in_the_block():
    zeros = np.zeros(3, np.float32)
    with upload([1, 2, 3]) as x, upload([0] * 3) as y, upload([0] * 3) as other:
        with dlw.webgpu.batch() as b:
            dlw.webgpu.Kernel(ADD)(x, y)
            with pytest.raises(BufferError, match="cannot be read here: a kernel that"):
                await y.to_host()
            with pytest.raises(BufferError, match="cannot be read here"):
                await dlw.to_host(other, y)
            with pytest.raises(BufferError, match="cannot be read here"):
                y[1:].numpy()
            with pytest.raises(BufferError, match="cannot be read here"):
                other.write(y)
            for tensor in x, y:
                with pytest.raises(BufferError, match="cannot be written here"):
                    tensor.write(zeros)
            with pytest.raises(BufferError, match=r"time\(\) runs a kernel at once"):
                await dlw.webgpu.Kernel(FILL).time(other, 1)
            # These cannot differ from what the user means.
            assert (await x.to_host()).tolist() == [1, 2, 3]
            other.write(zeros + 5)
            assert (await other.to_host()).tolist() == [5] * 3
        y.write(zeros + 1)
        b.run()
        assert (await y.to_host()).tolist() == [2, 3, 4]
        b.release()


def test_what_a_recorded_kernel_writes_is_not_printed_in_the_block():
    with upload([0] * 3) as small, upload([0] * 5000) as large:
        with dlw.webgpu.batch() as b:
            for x in small, large:
                increment()(x, 1)
                assert "BufferError: this tensor cannot be read here" in str(x)
        b.release()


def record_and_fail(x):
    increment()(x, 1)
    raise ZeroDivisionError


def test_a_block_that_raises_leaves_nothing():
    buffers = held()
    with upload([1]) as x:
        b = dlw.webgpu.batch()
        with pytest.raises(ZeroDivisionError), b:
            record_and_fail(x)
        assert b.released
        with dlw.webgpu.batch() as empty:  # recording has ended
            pass
        empty.run()
        assert len(empty) == 0
    assert held() == buffers


async def test_a_refused_call_is_not_recorded():
    with upload([1, 2]) as x:
        with dlw.webgpu.batch() as b:
            increment()(x, 1)
            with pytest.raises(ValueError, match="takes an argument for each binding"):
                increment()(x)
            with pytest.raises(TypeError, match=r"binding 1: numbers are for"):
                dlw.webgpu.Kernel(ADD)(x, 2, workgroups=1)
        assert len(b) == 1
        b.run()
        assert (await x.to_host()).tolist() == [2, 3]
        b.release()


def test_the_order_of_things():
    b = dlw.webgpu.batch()
    with pytest.raises(BufferError, match=r"run\(\) comes after the recording"):
        b.run()
    with upload([1]) as x:
        with b:
            increment()(x, 1)
            with pytest.raises(BufferError, match=r"run\(\) comes after the recording"):
                b.run()
            with pytest.raises(BufferError, match=r"update\(\) comes after"):
                b.update(0, {1: 2})
            with pytest.raises(BufferError, match="do not nest"), dlw.webgpu.batch():
                pass
            assert repr(b) == "<Batch of 1 calls, recording>"
        with (
            dlw.webgpu.batch(),
            pytest.raises(BufferError, match=r"run\(\) comes after the recording"),
        ):
            b.run()  # would be before what the other block has recorded
        with pytest.raises(BufferError, match="recorded once"), b:
            pass
        assert len(b) == 1
        assert repr(b) == "<Batch of 1 calls>"
        b.release()
        assert repr(b) == "<Batch, released>"


async def test_a_batch_is_on_one_device():
    other = await dlw.webgpu.request_device(label="another of a batch")
    with upload([1]) as x, dlw.from_dlpack(np.ones(1, "f4"), device=other) as y:
        with dlw.webgpu.batch() as b:
            increment()(x, 1)
            with pytest.raises(BufferError, match="record a batch for each device"):
                increment()(y, 1)
        with pytest.raises(
            BufferError, match=r"the tensors of one .* must share a dev"
        ):
            b.update(0, {0: y})
        assert len(b) == 1
        b.release()
    await destroy(other)


async def test_two_tasks_record_and_run_for_themselves():
    kernel = increment()
    direct = upload([0])

    async def record(tensor, times):
        with dlw.webgpu.batch() as b:
            for _ in range(times):
                kernel(tensor, 1)
                await asyncio.sleep(0)
        return b

    async def run():
        for _ in range(3):
            kernel(direct, 1)
            await asyncio.sleep(0)

    with upload([0]) as x, upload([0]) as y:
        one, two, _ = await asyncio.gather(record(x, 2), record(y, 3), run())
        assert (len(one), len(two)) == (2, 3)
        assert (await direct.to_host()).tolist() == [3]
        one.run()
        two.run()
        two.run()
        assert (await x.to_host()).tolist() == [2]
        assert (await y.to_host()).tolist() == [6]
        one.release()
        two.release()
    direct.release()


async def test_a_task_of_the_block_that_outlives_it_runs_kernels():
    kernel = increment()
    ended = asyncio.Event()

    async def late():
        await ended.wait()
        kernel(x, 1)

    with upload([0]) as x:
        with dlw.webgpu.batch() as b:
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        ended.set()
        await task
        assert len(b) == 0
        assert (await x.to_host()).tolist() == [1]


# --- copies aside ---------------------------------------------------------------------------


async def test_views_that_cannot_be_bound_are_copied_in_each_run():
    """An offset of no multiple of 256, and a neighbour that is written."""
    with upload(range(8)) as whole:
        with whole[1:4] as x, whole[5:8] as y, dlw.webgpu.batch() as b:
            dlw.webgpu.Kernel(ADD)(x, y)
        for _ in range(2):
            b.run()
        expected = [0, 1, 2, 3, 4, 5 + 2, 6 + 4, 7 + 6]
        assert (await whole.to_host()).tolist() == expected
        whole.write(np.ones(8, np.float32))
        b.run()
        assert (await whole.to_host()).tolist() == [1] * 5 + [2] * 3
        b.release()


async def test_padding_of_copies_is_zero_in_each_run():
    """The shader adds to the padding, too, and that must not stay."""
    counting = """
@group(0) @binding(0) var<storage, read_write> x: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { x[0] += vec4u(1); y[0] = x[0].w; }
"""
    whole = dlw.from_dlpack(np.zeros(8, "u4"), device="webgpu")
    y = dlw.from_dlpack(np.zeros(1, "u4"), device="webgpu")
    with whole[1:4] as x, dlw.webgpu.batch() as b:
        dlw.webgpu.Kernel(counting)(x, y, workgroups=1)
    b.run()
    b.run()
    assert (await y.to_host()).tolist() == [1]
    assert (await whole.to_host()).tolist() == [0, 2, 2, 2, 0, 0, 0, 0]
    for each in b, y, whole:
        each.release()


async def test_a_last_word_that_is_shared_with_padding():
    with dlw.from_dlpack(np.arange(5, dtype="u1"), device="webgpu") as x:
        with dlw.webgpu.batch() as b:
            dlw.webgpu.Kernel(BYTES)(x, workgroups=1)
        b.run()
        b.run()
        assert (await x.to_host()).tolist() == [2, 3, 4, 5, 6]
        b.release()


# --- against direct calls -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
async def test_random_batches_do_what_direct_calls_do(seed):
    chance = random.Random(seed)
    kernels = [dlw.webgpu.Kernel(code) for code in (INCREMENT, MIX, ADD, BOTH)]
    make = np.random.default_rng(seed).random

    def world():
        whole = [upload(values[i]) for i in range(3)]
        views = [whole[0][1:20], whole[1][64:], whole[0][21:30]]
        return [*whole, *views]

    values = [make(n).astype("f4") for n in (40, 80, 7)]
    one, two = world(), world()
    calls = []
    for _ in range(chance.randrange(1, 12)):
        kernel = chance.choice(kernels)
        first, second = chance.sample(range(6), 2)
        if kernel is kernels[0]:
            calls.append((kernel, (first, chance.random())))
        elif kernel is kernels[1]:
            calls.append((kernel, (first, second, chance.random())))
        else:
            calls.append((kernel, (first, second)))

    def call(tensors, kernel, args):
        given = [tensors[x] if isinstance(x, int) else x for x in args]
        kernel(*given, workgroups=1)

    kept = []
    with dlw.webgpu.batch() as b:
        for kernel, args in calls:
            with suppress(BufferError):  # two arguments overlap, and both are written
                call(one, kernel, args)
                kept.append((kernel, args))
    for _ in range(3):
        b.run()
        for kernel, args in kept:
            call(two, kernel, args)
        if kept and chance.random() < 0.7:
            at = chance.randrange(len(kept))
            kernel, args = kept[at]
            if isinstance(args[-1], float):
                new = chance.random()
                kept[at] = kernel, (*args[:-1], new)
                b.update(at, {len(args) - 1: new})
        for mine, theirs in zip(one, two, strict=True):
            np.testing.assert_array_equal(await mine.to_host(), await theirs.to_host())
    b.release()
    for tensor in (*one, *two):
        tensor.release()


async def test_an_update_swaps_inputs_as_a_jit_does():
    """Two tensors change their places."""
    with upload([1]) as x, upload([100]) as y:
        with dlw.webgpu.batch() as b:
            dlw.webgpu.Kernel(ADD)(x, y)
        b.run()
        b.update(0, {0: y, 1: x})
        b.run()
        assert (await x.to_host()).tolist() == [102]
        assert (await y.to_host()).tolist() == [101]
        b.release()
