"""tinygrad on the GPU with NaN, infinities, both zeros and the ends of integers, against NumPy.

The references of TINYGRAD are tinygrad's own definitions, on every device: it differs from NumPy there.
Subnormal numbers are left out: WebGPU may take them for zero.
"""

import itertools
import operator
import sys

import numpy as np
import pytest
from tinygrad.helpers import Context
from tinygrad_world import Tensor, dtypes, installed, read  # noqa: F401

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

NAN, INF = float("nan"), float("inf")
IN_PAGE = sys.platform == "emscripten"  # where a kernel takes longer
FLOATS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 20.0, -100.0, 3e9, 3.4e38]


def check(function, reference, *arrays, tolerance=1e-5):
    found = read(function(*(Tensor(a, device="WEBGPU") for a in arrays)))
    wanted = np.asarray(reference(*arrays)).astype(found.dtype)
    assert found.shape == wanted.shape
    close = found == wanted
    if found.dtype.kind == "f":
        close = np.isclose(found, wanted, tolerance, tolerance, equal_nan=True)
    assert close.all(), [
        (*(a[i] for a in arrays if a.shape == found.shape), found[i], wanted[i])
        for i in zip(*np.nonzero(~close), strict=True)
    ]


def method(name):
    return lambda *tensors: getattr(Tensor, name)(*tensors)


UNARY = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sqrt")},
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "isnan")},
    **{name: getattr(np, name) for name in ("isinf", "isfinite", "square", "tanh")},
    "neg": np.negative,
    "abs": np.abs,
    "reciprocal": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "logical_not": np.logical_not,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
BINARY = {
    **{name: getattr(np, name) for name in ("add", "subtract", "multiply")},
    "divide": np.divide,
    **{name: getattr(np, name) for name in ("less", "greater", "equal", "not_equal")},
}
SIGNS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "greater": operator.gt,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
TINYGRAD = {
    "maximum": lambda a, b: np.where(a < b, b, a),
    "minimum": lambda a, b: np.where(-a < -b, b, a),
    "less_equal": lambda a, b: ~(b < a),
    "greater_equal": lambda a, b: ~(a < b),
}
SIGNS |= {"less_equal": operator.le, "greater_equal": operator.ge}


def floats(dtype, without=()):
    return np.array([x for x in FLOATS if x not in without], dtype)


