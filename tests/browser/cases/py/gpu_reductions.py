"""ReductionKernel: results, shapes, errors of the formulas."""

import gc

import numpy as np
import pytest
from gpu_world import destroy, has_feature, live

import dlpack_web as dlw
from dlpack_web.webgpu import ElementwiseKernel, ReductionKernel

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "f16": "float16"}


def upload(values, dtype="float32"):
    return dlw.from_dlpack(np.asarray(values, dtype), device="webgpu")


async def read(tensor):
    with tensor:
        return await tensor.to_host()


def total(type_="f32", **more):
    return ReductionKernel(f"{type_} x", f"{type_} y", "x", "a + b", "y = a", 0, **more)


@pytest.mark.parametrize(
    "shape",
    [
        (1,),
        (63,),
        (64,),
        (65,),
        (4097,),
        (70001,),
        (3, 5),
        (5, 1, 7),
        (20, 300),
        (9000, 20),
        (2, 5000, 3),
        (4, 3, 70),
        (1000, 16),
    ],
    ids=str,
)
async def test_all_axes(shape):
    kernel = total("u32")
    a = np.random.default_rng(len(shape)).integers(0, 1000, shape, "u4")
    with upload(a, "uint32") as x:
        for axis in (None, *range(-len(shape), len(shape))):
            for keepdims in (False, True):
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


async def test_the_index_of_the_largest():
    argmax = ReductionKernel(
        "f32 x", "u32 at", "vec2f(x, f32(i))", "select(b, a, a.x > b.x)",
        "at = u32(a.y) % n", "vec2f(-0x1.fffffep+127f, 0)", reduce_type="vec2f",
    )  # fmt: skip
    a = np.random.default_rng(1).permutation(20000).astype(np.float32).reshape(4, -1)
    with upload(a) as x:
        np.testing.assert_array_equal(await read(argmax(x, axis=1)), a.argmax(1))


async def test_bools_become_the_type_that_is_reduced():
    count = ReductionKernel("f32 x", "u32 y", "x > 1", "a + b", "y = a", 0)
    with upload([1, 2, 3]) as x:
        assert (await read(count(x))).tolist() == 2


async def test_raw_inputs_of_reductions():
    dot = ReductionKernel(
        "f32 x, raw f32 w", "f32 y", "x * w[i % 2]", "a + b", "y = a", 0
    )
    with upload([[1, 2], [3, 4]]) as x, upload([10, 1]) as w:
        assert (await read(dot(x, w, axis=1))).tolist() == [12, 34]


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
            ((x,), {"axis": 0.5}, TypeError, "axis must be an int or None, not 0.5"),
            (
                (x,),
                {"axis": (0, 1)},
                TypeError,
                "axis must be an int or None, not (0, 1)",
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
    assert list(kernel._kernels) == [("whole", "t"), ("first", "t"), ("last", "")]


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


@pytest.mark.parametrize("seed", range(12))
async def test_random_reductions(seed):
    r = np.random.default_rng(seed)
    type_ = ("f32", "i32", "u32")[seed % 3]
    dtype = DTYPES[type_]
    reduce, identity, model = (
        ("a + b", 0, np.sum),
        ("max(a, b)", 0, np.max),
        ("min(a, b)", 1000, np.min),
    )[seed // 3 % 3]
    shape = tuple(int(2 ** r.uniform(0, 6)) for _ in range(r.integers(1, 4)))
    shape = (*shape, int(2 ** r.uniform(0, 10)))
    shape = tuple(r.permutation(shape))
    a = r.integers(0, 10, shape).astype(dtype)
    kernel = ReductionKernel(
        f"{type_} x", f"{type_} y", "x * x", reduce, "y = a + 1", identity
    )
    axis = r.choice([None, *range(-len(shape), len(shape))])
    with upload(a, dtype) as x:
        got = await read(kernel(x, axis=axis))
    np.testing.assert_array_equal(got, (model(a * a, axis=axis) + 1).astype(dtype))


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
