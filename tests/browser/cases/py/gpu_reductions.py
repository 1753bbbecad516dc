"""ReductionKernel: results, shapes, errors of the formulas."""

import gc
import math
import os
from itertools import combinations

import numpy as np
import pytest
from gpu_elementwise import DTYPES, read, upload
from gpu_world import callback, destroy, forget, has_feature, live, only_in_a_page

import dlpack_web as dlw
from dlpack_web.webgpu import ElementwiseKernel, ReductionKernel

WHOLE = bool(os.environ.get("WHOLE"))
LONG = [(10_000_000,), (1000, 10_000), (1_000_000, 10), (625_000, 16)]
pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")


def total(type_="f32", **more):
    return ReductionKernel(f"{type_} x", f"{type_} y", "x", "a + b", "y = a", 0, **more)


@pytest.mark.parametrize(
    "shape",
    [
        (1,),
        (63,),
        (64,),
        (65,),
        (511,),
        (513,),
        (1023,),
        (4097,),
        (70001,),
        (3, 5),
        (5, 1, 7),
        (20, 300),
        (9000, 20),
        (2, 5000, 3),
        (4, 3, 70),
        (1000, 16),
        (70, 3, 17),
        (40, 3, 50, 2),
        (2, 1, 3, 2, 2),
        (),
        (0,),
        (3, 0, 2),
    ],
    ids=str,
)
async def test_all_axes(shape):
    kernel = total("u32")
    a = np.random.default_rng(len(shape)).integers(0, 1000, shape, "u4")
    ndim = len(shape)
    several = [axes for k in range(ndim + 1) for axes in combinations(range(ndim), k)]
    mixed = [tuple(at - ndim * (at % 2) for at in axes[::-1]) for axes in several]
    few = a.size < 10_000  # the ways to say one axis are tried on small arrays
    with upload(a, "uint32") as x:
        for axis in (*several, *((None, *range(-ndim, ndim), *mixed) if few else ())):
            for keepdims in (False, True) if few else (False,):
                y = kernel(x, axis=axis, keepdims=keepdims)
                expected = a.sum(axis=axis, dtype="u4", keepdims=keepdims)
                assert y.shape == expected.shape
                np.testing.assert_array_equal(await read(y), expected)


async def test_more_outputs_than_one_axis_of_workgroups_has():
    n = 65535 * 64 + 7
    kernel = total("u32")
    with upload(np.arange(2 * n), "uint32") as x, x.reshape((n, 2)) as rows:
        expected = 4 * np.arange(n, dtype="u4") + 1
        np.testing.assert_array_equal(await read(kernel(rows, axis=1)), expected)
        # One sum, of as many elements.
        whole = int(np.arange(2 * n).sum()) % 2**32
        assert int(await read(kernel(x))) == whole


async def test_the_identity_is_the_result_of_no_elements():
    kernel = ReductionKernel("f32 x", "f32 y", "x", "a * b", "y = a + f32(n)", 7)
    with upload(np.zeros((0, 3))) as x:
        assert (await read(kernel(x))).tolist() == 7
        assert (await read(kernel(x, axis=0))).tolist() == [7, 7, 7]
        nothing = kernel(x, axis=1)
        assert nothing.shape == (0,)
        nothing.release()


async def test_no_elements_of_very_many_axes():
    kernel = total("u32")
    with dlw.empty((0,) + (2, 4) * 17, "uint32", device="webgpu") as x:
        with kernel(x, axis=tuple(range(0, 35, 2))) as y:
            assert y.shape == (2,) * 17
            assert not (await y.to_host()).any()
        with kernel(x, axis=range(1, 35)) as y:
            assert y.shape == (0,)


NUMBERS = {
    "f32": [0.1, -0.0, 1e16, 1e20, -1e38, 3.4028235e38, 1e-5, 2.0**-126, 2**24 + 1, -7],
    "i32": [2**31 - 1, -(2**31), -0.0, 3.0],
    "u32": [0, 2**31, 2**32 - 1],
    "f16": [65504, -0.5, -0.0, 1e-4],
}


