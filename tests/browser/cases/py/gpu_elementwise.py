"""ElementwiseKernel and ReductionKernel: results, shapes, errors at the formula, holds."""

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


@pytest.fixture
def axpy():
    return ElementwiseKernel("f32 x, f32 y, f32 k", "f32 z", "z = k * x + y", "axpy")


def total(type_="f32", **more):
    return ReductionKernel(f"{type_} x", f"{type_} y", "x", "a + b", "y = a", 0, **more)


# --- elementwise --------------------------------------------------------------------------


async def test_a_new_output_has_shape_and_device_of_the_inputs(axpy, device):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    with upload(a) as x:
        z = axpy(x, x, 10)
        assert (z.shape, z.dtype, z.device) == ((3, 4), "float32", device)
        np.testing.assert_array_equal(await read(z), 11 * a)


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int64(2), True])
async def test_numbers_are_broadcast(axpy, number):
    with upload([1, 2]) as x:
        assert (await read(axpy(x, 0, number))).tolist() == [number, 2 * number]


async def test_tensors_of_no_axes_are_broadcast(axpy):
    with upload([1, 2, 3]) as x, upload(10) as y:
        assert (await read(axpy(x, y, y))).tolist() == [20, 30, 40]
        assert (await read(axpy(y, x, 2))).tolist() == [21, 22, 23]
        alone = axpy(y, y, 2)
        assert alone.shape == ()
        assert (await read(alone)).tolist() == 30


async def test_an_output_may_be_given_and_be_an_input(axpy):
    with upload([1, 2]) as x, upload([5, 5]) as y, upload([0, 0]) as z:
        assert axpy(x, y, 2, z) is z
        assert (await z.to_host()).tolist() == [7, 9]
        assert axpy(x, z, 2, z) is z
        assert (await z.to_host()).tolist() == [9, 13]
        axpy(z, z, 2, z)
        assert (await z.to_host()).tolist() == [27, 39]
        assert (await x.to_host()).tolist() == [1, 2]


async def test_views_of_the_output_are_inputs():
    add = ElementwiseKernel("f32 x", "f32 y", "y += x")
    with upload(np.arange(128)) as x, x[:64] as low, x[64:] as high:
        add(low, high)
        expected = np.arange(128) + np.r_[np.zeros(64), np.arange(64)]
        np.testing.assert_array_equal(await x.to_host(), expected)
        with upload(np.arange(128)) as y, y[1:65] as shifted, y[:64] as first:
            add(shifted, first)
            expected = np.arange(128) + np.r_[np.arange(1, 65), np.zeros(64)]
            np.testing.assert_array_equal(await y.to_host(), expected)


async def test_outputs_begin_with_what_they_have():
    count = ElementwiseKernel("", "u32 y", "y += i + n")
    with upload([10, 20, 30], "uint32") as y:
        count(y)
        assert (await y.to_host()).tolist() == [13, 24, 35]
    fresh = ElementwiseKernel("i32 x", "i32 y", "if (x > 1) { y += 5; }")
    with upload([1, 2], "int32") as x:
        assert (await read(fresh(x))).tolist() == [0, 5]


async def test_several_outputs_of_several_types():
    split = ElementwiseKernel(
        "f32 x", "i32 whole, f32 rest", "whole = i32(floor(x)); rest = x - floor(x)"
    )
    with upload([1.25, -0.5]) as x:
        whole, rest = split(x)
        assert (await read(whole)).tolist() == [1, -1]
        assert (await read(rest)).tolist() == [0.25, 0.5]


async def test_raw_inputs_are_indexed_by_the_formula():
    flip = ElementwiseKernel("raw f32 x, f32 k", "f32 y", "y = k * x[n - 1 - i]")
    with upload([1, 2, 3, 4]) as x, upload([0, 0]) as y:
        assert (await read(flip(x, 2, size=3))).tolist() == [6, 4, 2]
        flip(x, 1, y)
        assert (await y.to_host()).tolist() == [2, 1]
        smooth = ElementwiseKernel("raw f32 x", "f32 y", "y = x[min(i + 1, n - 1)]")
        smooth(x, x)
        assert (await x.to_host()).tolist() == [2, 3, 4, 4]