def pairs(values):
    return (
        np.array(side, values.dtype)
        for side in zip(*itertools.product(values, values), strict=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    def reference(x):
        return UNARY[name](x.astype(np.float32))

    tolerance = 1e-5 if dtype == "float32" else 2e-3
    # -inf * 0 is NaN, of which tinygrad's silu is made.
    values = floats(dtype, [-INF] if name == "silu" else ())
    if name == "rsqrt":
        values = values[(values != 0) | ~np.signbit(values)]  # 1 / -0.0 and -1 / 0.0
    check(method(name), reference, values, tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", [*BINARY, *TINYGRAD])
def test_binary(name, dtype):
    values = floats(dtype, (3.4e38, 3e9) if name == "divide" else ())
    function = SIGNS.get(name, method(name))
    reference = {**BINARY, **TINYGRAD}[name]
    tolerance = 1e-4 if dtype == "float32" else 4e-3
    check(function, reference, *pairs(values), tolerance=tolerance)


@pytest.mark.parametrize("constant", [0.0, 1.0, NAN, INF])
@pytest.mark.parametrize("name", ["less", "greater", "equal", "not_equal", "add"])
def test_binary_with_a_constant(name, constant):
    check(
        lambda t: SIGNS[name](t, constant),
        lambda x: BINARY[name](x, np.float32(constant)),
        floats(np.float32),
    )


@pytest.mark.parametrize("exponent", [2, 3, -1, 2.5])
def test_powers(exponent):
    values = floats(np.float32, [-INF, -0.0])  # tinygrad's (-inf) ** 2.5 is NaN
    check(lambda t: t**exponent, lambda x: x**exponent, values, tolerance=1e-4)


@pytest.mark.parametrize(
    "values", [[1, NAN, 2], [NAN, 1], [INF, -INF], [0.0, -0.0]], ids=str
)
@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "any", "all", "cumsum", "softmax"]
)
def test_across(name, values):
    def softmax(x):
        powers = np.exp(x - x.max())
        return powers / powers.sum()

    reference = softmax if name == "softmax" else getattr(np, name)
    check(method(name), reference, np.array(values, np.float32))


def test_sign_of_nan_is_one():
    """tinygrad's definition."""
    values = floats(np.float32)
    check(method("sign"), lambda x: np.where(np.isnan(x), 1, np.sign(x) + 0.0), values)


def test_signs_of_zeros():
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    others = np.array([1.0, 1.0, -1.0, -1.0], np.float32)
    for function in (lambda a, b: a, lambda a, b: -a, operator.mul, operator.truediv):
        found = read(
            function(
                *(Tensor(a, device="WEBGPU") for a in (zeros, others))
            ).contiguous()
        )
        assert (np.signbit(found) == np.signbit(function(zeros, others))).all()


BITS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def whole_floats(dtype, count=400):
    """Of every size that the integers have: each ends at a power of two, or is within."""
    info, random = np.iinfo(dtype), np.random.default_rng(45)
    powers = 2.0 ** random.uniform(-1, 64, count) * random.choice([-1, 1], count)
    ends = [s * (2.0**n + d) for n in range(64) for s in (1, -1) for d in (-0.5, 0, 1)]
    found = np.array([*powers, *ends], np.float32)
    within = (found.astype(float) > info.min - 1.0) & (
        found.astype(float) < float(info.max)
    )
    return found[within]


@pytest.mark.parametrize("dtype", BITS)
def test_floats_become_integers(dtype):
    check(
        lambda t: t.cast(getattr(dtypes, dtype)),
        lambda x: np.array([int(each) for each in x.tolist()], dtype),
        whole_floats(dtype),
    )


def test_float16_becomes_int64():
    values = np.array([0.5, -1, 2048, 65504, -65504], np.float16)
    check(lambda t: t.cast(dtypes.int64), lambda x: x.astype(np.int64), values)


def ends_of(dtype):
    info = np.iinfo(dtype)
    near = (0, 1, 2, 127, 255, 2**24 + 1, 2**31, 2**32, 2**53 + 1, 10**18 + 7, 2**63)
    around = {s * x + d for x in near for s in (1, -1) for d in (-1, 0, 1)}
    found = sorted(
        {x for x in (*around, info.min, info.max) if info.min <= x <= info.max}
    )
    return np.array(found, dtype)


@pytest.mark.parametrize("dtype", BITS)
def test_integers_become_others(dtype):
    values = ends_of(dtype)
    for target in (*BITS, "float32", "bool"):
        check(
            lambda t, to=target: t.cast(getattr(dtypes, to)),
            lambda x, to=target: x.astype(to),
            values,
        )


INTEGERS = [np.add, np.subtract, np.multiply, np.bitwise_xor, np.maximum, np.minimum]
INTEGERS += [np.less, np.less_equal, np.equal, np.not_equal, np.floor_divide]
THEIRS = {"bitwise_xor": operator.xor, "floor_divide": operator.floordiv}


@pytest.mark.parametrize("dtype", BITS)
def test_integers(dtype):
    a, b = pairs(ends_of(dtype))
    for reference in INTEGERS:
        name = reference.__name__
        function = {**SIGNS, **THEIRS}.get(name, method(name))
        if name == "floor_divide":
            if dtype.endswith("64"):
                continue  # 64 steps, which take a minute to compile
            least = np.iinfo(dtype).min
            defined = (b != 0) & ~(
                (a == least) & (b == b.dtype.type(-1) if least else False)
            )
            check(function, reference, a[defined], b[defined])
        else:
            check(function, reference, a, b)


# --- several steps in one kernel ------------------------------------------------------------


def converted(x, dtype):
    """As `x.astype(dtype)`; bfloat16 is the numbers of float32 that it has."""
    if dtype != "bfloat16":
        return x.astype(dtype)
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(NAN), rounded.view(np.float32))