@pytest.mark.parametrize("type_", NUMBERS)
async def test_an_identity_is_the_number_that_was_given(type_, gpu_features):
    if type_ == "f16" and "shader-f16" not in gpu_features:
        pytest.skip("no shader-f16")
    for value in NUMBERS[type_]:
        kernel = ReductionKernel(
            f"{type_} x", f"{type_} y", "x", "a + b", "y = a", value
        )
        with upload([], DTYPES[type_]) as x:
            found, expected = (
                await read(kernel(x)),
                np.array(value).astype(DTYPES[type_]),
            )
            assert found == expected, value  # WGSL may ignore the sign of a zero


async def test_an_identity_of_a_vector_is_that_of_each_component():
    kernel = ReductionKernel(
        "u32 x",
        "u32 y",
        "vec2u(x)",
        "a + b",
        "y = a.x - a.y",
        2**32 - 1,
        reduce_type="vec2u",
    )
    with upload([], "uint32") as x:
        assert int(await read(kernel(x))) == 0


async def test_post_map_has_the_number_of_elements():
    mean = ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a / f32(n)", 0)
    for n in (3, 100_000):
        a = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        with upload(a) as x:
            got = await read(mean(x, axis=1))
            np.testing.assert_allclose(got, a.mean(1, dtype="f8"), rtol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 63, 512, 1023, 1025, 4099, 70_003])
async def test_mean_and_deviation_are_two_outputs_of_one_pass(n):
    """Of a whole tensor, of parts at offsets that are no multiples of 16 bytes, of axes."""
    kernel = ReductionKernel(
        "f32 x", "f32 mean, f32 deviation", "vec2f(x, x * x)", "a + b",
        "mean = a.x / f32(max(n, 1)); deviation = sqrt(max(0, a.y / f32(max(n, 1)) - mean * mean))",
        0, reduce_type="vec2f",
    )  # fmt: skip
    a = np.random.default_rng(n).normal(size=(5, n)).astype("f4")
    cases = [
        (0, None, {}),
        (0, 1, {"keepdims": True}),
        (0, 0, {}),
        (1, -1, {}),
        (3, None, {}),
    ]
    with upload(a) as x:
        for first, axis, more in cases:
            part = a[first:].astype("f8")
            with x[first:] as rows:
                found = kernel(rows, axis=axis, **more)
            count = part.size if axis is None else part.shape[axis]
            for got, model in zip(found, (np.mean, np.std), strict=True):
                expected = model(part, axis, **more) if count else np.zeros(got.shape)
                assert got.shape == np.shape(expected)
                np.testing.assert_allclose(await read(got), expected, 1e-5, 1e-6)


async def test_inputs_of_reductions_are_broadcast():
    norm = ReductionKernel(
        "f32 x, f32 k, f32 p",
        "f32 y",
        "pow(abs(x * k), p)",
        "a + b",
        "y = pow(a, 0.5)",
        0,
    )
    with upload([[3, 4], [6, 8]]) as x, upload(2) as p:
        assert np.allclose(await read(norm(x, 1, p, axis=-1)), [5, 10])
        alone = norm(p, 1, 2)
        assert alone.shape == ()
        assert np.allclose(await read(alone), 2)


async def test_outputs_of_reductions_may_be_given():
    kernel = ReductionKernel(
        "i32 x", "i32 least, i32 most", "vec2i(x, x)",
        "vec2i(min(a.x, b.x), max(a.y, b.y))", "least = a.x; most += a.y",
        "vec2i(2147483647, -2147483648)", reduce_type="vec2i",
    )  # fmt: skip
    a = np.random.default_rng(0).integers(-1000, 1000, (3, 9999), "i4")
    ones = np.ones(3)
    x, least, most = upload(a, "int32"), upload(ones, "int32"), upload(ones, "int32")
    with x, least, most:
        assert kernel(x, least, most, axis=1) == (least, most)
        np.testing.assert_array_equal(await least.to_host(), a.min(1))
        np.testing.assert_array_equal(await most.to_host(), 1 + a.max(1))


