"""ElementwiseKernel: results, shapes, errors at the formula, holds."""

import gc
import os
import random

import numpy as np
import pytest
from gpu_world import destroy, has_feature, live

import dlpack_web as dlw
from dlpack_web.webgpu import ElementwiseKernel, ReductionKernel

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

SEEDS = range(12 if os.environ.get("WHOLE") else 4)
DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "f16": "float16"}


def upload(values, dtype="float32"):
    return dlw.from_dlpack(np.asarray(values, dtype), device="webgpu")


async def read(tensor):
    with tensor:
        return await tensor.to_host()


@pytest.fixture
def axpy():
    return ElementwiseKernel("f32 x, f32 y, f32 k", "f32 z", "z = k * x + y", "axpy")


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


@pytest.mark.parametrize(
    "name", ["step", "max", "select", "atomic", "vec3", "mat2x2f", "textureLoad"]
)
async def test_raw_inputs_may_have_names_that_wgsl_declares(name):
    inputs, value = f"raw f32 {name}, f32 k", f"{name}[i] * 2 + min(k, 0)"
    twice = ElementwiseKernel(inputs, "f32 y", f"y = {value}")
    total = ReductionKernel(inputs, "f32 y", value, "a + b", "y = a", 0)
    with upload([1, 2, 3]) as x:
        assert (await read(twice(x, x))).tolist() == [2, 4, 6]
        assert (await read(total(x, x))).tolist() == 12


async def test_a_kernel_of_numbers_computes_on_the_default_device():
    fill = ElementwiseKernel("f32 k", "f32 y", "y = k * f32(i)")
    count = ElementwiseKernel("", "i32 y, u32 z", "y = -i32(i); z = i")
    assert (await read(fill(2, size=3))).tolist() == [0, 2, 4]
    down, up = count(size=2)
    assert (await read(down)).tolist() == [0, -1]
    assert (await read(up)).tolist() == [0, 1]
    before = dlw.live_tensors()
    with pytest.raises(TypeError, match=r"^k has type ndarray; a kernel takes Tensors"):
        fill(np.ones(2), size=3)
    with pytest.raises(TypeError, match="takes 1 arguments"):
        fill(1, 2, 3, size=3)
    for size, error in (
        ("a", TypeError),
        ([3], TypeError),
        (2.0, TypeError),
        (-1, ValueError),
    ):
        with pytest.raises(error, match="size must be an int from 0 on, not"):
            fill(2, size=size)
    assert dlw.live_tensors() == before


@pytest.mark.parametrize(
    ("formula", "help"),
    [
        ("y = x ** 2", "WGSL has no **: write pow(x, 2.0)"),
        ("y = np.sin(x)", "functions of WGSL have no prefix: write sin(x)"),
        ("y = Math.sin(x)", "functions of WGSL have no prefix: write sin(x)"),
        (
            "y = x > 0 ? 1 : 2",
            "a choice of values is select(otherwise, value, condition)",
        ),
        (
            "y = 1 if x > 0 else 2",
            "a choice of values is select(otherwise, value, condition)",
        ),
        ("y = f32(x > 0 and x < 1)", "WGSL has && || ! true false"),
        ("int j = 2; y = x * j", "variables have no type before their name"),
        ("for (int j = 0; j < 3; j++) { y += x; }", "a loop is for (var j = 0u"),
        ("y = (float)x", "a conversion is a call: write f32(x)"),
        ("if x > 2: y = x", "blocks have braces: write if (x > 2) {"),
        ("y = fabs(x)", "write abs(x)"),
        ("y = random()", "WGSL has no random numbers"),
        ("z = 2 * x; y = z", "declare a new name: write let z = 2 * x"),
        ("y = unknown", None),
    ],
)
async def test_what_wgsl_lacks_gets_a_line_of_help(formula, help):
    kernel = ElementwiseKernel("f32 x", "f32 y", formula)
    with pytest.raises(dlw.KernelError, match="operation, line 1") as told:
        await kernel.ready()
    said = str(told.value)
    assert f"\nhelp: {help}" in said if help else "help:" not in said


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
    n = 65535 * 256 + 1
    a = np.arange(n, dtype=np.uint32)[::-1].copy()
    with upload(a, "uint32") as x:
        np.testing.assert_array_equal(
            await read(kernel(x)), a ^ np.arange(n, dtype="u4")
        )


@pytest.mark.parametrize("n", [1, 63, 65, 255, 256, 257, 1000])
async def test_each_element_is_computed_once_with_its_index(n):
    kernel = ElementwiseKernel("u32 x", "u32 y", "y += x + i")
    with upload(np.ones(n), "uint32") as x, upload(np.full(n, 7), "uint32") as y:
        assert (await read(kernel(x, y))).tolist() == [8 + i for i in range(n)]


async def test_a_formula_that_returns_early_leaves_its_element_alone():
    kernel = ElementwiseKernel("i32 x", "i32 y", "if (x < 0) { return; } y = x")
    a = np.arange(1000, dtype=np.int32) * np.where(np.arange(1000) % 3, 1, -1)
    with upload(a, "int32") as x, upload(np.full(1000, 7), "int32") as y:
        np.testing.assert_array_equal(await read(kernel(x, y)), np.where(a < 0, 7, a))


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