async def test_names_of_numpys_dtypes_are_types():
    kernel = ElementwiseKernel("float32 x, int32 y", "uint32 z", "z = u32(x) + u32(y)")
    with upload([1.5]) as x, upload([2], "int32") as y:
        assert (await read(kernel(x, y))).tolist() == [3]


async def test_nothing_is_computed_of_no_elements(axpy):
    with upload(np.zeros((0, 3))) as x:
        z = axpy(x, x, 1)
        assert z.shape == (0, 3)
        z.release()
        assert axpy(x, x, 1, x) is x


async def test_more_elements_than_one_axis_of_workgroups_has():
    kernel = ElementwiseKernel("u32 x", "u32 y", "y = x ^ i")
    n = 65535 * 64 + 1
    a = np.arange(n, dtype=np.uint32)[::-1].copy()
    with upload(a, "uint32") as x:
        np.testing.assert_array_equal(
            await read(kernel(x)), a ^ np.arange(n, dtype="u4")
        )


async def test_half_precision(device):
    kernel = ElementwiseKernel("f16 x, f16 k", "f16 y", "y = k * x + f16(n)", "half")
    if not has_feature(device.gpu, "shader-f16"):
        with upload([1], "float16") as x, pytest.raises(BufferError) as told:
            kernel(x, 1)
        assert str(told.value) == (
            f'kernel "half" is of f16, and {device} lacks the feature "shader-f16", which '
            "request_device() asks for where the adapter has it: use f32"
        )
        return
    for a in ([1, 2, 3], [4]):
        with upload(a, "float16") as x:
            assert (await read(kernel(x, 0.5))).tolist() == [len(a) + v / 2 for v in a]
            assert (await read(kernel(x, x))).tolist() == [len(a) + v * v for v in a]
            with pytest.raises(ValueError, match=r"^k: 1e\+?06|1000000"):
                kernel(x, 1e6)
    sums = total("f16")
    with upload(np.ones((3, 5)), "float16") as x:
        assert (await read(sums(x, axis=0))).tolist() == [3] * 5
        assert (await read(sums(x))).tolist() == 15


# --- reductions ---------------------------------------------------------------------------


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


# --- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "line", "shown"),
    [
        ("y = z", 1, "\ny = z\n    ^"),
        (
            "\n  let t = x;\n  y = t + nonsense;",
            3,
            "\n  y = t + nonsense;\n          ^",
        ),
        ("y = x +", 1, None),
        ("y = u32(x)", 1, "\ny = u32(x)\n"),
        ("y = x }", None, None),
        ("if (x > 0) {", None, None),
    ],
)
async def test_an_error_is_at_the_users_own_line(operation, line, shown):
    kernel = ElementwiseKernel("f32 x", "f32 y", operation, "wrong")
    with pytest.raises(dlw.KernelError) as told:
        await kernel.ready()
    message = str(told.value)
    assert told.value.label == "wrong"
    assert message.startswith('compiling kernel "wrong" failed on webgpu:')
    if line is not None:
        assert told.value.line == line
        assert f": operation, line {line}:" in message
    assert shown is None or shown in message


async def test_an_error_of_a_call_comes_with_its_result():
    kernel = ElementwiseKernel("f32 x", "f32 y", "\ny = z", "wrong")
    with upload([1]) as x:
        y = kernel(x)
        with pytest.raises(dlw.KernelError, match="operation, line 2:5: ") as told:
            await read(y)
    assert (told.value.label, told.value.line) == ("wrong", 2)
    assert told.value.filename == __file__


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"map_expr": "x + c"}, "map_expr, line 1:5"),
        ({"map_expr": "x\n+ c"}, "map_expr, line 2:3"),
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


async def test_a_reserved_word_of_wgsl_is_no_line_of_the_formula():
    kernel = ElementwiseKernel("f32 active", "f32 y", "y = active")
    with pytest.raises(dlw.KernelError, match="generated source, line ") as told:
        await kernel.ready()
    assert told.value.line is None