def argmax():
    """With its value, exactly: the bits of a float32 beside the index. A NaN is the largest,
    and of equal ones the first."""
    return ReductionKernel(
        "f32 x", "f32 y, u32 at", "vec2u(bitcast<u32>(x), _J)",
        """select(b, a,
             (isnan(a.x) && (!isnan(b.x) || a.y < b.y)) ||
             (!isnan(b.x) && (bitcast<f32>(a.x) > bitcast<f32>(b.x) ||
               (bitcast<f32>(a.x) == bitcast<f32>(b.x) && a.y < b.y))))"""
          .replace("isnan(a.x)", "((a.x & 0x7fffffff) > 0x7f800000)")
          .replace("isnan(b.x)", "((b.x & 0x7fffffff) > 0x7f800000)"),
        "y = bitcast<f32>(a.x); at = a.y", "vec2u(0xff800000, 0xffffffff)",
        reduce_type="vec2u",
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(20000,), (4, 5000), (3, 70, 200), (70, 3, 5, 40)])
async def test_the_largest_and_where_it_is(shape):
    kernel = argmax()
    r = np.random.default_rng(1)
    a = r.permutation(math.prod(shape)).astype(np.float32).reshape(shape)
    ties = r.integers(-3, 0, shape).astype(np.float32)
    holes = np.where(r.random(shape) < 0.001, np.float32("nan"), ties)
    for values in (a, ties, holes, np.full(shape, -np.inf, "f4")):
        with upload(values) as x:
            for axis in (*range(len(shape)), None):
                y, at = kernel(x, axis=axis)
                np.testing.assert_array_equal(await read(y), values.max(axis))
                np.testing.assert_array_equal(await read(at), values.argmax(axis))
            if len(shape) > 2:  # `_J` counts in row-major order among what is reduced
                y, at = kernel(x, axis=(0, 2))
                moved = np.moveaxis(values, (0, 2), (-2, -1))
                flat = moved.reshape(*moved.shape[:-2], -1)
                np.testing.assert_array_equal(await read(y), flat.max(-1))
                np.testing.assert_array_equal(await read(at), flat.argmax(-1))


async def test_an_index_beyond_what_a_float_counts():
    n = 2**24 + 9
    a = np.zeros(n, np.float32)
    a[n - 2] = 1
    with upload(a) as x:
        y, at = argmax()(x)
        assert (int(await read(at)), float(await read(y))) == (n - 2, 1)


async def test_bools_become_the_type_that_is_reduced():
    count = ReductionKernel("f32 x", "u32 y", "x > 1", "a + b", "y = a", 0)
    with upload([1, 2, 3]) as x:
        assert (await read(count(x))).tolist() == 2


async def test_an_accumulator_of_another_type():
    a = np.full(70_000, 2**16 - 1, np.uint32)
    with upload(a, "uint32") as x:
        wrapped = await read(total("u32")(x))
        assert wrapped == a.sum(dtype="u4")
        as_floats = ReductionKernel(
            "u32 x", "u32 y", "x", "a + b", "y = u32(a / f32(n))", 0, reduce_type="f32"
        )
        assert abs(int(await read(as_floats(x))) - 65535) < 2
    with upload(np.array([2**31 - 1, 1]), "int32") as x:
        assert await read(total("i32")(x)) == -(2**31)
        # Two words of a sum that 32 bits do not hold.
        wide = ReductionKernel(
            "i32 x", "u32 low, u32 high", "vec2u(u32(x), 0)",
            "vec2u(a.x + b.x, a.y + b.y + select(0u, 1u, a.x + b.x < a.x))",
            "low = a.x; high = a.y", 0, reduce_type="vec2u",
        )  # fmt: skip
        with upload(np.full(100_000, 2**31 - 1), "int32") as many:
            low, high = [int(await read(one)) for one in wide(many)]
            assert low + (high << 32) == 100_000 * (2**31 - 1)