# WGSL 16.1: Keyword Summary, and 16.2: Reserved Words.
WORDS = """
alias break case const const_assert continue continuing default diagnostic discard
else enable false fn for if let loop override requires return struct switch true var
while NULL Self abstract active alignas alignof as asm asm_fragment async attribute
auto await become cast catch class co_await co_return co_yield coherent column_major
common compile compile_fragment concept const_cast consteval constexpr constinit
crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit
export extends extern external fallthrough filter final finally friend from fxgroup
get goto groupshared highp impl implements import inline instanceof interface layout
lowp macro macro_rules match mediump meta mod module move mut mutable namespace new
nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset pass patch pixelfragment precise precision
premerge priv protected pub public readonly ref regardless register reinterpret_cast
require resource restrict self set shared sizeof smooth snorm static static_assert
static_cast std subroutine super target template this thread_local throw trait try
type typedef typeid typename typeof union unless unorm unsafe unsized use using
varying virtual volatile wgsl where with writeonly yield"""


async def test_a_reserved_word_of_wgsl_is_no_line_of_the_formula():
    for word in WORDS.split():
        for inputs, outputs, row in (
            (f"f32 {word}", "f32 y", f"  let {word} = _{word}_[i];"),
            (f"raw f32 {word}", "f32 y", f"read> {word}: array<f32>;"),
            ("f32 x", f"f32 {word}", f"  var {word} = _{word}_[i];"),
        ):
            kernel = ElementwiseKernel(inputs, outputs, ";")
            with pytest.raises(
                dlw.KernelError, match="generated source, line "
            ) as told:
                await kernel.ready()
            said = str(told.value)
            assert row in said
            assert "\nhelp: WGSL reserves the parameter's name: choose another" in said
            assert told.value.line is None


async def test_what_fails_after_the_formula_is_no_line_of_it():
    kernel = ElementwiseKernel("f32 x", "f32 y", "y = x;\n}}\nfn _more() {{")
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
        with pytest.raises(BufferError, match=r"has strides .2,?.: on WebGPU it "):
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


def test_the_source_and_the_name(axpy):
    assert "let k = _k_[i];" in axpy.wgsl
    assert "z = k * x + y" in axpy.wgsl.splitlines()
    assert repr(axpy) == "<ElementwiseKernel 'axpy' (f32 x, f32 y, f32 k) -> (f32 z)>"
    assert ElementwiseKernel.__module__ == "dlpack_web.webgpu"


def test_a_shader_is_compiled_once_for_each_combination(axpy):
    with upload([1, 2]) as x:
        for args in ((x, x, 1), (x, x, 2.5), (x, 1, 1), (x, x, x), (x, 2, 2)):
            axpy(*args).release()
    kernels = axpy._signature.kernels
    assert list(kernels) == ["ttn", "tnn", "ttt"]
    assert [len(kernel._compiled) for kernel in kernels.values()] == [1, 1, 1]


def test_a_failed_call_keeps_no_output(axpy):
    gc.collect()
    with upload(np.arange(200)) as t, t[::2] as strided:
        before = live()
        with pytest.raises(BufferError) as told:  # keeps the frames of the call
            axpy(strided, 1, 1)
        assert live() == before
        del told


async def test_a_lost_device(axpy):
    device = await dlw.webgpu.request_device(label="to be lost")
    x = dlw.from_dlpack(np.ones(5, np.float32), device=device)
    axpy(x, x, 1).release()
    await destroy(device)
    with pytest.raises(dlw.DeviceLostError):
        axpy(x, x, 1)
    x.release()


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


@pytest.mark.parametrize("seed", SEEDS)
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


@pytest.mark.parametrize("seed", SEEDS)
async def test_calls_that_come_again_do_what_they_did(seed):
    """Some are checked only once: beside NumPy, with other sizes, aliases and numbers in
    between, and tensors that are released and made again."""
    rng = random.Random(seed)
    scaled = ElementwiseKernel("f32 x, f32 k", "f32 y", "y = 0.5 * x + k")
    doubled = ElementwiseKernel("f32 x", "f32 y", "y = 2 * x")
    counted = ElementwiseKernel("raw f32 x, i32 k", "f32 y", "y = x[0] + f32(k)")
    halved = dlw.webgpu.Kernel("""
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<uniform> k: f32;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
          if (id.x < min(arrayLength(&x), arrayLength(&y))) { y[id.x] = x[id.x] / 2 + k; }
        }""")
    sizes = [5, 5, 5, 64, 64, 300]
    arrays = [np.arange(size, dtype="f4") for size in sizes]
    tensors = [upload(array) for array in arrays]
    for _ in range(150):
        i, j, k = rng.randrange(6), rng.randrange(6), rng.choice([0, 1, -3, 2.5])
        x, y, a, b = tensors[i], tensors[j], arrays[i], arrays[j]
        match rng.randrange(10):
            case 0 | 1 | 2:
                if len(a) != len(b):
                    with pytest.raises(ValueError, match="outputs are not broadcast"):
                        scaled(x, k, y)
                    continue
                assert scaled(x, k, y) is y
                b[:] = np.float32(0.5) * a + np.float32(k)
            case 3 | 4:
                if k == 2.5:
                    with pytest.raises(ValueError, match="not a valid i32"):
                        counted(x, k, y)
                    continue
                counted(x, k, y)
                b[:] = a[0] + np.float32(k)
            case 5 | 6:
                groups = rng.choice([None, 1])
                halved(x, y, k, workgroups=groups)
                count = min(len(a), len(b), 4 if groups else len(b))
                b[:count] = a[:count] / 2 + np.float32(k)
            case 7:
                assert doubled(x, x) is x
                a *= 2
            case 8:
                new = await read(doubled(x))
                np.testing.assert_array_equal(new, 2 * a)
            case _:
                tensors[i].release()
                with pytest.raises(dlw.ReleasedError):
                    scaled(x, k, y)
                arrays[i] = rng.randrange(9) * np.ones(sizes[i], "f4")
                tensors[i] = upload(arrays[i])
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(await read(tensor), array)