def test_arguments_that_do_not_fit(axpy):
    raw = ElementwiseKernel("raw f32 x, i32 k", "f32 y", "y = x[i]", "raw")
    other = upload([1, 2], "float64")
    with upload([1, 2]) as x, upload([1, 2, 3]) as long, other, upload(7) as single:
        for kernel, args, error, message in (
            (
                axpy,
                (x, x),
                TypeError,
                (
                    'kernel "axpy" takes 3 arguments (f32 x, f32 y, f32 k) '
                    "-> (f32 z), or 4 with its outputs, not 2"
                ),
            ),
            (
                axpy,
                (x, long, 1),
                ValueError,
                (
                    'the shapes of kernel "axpy" must agree: x (2,), '
                    "y (3,); only numbers and tensors of shape () are broadcast"
                ),
            ),
            (
                axpy,
                (x, x, 1, long),
                ValueError,
                ("z has shape (3,), the inputs have (2,): outputs are not broadcast"),
            ),
            (
                axpy,
                (single, 1, 1, x),
                ValueError,
                ("z has shape (2,), the inputs have (): outputs are not broadcast"),
            ),
            (
                axpy,
                (x, other, 1),
                BufferError,
                (
                    'y is float64, the parameter is "f32 y": WGSL '
                    'has no 64-bit types; upload it with dtype "float32"'
                ),
            ),
            (
                raw,
                (x, other),
                BufferError,
                (
                    'k is float64, the parameter is "i32 k": give a '
                    "tensor of int32, or declare the parameter otherwise"
                ),
            ),
            (
                axpy,
                (x, x, 1, 2),
                TypeError,
                "z is an output and takes a Tensor, not an int",
            ),
            (raw, (3, x), TypeError, "x is raw and takes a Tensor, not an int"),
            (
                raw,
                (x, 1),
                ValueError,
                (
                    'kernel "raw" does not know how many elements to '
                    "compute: give the outputs, or size="
                ),
            ),
            (
                axpy,
                (x, "1", 1),
                TypeError,
                (
                    "y has type str; a kernel takes Tensors, for "
                    "example dlpack_web.from_dlpack(x, device='webgpu'), and numbers"
                ),
            ),
            (
                axpy,
                (x, np.ones(2), 1),
                TypeError,
                (
                    "y has type ndarray; a kernel takes "
                    "Tensors, for example dlpack_web.from_dlpack(x, device='webgpu'), and numbers"
                ),
            ),
            (axpy, (1, 2, 3), TypeError, "a kernel needs at least one tensor"),
        ):
            with pytest.raises(error) as told:
                kernel(*args)
            assert str(told.value) == message
        with pytest.raises(ValueError, match=r"^k: 1.5 is not a valid i32$"):
            raw(x, 1.5, size=2)
        with pytest.raises(
            ValueError, match=r"the tensors have shape \(2,\): size= is "
        ):
            axpy(x, x, 1, size=2)


def test_tensors_elsewhere(axpy):
    with dlw.empty(2) as host, upload([1, 2]) as x:
        with pytest.raises(BufferError) as told:
            axpy(x, host, 1)
        assert str(told.value) == (
            "y is on cpu; a kernel takes WebGPU tensors: use t.to_device('webgpu')"
        )
    with pytest.raises(dlw.ReleasedError):
        axpy(x, x, 1)


async def test_strided_and_unaligned_tensors(axpy):
    with upload(np.arange(200)) as t, t[1::2] as strided, t[3:7] as unaligned:
        with pytest.raises(BufferError, match=r"has strides \(2,\): on WebGPU it "):
            axpy(strided, strided, 1)
        assert (await read(axpy(unaligned, 0, 2))).tolist() == [6, 8, 10, 12]
        with t[8:12] as target:
            axpy(unaligned, unaligned, 1, target)
        assert (await t.to_host())[6:14].tolist() == [6, 7, 6, 8, 10, 12, 12, 13]


def test_outputs_that_overlap():
    both = ElementwiseKernel("f32 x", "f32 y, f32 z", "y = x; z = x")
    x, y = upload([1, 2]), upload([1, 2])
    with x, y, pytest.raises(BufferError) as told:
        both(x, y, y)
    assert str(told.value) == (
        "y and z of the kernel overlap, and both are read_write: give one of them a copy"
    )


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