async def test_an_accumulator_of_float32_for_halves(gpu_features):
    if "shader-f16" not in gpu_features:
        pytest.skip("no shader-f16")
    kernel = ReductionKernel(
        "f16 x", "f32 y", "f32(x)", "a + b", "y = a", 0, reduce_type="f32"
    )
    with upload(np.full((3, 70_001), 0.1), "float16") as x:
        expected = float(np.float16(0.1)) * 70_001
        np.testing.assert_allclose(await read(kernel(x, axis=1)), expected, rtol=1e-6)


async def test_not_a_number_is_found_by_its_bits():
    """Compilers may assume that there is none: `x != x` is false."""
    largest = ReductionKernel(
        "f32 x", "f32 y", "bitcast<u32>(x)",
        """select(
             select(b, a, bitcast<f32>(a) > bitcast<f32>(b)),
             select(b, a, (a & 0x7fffffff) > 0x7f800000),
             (a & 0x7fffffff) > 0x7f800000 || (b & 0x7fffffff) > 0x7f800000
           )""",
        "y = bitcast<f32>(a)", "0xff800000", reduce_type="u32",
    )  # fmt: skip
    count = ReductionKernel(
        "f32 x",
        "u32 y",
        "(bitcast<u32>(x) & 0x7fffffff) > 0x7f800000",
        "a + b",
        "y = a",
        0,
    )
    a = np.random.default_rng(7).normal(size=(30, 9001)).astype("f4")
    a[3, 77] = a[4, 0] = a[4, 9000] = np.nan
    a[5, 1], a[6] = np.inf, -np.inf
    with upload(a) as x:
        for axis in (0, 1, None, (0, 1)):
            got = await read(largest(x, axis=axis))
            np.testing.assert_array_equal(got, a.max(axis))
            expected = np.isnan(a).sum(axis)
            np.testing.assert_array_equal(await read(count(x, axis=axis)), expected)


@pytest.mark.parametrize("shape", LONG if WHOLE else LONG[:2], ids=str)
async def test_the_operations_of_ten_million_elements(shape):
    """As web/docs/howto/kernels.md states it: the longest way of an element to its result."""
    depth = ReductionKernel("u32 x", "u32 y", "x", "1 + max(a, b)", "y = a", 0)
    with dlw.empty(shape, "uint32", device="webgpu") as x:
        for axis in (0, None):
            assert 0 < int((await read(depth(x, axis=axis))).max()) <= 100


@pytest.mark.parametrize("shape", [(10_000_000,), (1_000_000, 10)])
async def test_the_accuracy_of_ten_million_elements(shape):
    """As web/docs/howto/kernels.md states it."""
    kernel = total()
    a = np.random.default_rng(len(shape)).random(shape, np.float32)
    with upload(a) as x:
        exact = a.sum(0, dtype="f8")
        error = np.abs((await read(kernel(x, axis=0))).astype("f8") - exact)
        assert (error / exact).max() < 2e-6


async def test_sizes_are_uploaded_once():
    kernel = total()
    shapes = [
        ((5, 7), 0),
        ((5, 7), 1),
        ((7, 5), (0, 1)),
        ((3, 9000), 1),
        ((9001,), None),
    ]
    alive = dlw.live_tensors()
    given = [(upload(np.ones(shape)), axis) for shape, axis in shapes]
    for x, axis in given:
        kernel(x, axis=axis).release()
    assert dlw.live_tensors() == alive + len(given)  # without the kept sizes
    before = sum(row["up"] for row in dlw.webgpu.stats())
    for _ in range(3):
        for x, axis in given:
            expected = np.ones(x.shape).sum(axis)
            np.testing.assert_array_equal(await read(kernel(x, axis=axis)), expected)
    assert sum(row["up"] for row in dlw.webgpu.stats()) == before
    for x, _ in given:
        x.release()
    del kernel
    gc.collect()
    assert dlw.live_tensors() == alive