ARITHMETIC = [operator.add, operator.sub, operator.mul, lambda x, _: -x]


def quotient(x, y):
    """Towards 0."""
    if isinstance(x, Tensor):
        return x.div(y | 1, rounding_mode="trunc")
    return np.trunc(x / (y | 1)).astype(np.int64).astype(x.dtype)


WHOLE = [quotient, operator.xor, operator.and_, operator.or_, lambda x, y: x // (y | 1)]
WHOLE += [lambda x, _: x << 3, lambda x, _: x >> 2, lambda x, _: ~x]
FEW = [dtype for dtype in BITS if not dtype.endswith(("32", "64"))]
KINDS = [*FEW, "int32", "uint32", "float32", "float16", "bfloat16"]


def is_float(dtype):
    return "float" in dtype


def start_of(random, dtype, count=64):
    if is_float(dtype):
        return converted(random.integers(-999, 999, count) / np.float32(8), dtype)
    info = np.iinfo(dtype)
    found = random.integers(info.min, info.max, count, dtype, endpoint=True)
    if dtype in FEW:
        found[0], found[-1] = (
            info.min,
            max(info.min, -1),
        )  # of which the quotient leaves
    return found


def two_of(random, dtype):
    return start_of(random, dtype), start_of(random, dtype)[::-1]


def can_become(x, dtype):
    """Whether the elements are within the dtype, or wrap."""
    if x.dtype.kind != "f" or is_float(dtype):
        return True
    if not np.isfinite(x).all() or dtype == "bool":
        return False
    info = np.iinfo(dtype)
    return bool(((x > float(info.min) - 1) & (x < float(info.max))).all())


def compared(arrays, dtype, steps):
    """Runs functions, and casts to named dtypes, in one kernel and in NumPy."""
    tensors = [Tensor(a, device="WEBGPU").cast(getattr(dtypes, dtype)) for a in arrays]
    (x, y), (t, u) = arrays, tensors
    for step in steps:
        if callable(step):
            if not (is_float(dtype) and step in WHOLE):
                x, t = converted(step(x, y), dtype), step(t, u)
            continue
        if not (can_become(x, step) and can_become(y, step)):
            continue
        dtype = step
        x, y = (converted(each, dtype) for each in (x, y))
        t, u = (each.cast(getattr(dtypes, dtype)) for each in (t, u))
    found = read(t.cast(dtypes.float32) if dtype == "bfloat16" else t)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x, f"{steps}")


@pytest.mark.parametrize("dtype", [*FEW, "float16", "bfloat16"])
def test_each_step_is_in_its_dtype(dtype):
    random = np.random.default_rng(61)
    for step in [*ARITHMETIC, *([] if is_float(dtype) else WHOLE)]:
        targets = "float32", "int32", "uint32", *random.choice(KINDS, 2)
        for target in targets[: 1 if IN_PAGE else None]:
            compared(two_of(random, dtype), dtype, [step, str(target)])


def test_emulated_float16():
    values = np.float16([1e-3, -2e-4, 0.5, 1.001, 300, INF, NAN])
    t = Tensor(values, device="WEBGPU")
    with Context(EMULATED_DTYPES="half"):
        found = read((t * t).cast(dtypes.float32))
        logarithms = read(t.log2().cast(dtypes.float32))
    assert (np.isnan(logarithms) == np.isnan(np.log2(values))).all()
    exact = (values * values).astype(np.float32)
    found = np.where((found == 0) & (exact < 6.1e-5), exact, found)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("seed", range(4 if IN_PAGE else 40))
def test_random_steps(seed):
    random = np.random.default_rng(seed)
    first = str(random.choice(KINDS))
    steps = []
    for _ in range(random.integers(2, 7)):
        some = [*ARITHMETIC, *WHOLE]
        is_cast = random.integers(3) == 0
        steps.append(str(random.choice(KINDS)) if is_cast else random.choice(some))
    last = str(random.choice([*BITS, *KINDS]))
    compared(two_of(random, first), first, [*steps, last])