def test_the_source_and_the_name(axpy):
    assert "let k = _k_[i];" in axpy.wgsl
    assert "z = k * x + y" in axpy.wgsl.splitlines()
    assert repr(axpy) == "<ElementwiseKernel 'axpy' (f32 x, f32 y, f32 k) -> (f32 z)>"
    assert "fn _reduce(a: u32, b: u32) -> u32" in total("u32").wgsl
    assert repr(total()) == "<ReductionKernel 'reduce_kernel' (f32 x) -> (f32 y)>"
    assert (
        ElementwiseKernel.__module__
        == ReductionKernel.__module__
        == "dlpack_web.webgpu"
    )


def test_a_shader_is_compiled_once_for_each_combination(axpy):
    with upload([1, 2]) as x:
        for args in ((x, x, 1), (x, x, 2.5), (x, 1, 1), (x, x, x), (x, 2, 2)):
            axpy(*args).release()
    assert list(axpy._kernels) == ["ttn", "tnn", "ttt"]
    assert [len(kernel._compiled) for kernel, _ in axpy._kernels.values()] == [1, 1, 1]


def test_a_failed_call_keeps_no_output(axpy):
    kernel = total()
    gc.collect()
    with upload(np.arange(20000)) as t, t[::2] as strided:
        before = live()
        for call in (lambda: axpy(strided, 1, 1), lambda: kernel(strided)):
            with pytest.raises(BufferError):
                call()
            assert live() == before


async def test_a_lost_device(axpy):
    device = await dlw.webgpu.request_device(label="to be lost")
    x = dlw.from_dlpack(np.ones(5000, np.float32), device=device)
    kernel = total()
    kernel(x).release()
    await destroy(device)
    for call in (lambda: axpy(x, x, 1), lambda: kernel(x)):
        with pytest.raises(dlw.DeviceLostError):
            call()
    x.release()


# --- a model ------------------------------------------------------------------------------

_BINARY = {
    "({} + {})": np.add,
    "({} - {})": np.subtract,
    "({} * {})": np.multiply,
    "min({}, {})": np.minimum,
    "max({}, {})": np.maximum,
}


def random_formula(r, names, values, depth=3):
    """A formula of WGSL over the names, and its value by NumPy."""
    if depth == 0 or r.random() < 0.2:
        name = r.choice(names)
        return name, values[name]
    text = r.choice(list(_BINARY))
    (a, left), (b, right) = (
        random_formula(r, names, values, depth - 1) for _ in range(2)
    )
    return text.format(a, b), _BINARY[text](left, right)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore:overflow")
async def test_random_formulas(seed):
    """u32 and i32 wrap around, and f32 of small integers is exact: equal to the bit."""
    r = np.random.default_rng(seed)
    type_ = ("f32", "i32", "u32")[seed % 3]
    dtype, low = DTYPES[type_], 0 if type_ == "u32" else -9
    shape = tuple(r.integers(1, 9, r.integers(0, 4)))
    names = ["x", "y", "z"]
    tensors, args, values = [], [], {}
    for name in names:
        kind = r.choice(["tensor", "single", "number"]) if args else "tensor"
        value = r.integers(low, 10, shape if kind == "tensor" else (), "i8").astype(
            dtype
        )
        values[name] = value
        if kind != "number":
            tensors.append(upload(value, dtype))
        args.append(value.item() if kind == "number" else tensors[-1])
    text, expected = random_formula(r, names, values)
    inputs = ", ".join(f"{type_} {name}" for name in names)
    kernel = ElementwiseKernel(inputs, f"{type_} out", f"out = {text}")
    out = kernel(*args)
    np.testing.assert_array_equal(
        await read(out), np.broadcast_to(expected, shape).astype(dtype), text
    )
    into = tensors[0]
    kernel(*args, into)
    np.testing.assert_array_equal(
        await into.to_host(), np.broadcast_to(expected, shape).astype(dtype), text
    )
    for tensor in tensors:
        tensor.release()


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