async def test_calls_that_differ_in_the_axis_alone():
    kernel = total()
    a = np.arange(9, dtype="f4").reshape(3, 3)
    with upload(a) as x, upload(np.zeros((3,))) as y, upload(np.zeros((3, 1))) as z:
        axes = [0]
        for at in (0, 1, 0, 1, 1, 0, -1, (1,), (0,)):
            assert kernel(x, y, axis=at) is y
            np.testing.assert_array_equal(await y.to_host(), a.sum(at))
            axes[0] = at if isinstance(at, int) else at[0]
            kernel(x, y, axis=axes)
            np.testing.assert_array_equal(await y.to_host(), a.sum(at))
        kernel(x, z, axis=1, keepdims=True)
        np.testing.assert_array_equal(await z.to_host(), a.sum(1, keepdims=True))
        with pytest.raises(ValueError, match="y has shape"):
            kernel(x, z, axis=1)


async def test_calls_that_differ_in_keepdims_alone():
    kernel = total()
    with upload([[1, 2, 3], [4, 5, 6]]) as x, upload(np.zeros(3)) as y:
        z = y.reshape((1, 3))
        for _ in range(3):
            for keepdims, right, wrong in ((True, z, y), (False, y, z)):
                assert kernel(x, right, axis=0, keepdims=keepdims) is right
                with pytest.raises(ValueError, match="outputs are not broadcast"):
                    kernel(x, wrong, axis=0, keepdims=keepdims)
                for axis in (1, None, (0, 1), (), (0, 0), np.int64(1)):
                    with pytest.raises(ValueError, match=r"not broadcast|given twice"):
                        kernel(x, right, axis=axis, keepdims=keepdims)
        assert (await y.to_host() == [5, 7, 9]).all()
        z.release()


@only_in_a_page("its errors come after the call")
async def test_sizes_are_made_again_after_an_error_of_the_device():
    """Their buffer may be what is invalid."""
    kernel, made = total(), []
    device = await dlw.webgpu.request_device(label="whose pool is empty")
    ones = np.ones((1, 3), "float32")
    gpu = device.gpu
    create = gpu.createBuffer

    def broken(descriptor):
        made.append(create(descriptor))
        made[-1].destroy()
        return made[-1]

    quiet = callback(lambda event: event.preventDefault())
    proxy = callback(broken)
    gpu.addEventListener("uncapturederror", quiet)
    with dlw.from_dlpack(ones, device=device) as x, dlw.empty((), device=device) as y:
        gpu.createBuffer = proxy
        try:
            kernel(x, y)
        finally:
            del gpu.createBuffer
        with pytest.raises(BufferError):
            await y.to_host()
        assert len(made) == 1
        assert await read(kernel(x)) == 3
    gpu.removeEventListener("uncapturederror", quiet)
    await destroy(device)
    for each in (quiet, proxy):
        forget(each)


async def test_more_shapes_than_are_kept():
    kernel = total()
    for _ in range(2):
        for n in range(1, 20):
            with upload(np.ones((2, n))) as x, upload(np.zeros(2)) as y:
                for _ in range(3):
                    kernel(x, y, axis=1)
                    assert (await y.to_host()).tolist() == [n, n]


async def test_parts_of_a_tensor_are_reduced():
    kernel = total()
    a = np.arange(60, dtype="f4").reshape(5, 4, 3)
    with upload(a) as x:
        for part in (slice(1, 3), slice(2, None), 3):
            with x[part] as rows:
                for axis in (None, 0, -1, (0, -1)):
                    got = await read(kernel(rows, axis=axis))
                    np.testing.assert_array_equal(got, a[part].sum(axis))
        for strided in (x[:, 1:], x[::2], x.permute_dims((2, 1, 0))):
            with strided, pytest.raises(BufferError, match="strides"):
                kernel(strided, axis=(0, 1))


async def test_raw_inputs_of_reductions():
    dot = ReductionKernel(
        "f32 x, raw f32 w", "f32 y", "x * w[i % 2]", "a + b", "y = a", 0
    )
    with upload([[1, 2], [3, 4]]) as x, upload([10, 1]) as w:
        assert (await read(dot(x, w, axis=1))).tolist() == [12, 34]


async def test_all_formulas_may_read_raw_inputs():
    """In one pass, and in two."""
    kernel = ReductionKernel(
        "f32 x, raw f32 w, f32 k, raw f32 v", "f32 y, f32 z",
        "x * k * w[0]", "a + b * w[1]", "y = a * v[0]; z = a + v[i + 1]", 0,
    )  # fmt: skip
    w, v = np.float32([2, 1]), np.arange(1, 103, dtype="f4")
    with upload(w) as weights, upload(v) as values:
        await kernel.ready()
        for shape in (3,), (64, 20), (9000,), (9000, 3):
            a = np.random.default_rng(4).integers(0, 9, shape).astype("f4")
            with upload(a) as x:
                y, z = kernel(x, weights, 2, values, axis=0)
                expected = 4 * a.sum(0)
                np.testing.assert_array_equal(await read(y), expected)
                expected = expected + v[1 : 1 + expected.size].reshape(expected.shape)
                np.testing.assert_array_equal(await read(z), expected)


async def test_raw_inputs_have_any_shape():
    """Weights by the index among the elements that are reduced."""
    dot = ReductionKernel(
        "f32 x, raw f32 w, raw u32 chosen", "f32 y",
        "x * w[_J + chosen[0]]", "a + b", "y = a", 0,
    )  # fmt: skip
    r = np.random.default_rng(3)
    a = r.integers(0, 9, (30, 40, 50)).astype("f4")
    w = r.integers(0, 9, (1500 + 2,)).astype("f4")
    with upload(a) as x, upload(w) as weights, upload([2], "uint32") as chosen:
        got = await read(dot(x, weights, chosen, axis=(0, 2), keepdims=True))
        assert got.shape == (1, 40, 1)
        expected = (np.moveaxis(a, 1, 0).reshape(40, 1500) * w[2:]).sum(1)
        np.testing.assert_array_equal(got.ravel(), expected)
        with pytest.raises(TypeError, match="w is raw and takes a Tensor"):
            dot(x, 1, chosen)


@pytest.mark.parametrize("name", ["map", "at", "n_", "sizes", "partial", "k", "half"])
async def test_parameters_may_have_names_like_ours(name):
    kernel = ReductionKernel(f"u32 {name}", "u32 piece", name, "a + b", "piece = a", 0)
    with upload(np.ones(9999), "uint32") as x:
        assert int(await read(kernel(x))) == 9999
    for like in (name, "id", "groups", "y_"):
        kernel = ElementwiseKernel(f"f32 {like}", "f32 y", f"y = 2 * {like}")
        with upload([1, 2]) as x:
            assert (await read(kernel(x))).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"map_expr": "x + c"}, "map_expr, line 1:5"),
        ({"map_expr": "x\n+ c"}, "map_expr, line 2:3"),
        ({"map_expr": "x\r\r\n\u2028\x85\v\f\u2029+ c"}, "map_expr, line 8:3"),
        ({"reduce_expr": "a + c"}, "reduce_expr, line 1:5"),
        ({"post_map_expr": "y = a;\ny = c"}, "post_map_expr, line 2:5"),
        ({"identity": "c"}, "identity, line 1:1"),
        ({"map_expr": "vec2f(x, x)"}, "map_expr, line 1:1"),
        ({"reduce_expr": "a +"}, "reduce_expr, line 1:"),
    ],
)
async def test_errors_of_reductions_name_the_formula(change, where):
    formulas = {"map_expr": "x", "reduce_expr": "a + b", "post_map_expr": "y = a"}
    kernel = ReductionKernel("f32 x", "f32 y", **{**formulas, "identity": 0, **change})
    with pytest.raises(dlw.KernelError) as told:
        await kernel.ready()
    assert f": {where}" in str(told.value)
    assert str(told.value.line) == where.partition("line ")[2].partition(":")[0]


def test_arguments_of_reductions_that_do_not_fit():
    kernel = total(name="total")
    with upload([[1, 2]]) as x, upload([0, 0, 0]) as y:
        for args, options, error, message in (
            ((1,), {}, TypeError, "a kernel needs at least one tensor"),
            ((x,), {"axis": 2}, ValueError, "axis 2 is out of bounds for shape (1, 2)"),
            (
                (x,),
                {"axis": -3},
                ValueError,
                "axis -3 is out of bounds for shape (1, 2)",
            ),
            ((x,), {"axis": 0.5}, TypeError, "axis must be ints or None, not 0.5"),
            (
                (x,),
                {"axis": (0, "1")},
                TypeError,
                "axis must be ints or None, not (0, '1')",
            ),
            (
                (x,),
                {"axis": (0, -2)},
                ValueError,
                "axis -2 is given twice for shape (1, 2)",
            ),
            (
                (x,),
                {"axis": (0, 2)},
                ValueError,
                "axis 2 is out of bounds for shape (1, 2)",
            ),
            (
                (x, y),
                {"axis": 1},
                ValueError,
                "y has shape (3,), the result has (1,): outputs are not broadcast",
            ),
            ((1, y), {}, ValueError, 'kernel "total" needs a tensor to reduce'),
        ):
            with pytest.raises(error) as told:
                kernel(*args, **options)
            assert str(told.value) == message
    with pytest.raises(
        ValueError, match=r"^reduce_type must be one of f32, .*not 'vec3f'$"
    ):
        total(reduce_type="vec3f")
    with pytest.raises(ValueError, match="a reduction needs an input that is not raw"):
        ReductionKernel("raw f32 x", "f32 y", "x[i]", "a + b", "y = a", 0)
    with pytest.raises(TypeError, match="name must be a str, not an int"):
        total(name=7)


async def test_half_precision(device):
    if not has_feature(device.gpu, "shader-f16"):
        pytest.skip("the device lacks shader-f16")
    kernel = total("f16")
    with upload(np.ones((3, 5)), "float16") as x:
        assert (await read(kernel(x, axis=0))).tolist() == [3] * 5
        assert (await read(kernel(x))).tolist() == 15
    with upload(np.full(8192, 2**-4), "float16") as x:
        assert (await read(kernel(x))).tolist() == 512


def test_the_source_and_the_name():
    assert "fn _reduce(a: u32, b: u32) -> u32" in total("u32").wgsl
    assert repr(total()) == "<ReductionKernel 'reduce_kernel' (f32 x) -> (f32 y)>"
    assert ReductionKernel.__module__ == "dlpack_web.webgpu"


def test_shaders_are_compiled_once():
    kernel = total()
    for n in (5, 5000, 50000):
        with upload(np.ones(n)) as x:
            for _ in range(2):
                kernel(x).release()
    keys = [("whole", True, "t"), ("first", True, "t"), ("last", True, "")]
    assert list(kernel._signature.kernels) == keys


def test_a_failed_call_keeps_nothing():
    kernel = total()
    gc.collect()
    with upload(np.arange(20000)) as t, t[::2] as strided:
        before = live()
        with pytest.raises(BufferError) as told:  # keeps the frames of the call
            kernel(strided)
        assert live() == before
        del told


async def test_a_lost_device():
    device = await dlw.webgpu.request_device(label="to be lost")
    x = dlw.from_dlpack(np.ones(5000, np.float32), device=device)
    kernel = total()
    kernel(x).release()
    await destroy(device)
    with pytest.raises(dlw.DeviceLostError):
        kernel(x)
    x.release()


def random_axes(r, ndim):
    """None, an axis, or several in any order, some counted from the last."""
    if r.random() < 0.2 or ndim == 0:
        return None
    given = [int(at) for at in r.permutation(ndim)[: r.integers(0, ndim + 1)]]
    given = [at - ndim * int(r.integers(2)) for at in given]
    return given[0] if len(given) == 1 and r.random() < 0.5 else tuple(given)


@pytest.mark.parametrize("seed", range(0, 12, 1 if WHOLE else 4))
async def test_random_reductions(seed):
    r = np.random.default_rng(seed)
    type_ = ("f32", "i32", "u32")[seed % 3]
    dtype = DTYPES[type_]
    reduce, identity, model = (
        ("a + b", 0, np.sum),
        ("max(a, b)", 0, np.max),
        ("min(a, b)", 1000, np.min),
    )[seed // 3 % 3]
    kernel = ReductionKernel(
        f"{type_} x, {type_} k",
        f"{type_} y",
        "x * x * k",
        reduce,
        "y = a + 1",
        identity,
    )
    for _ in range(8):
        shape = tuple(int(2 ** r.uniform(0, 5)) for _ in range(r.integers(0, 5)))
        if r.random() < 0.3:
            shape = (*shape, int(2 ** r.uniform(8, 14)))
        if r.random() < 0.1:
            shape = (*shape, 0)
        shape = tuple(int(n) for n in r.permutation(shape))
        a = r.integers(0, 10, shape).astype(dtype)
        axis, keepdims, k = random_axes(r, len(shape)), bool(r.integers(2)), 1
        how = {"axis": axis, "keepdims": keepdims}
        expected = model(a * a, **how, initial=identity).astype(dtype) + 1
        # Beyond 2 ** 24, float32 does not have every integer.
        rtol = 1e-6 if type_ == "f32" and expected.max(initial=0) > 2**24 else 0
        with upload(a, dtype) as x:
            if shape and r.random() < 0.3:
                k = upload(1, dtype)
            if r.random() < 0.5:
                with upload(np.zeros(expected.shape), dtype) as y:
                    for _ in range(2):
                        assert kernel(x, k, y, **how) is y
                        np.testing.assert_allclose(await y.to_host(), expected, rtol)
            made = kernel(x, k, **how)
            assert made.shape == expected.shape
            np.testing.assert_allclose(await read(made), expected, rtol)
            if k != 1:
                k.release()


async def test_reductions_are_recorded_with_other_axes():
    kernel = total()
    a = np.arange(12, dtype="f4").reshape(3, 4)
    with upload(a) as x, upload(np.zeros(4)) as y, upload(np.zeros(3)) as z:
        kernel(x, y, axis=0)
        with dlw.webgpu.batch() as batch:
            kernel(x, y, axis=0)
            kernel(x, z, axis=1)
        x.write(a + 1)
        batch.run()
        np.testing.assert_array_equal(await y.to_host(), (a + 1).sum(0))
        np.testing.assert_array_equal(await z.to_host(), (a + 1).sum(1))
        batch.release()


async def test_kernels_of_formulas_are_recorded():
    """Outputs and partial results are those of the recording."""
    double = ElementwiseKernel("f32 x, f32 k", "f32 y", "y = k * x")
    kernel = total()
    with upload(np.ones(10_000)) as x:
        with dlw.webgpu.batch() as batch:
            double(x, 2, x)
            y = kernel(x)
        with y:
            for expected in (20_000, 40_000):
                batch.run()
                assert float(await y.to_host()) == expected
        batch.release()
