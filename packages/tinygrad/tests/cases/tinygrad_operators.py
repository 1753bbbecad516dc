"""Operators of tinygrad on dlpack_web's device, against NumPy and, where there is a compiler,
against tinygrad's own CPU device."""

import math
import os
import shutil

import numpy as np
import pytest
from tinygrad_world import Tensor, dtypes, installed, read  # noqa: F401

pytestmark = pytest.mark.usefixtures("installed")

HAS_CPU = shutil.which(os.environ.get("CC", "clang")) is not None
_random = np.random.default_rng(0)
SPREAD = _random.normal(size=(5, 7)).astype(np.float32) * 2
POSITIVE = np.abs(SPREAD) + np.float32(0.1)
WITHIN = np.clip(SPREAD / 4, -0.9, 0.9).astype(np.float32)
WHOLE = _random.integers(-9, 10, (5, 7)).astype(np.int32)
OTHER = _random.normal(size=(5, 7)).astype(np.float32)
OTHER_WHOLE = _random.integers(1, 10, (5, 7)).astype(np.int32)
CUBE = _random.normal(size=(3, 4, 5)).astype(np.float32)


def check(function, reference, *arrays, tolerance=1e-4):
    """The same function of tinygrad's tensors on the GPU, and of its CPU; and NumPy's."""
    found = read(function(*(Tensor(a, device="WEBGPU") for a in arrays)))
    wanted = np.asarray(reference(*arrays))
    assert found.shape == wanted.shape
    close = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), **close
    )
    if HAS_CPU:
        theirs = function(*(Tensor(a, device="CPU") for a in arrays)).numpy()
        assert found.dtype == theirs.dtype
        np.testing.assert_allclose(
            found.astype(np.float64), theirs.astype(np.float64), **close
        )


def _erf(x):
    return np.vectorize(math.erf)(x)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Of those that tinygrad_special.py has not.
UNARY = {
    "sin": (SPREAD, np.sin),
    "cos": (SPREAD, np.cos),
    "tan": (WITHIN, np.tan),
    "asin": (WITHIN, np.arcsin),
    "acos": (WITHIN, np.arccos),
    "atan": (SPREAD, np.arctan),
    "sinh": (SPREAD, np.sinh),
    "cosh": (SPREAD, np.cosh),
    "asinh": (SPREAD, np.arcsinh),
    "atanh": (WITHIN, np.arctanh),
    "round": (SPREAD, np.round),
    "sign": (SPREAD, np.sign),
    "relu": (SPREAD, lambda x: np.maximum(x, 0)),
    "softplus": (SPREAD, lambda x: np.log1p(np.exp(x))),
    "softsign": (SPREAD, lambda x: x / (1 + np.abs(x))),
    "elu": (SPREAD, lambda x: np.where(x > 0, x, np.expm1(x))),
    "leaky_relu": (SPREAD, lambda x: np.where(x > 0, x, 0.01 * x)),
    "relu6": (SPREAD, lambda x: np.clip(x, 0, 6)),
    "hardtanh": (SPREAD, lambda x: np.clip(x, -1, 1)),
    "erf": (SPREAD, _erf),
    "bitwise_not": (WHOLE, np.invert),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    array, reference = UNARY[name]
    check(lambda t: getattr(t, name)(), reference, array)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
SIGNS = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
SIGNS |= {"eq": "__eq__", "ne": "__ne__"}


@pytest.mark.parametrize("kind", ["float", "int", "scalar", "broadcast"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, kind):
    method, reference = SIGNS.get(name, name), BINARY[name]
    if kind == "scalar":
        check(lambda t: getattr(t, method)(2), lambda x: reference(x, 2), WHOLE)
        return
    first, second = (WHOLE, OTHER_WHOLE) if kind == "int" else (SPREAD, OTHER)
    second = second[:1] if kind == "broadcast" else second
    check(lambda t, u: getattr(t, method)(u), reference, first, second)


MORE = {
    "div": (lambda a, b: a / b, np.divide, SPREAD, OTHER),
    "div of integers": (lambda a, b: a / b, np.divide, WHOLE, OTHER_WHOLE),
    "floor division": (lambda a, b: a // b, np.floor_divide, WHOLE, OTHER_WHOLE),
    "remainder": (lambda a, b: a % b, np.mod, WHOLE, OTHER_WHOLE),
    "and": (lambda a, b: a & b, np.bitwise_and, WHOLE, OTHER_WHOLE),
    "or": (lambda a, b: a | b, np.bitwise_or, WHOLE, OTHER_WHOLE),
    "xor": (lambda a, b: a ^ b, np.bitwise_xor, WHOLE, OTHER_WHOLE),
    "power": (lambda a: a**3, lambda a: a**3, SPREAD),
    "root": (lambda a: a**0.5, lambda a: a**0.5, POSITIVE),
    "power of tensors": (lambda a, b: a**b, np.power, POSITIVE, OTHER),
    "shift left": (lambda a: a << 3, lambda a: a << 3, OTHER_WHOLE),
    "shift right": (lambda a: a >> 1, lambda a: a >> 1, OTHER_WHOLE),
    "where": (lambda a, b: (a > b).where(a, b), np.maximum, SPREAD, OTHER),
    "clip": (lambda a: a.clip(-1, 1), lambda a: a.clip(-1, 1), SPREAD),
    "lerp": (
        lambda a, b: a.lerp(b, 0.25),
        lambda a, b: a + 0.25 * (b - a),
        SPREAD,
        OTHER,
    ),
    "constant": (lambda a: a * 0 + 3, lambda a: a * 0 + 3, SPREAD),
    "isclose": (lambda a, b: a.isclose(b), np.isclose, SPREAD, OTHER),
}


@pytest.mark.parametrize("name", MORE)
def test_more_of_elements(name):
    function, reference, *arrays = MORE[name]
    check(function, reference, *arrays)


REDUCE = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "std": lambda x, axis=None: np.std(x, axis=axis, ddof=1),
    "var": lambda x, axis=None: np.var(x, axis=axis, ddof=1),
}


@pytest.mark.parametrize("axis", [None, 0, 1, -1], ids=str)
@pytest.mark.parametrize("name", REDUCE)
def test_reduction(name, axis):
    reference = REDUCE[name]
    check(
        lambda t: getattr(t, name)(axis=axis), lambda x: reference(x, axis=axis), CUBE
    )


def _log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


ACROSS = {
    "any": (lambda t: (t > 2).any(axis=1), lambda x: (x > 2).any(axis=1), CUBE),
    "all": (lambda t: (t > -2).all(axis=0), lambda x: (x > -2).all(axis=0), CUBE),
    "keepdim": (
        lambda t: t.sum(1, keepdim=True),
        lambda x: x.sum(1, keepdims=True),
        CUBE,
    ),
    "two axes": (lambda t: t.sum((0, 2)), lambda x: x.sum((0, 2)), CUBE),
    "integers": (lambda t: t.sum(), np.sum, WHOLE),
    "cumsum": (lambda t: t.cumsum(1), lambda x: x.cumsum(1), CUBE),
    "cumsum, long": (lambda t: t.cumsum(), np.cumsum, np.ones(1000, np.float32)),
    "cumprod": (lambda t: t.cumprod(0), lambda x: x.cumprod(0), SPREAD),
    "logsumexp": (lambda t: t.logsumexp(-1), lambda x: np.log(np.exp(x).sum(-1)), CUBE),
    "softmax": (lambda t: t.softmax(), lambda x: np.exp(_log_softmax(x)), CUBE),
    "log_softmax": (lambda t: t.log_softmax(), _log_softmax, CUBE),
    "long": (lambda t: t.sum(), np.sum, np.ones(10007, np.float32)),
    "norm": (lambda t: t.square().sum().sqrt(), np.linalg.norm, CUBE),
    "sort": (lambda t: t.sort(-1)[0], lambda x: np.sort(x, -1), SPREAD),
    "topk": (lambda t: t.topk(3)[0], lambda x: -np.sort(-x, -1)[:, :3], SPREAD),
}


@pytest.mark.parametrize("name", ACROSS)
def test_reductions_of_other_kinds(name):
    check(*ACROSS[name])


MOVEMENT = {
    "reshape": (lambda t: t.reshape(12, 5), lambda x: x.reshape(12, 5)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, 2), lambda x: x.swapaxes(0, 2)),
    "flip": (lambda t: t.flip(1), lambda x: x[:, ::-1]),
    "pad": (
        lambda t: t.pad(((0, 0), (1, 2), (0, 1))),
        lambda x: np.pad(x, [(0, 0), (1, 2), (0, 1)]),
    ),
    "slice": (lambda t: t[1:, :2, 3:], lambda x: x[1:, :2, 3:]),
    "steps": (lambda t: t[:, ::2, ::-2], lambda x: x[:, ::2, ::-2]),
    "element": (lambda t: t[1, 2, 3], lambda x: x[1, 2, 3]),
    "new axes": (lambda t: t[:, None, ..., None], lambda x: x[:, None, ..., None]),
    "expand": (lambda t: t[:, :1].expand(3, 6, 5), lambda x: np.repeat(x[:, :1], 6, 1)),
    "repeat": (lambda t: t.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3))),
    "cat": (lambda t: t.cat(t, dim=1), lambda x: np.concatenate([x, x], 1)),
    "stack": (lambda t: Tensor.stack(t, -t), lambda x: np.stack([x, -x])),
    "many": (
        lambda t: Tensor.stack(*(t + i for i in range(12))),
        lambda x: np.stack([x + i for i in range(12)]),
    ),
    "split": (lambda t: t.split(2, dim=1)[1], lambda x: x[:, 2:4]),
    "chunk": (lambda t: t.chunk(2, dim=2)[1], lambda x: x[:, :, 3:]),
    "squeeze": (lambda t: t[:1].squeeze(0), lambda x: x[0]),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda x: x[:, None]),
    "flatten": (lambda t: t.flatten(1), lambda x: x.reshape(3, -1)),
    "roll": (lambda t: t.roll(2, 1), lambda x: np.roll(x, 2, 1)),
    "triu": (lambda t: t.triu(), np.triu),
    "tril": (lambda t: t.tril(-1), lambda x: np.tril(x, -1)),
    "diagonal": (lambda t: t[0, :, :4].diagonal(), lambda x: x[0, :, :4].diagonal()),
    "contiguous": (
        lambda t: t.permute(1, 2, 0).contiguous(),
        lambda x: x.transpose(1, 2, 0),
    ),
    "twice": (
        lambda t: t.permute(2, 1, 0)[::2].reshape(-1) * 2,
        lambda x: x.transpose(2, 1, 0)[::2].reshape(-1) * 2,
    ),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name):
    check(*MOVEMENT[name], CUBE)


def _batch(*shape):
    return _random.normal(size=shape).astype(np.float32)


MATMUL = [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5))]
MATMUL += [((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((64, 64), (64, 64))]
MATMUL += [((1, 1), (1, 1)), ((17, 33), (33, 65)), ((128, 64), (64, 1))]


@pytest.mark.parametrize(("first", "second"), MATMUL, ids=str)
def test_matmul(first, second):
    check(lambda a, b: a @ b, np.matmul, _batch(*first), _batch(*second))


def test_products_of_other_kinds():
    check(lambda a, b: a @ b, np.matmul, WHOLE, OTHER_WHOLE.T.copy())
    sums = "ij,kj->ik"
    check(
        lambda a, b: Tensor.einsum(sums, a, b),
        lambda a, b: np.einsum(sums, a, b),
        SPREAD,
        OTHER,
    )
    check(
        lambda a, b: a.outer(b) if hasattr(a, "outer") else a[:, None] * b,
        np.outer,
        SPREAD[0],
        OTHER[1],
    )


def _conv2d(x, w, stride=1, padding=0, dilation=1, groups=1):
    x = np.pad(x, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    count, inputs = w.shape[:2]
    high, wide = ((k - 1) * dilation + 1 for k in w.shape[2:])
    rows, columns = (
        (n - k) // stride + 1 for n, k in zip(x.shape[2:], (high, wide), strict=True)
    )
    out = np.zeros((len(x), count, rows, columns), np.float32)
    for o in range(count):
        first = o // (count // groups) * inputs
        part = x[:, first : first + inputs]
        for i in range(rows):
            for j in range(columns):
                y, z = i * stride, j * stride
                seen = part[:, :, y : y + high : dilation, z : z + wide : dilation]
                out[:, o, i, j] = (seen * w[o]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"dilation": 2},
        {"groups": 2},
        {"stride": 2, "padding": 2},
    ],
    ids=str,
)
def test_convolution(options):
    x, w = _batch(2, 4, 9, 9), _batch(6, 4 // options.get("groups", 1), 3, 3)
    check(
        lambda a, b: a.conv2d(b, **options), lambda a, b: _conv2d(a, b, **options), x, w
    )


def _pooled(x, reduce):
    return reduce(x.reshape(2, 3, 4, 2, 4, 2), (3, 5))


def test_pools():
    x = _batch(2, 3, 8, 8)
    check(lambda t: t.max_pool2d(), lambda a: _pooled(a, np.max), x)
    check(lambda t: t.avg_pool2d(), lambda a: _pooled(a, np.mean), x)


PICK = np.array([2, 0, 2, 4], np.int32)
INDEXING = {
    "rows": (lambda t, i: t[i], lambda x, i: x[i], SPREAD, PICK),
    "columns": (lambda t, i: t[:, i], lambda x, i: x[:, i], SPREAD, PICK),
    "pairs": (lambda t, i: t[i, i], lambda x, i: x[i, i], SPREAD, PICK),
    "negative": (lambda t, i: t[i - 5], lambda x, i: x[i - 5], SPREAD, PICK),
    "gather": (
        lambda t, i: t.gather(0, i[:, None].expand(4, 7)),
        lambda x, i: x[i],
        SPREAD,
        PICK,
    ),
    "one_hot": (lambda i: i.one_hot(5), lambda i: np.eye(5, dtype=np.int32)[i], PICK),
    "arange": (lambda i: Tensor.arange(5)[i], lambda i: np.arange(5)[i], PICK),
    "lists": (lambda t: t[[0, 2]], lambda x: x[[0, 2]], SPREAD),
    "masks": (lambda t: (t > 0).where(t, 0), lambda x: np.where(x > 0, x, 0), SPREAD),
    "scatter": (
        lambda i: Tensor.zeros(5, device=i.device).scatter(
            0, i[:2], Tensor([1.0, 2.0], device=i.device)
        ),
        lambda i: np.array([2, 0, 1, 0, 0]),
        PICK,
    ),
}


@pytest.mark.parametrize("name", INDEXING)
def test_indexing(name):
    check(*INDEXING[name])


TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", TYPES)
def test_cast(source, target):
    values = np.array([0, 1, 2, 3, 100, 7, 0], source)  # 7: no whole words
    check(lambda t: t.cast(getattr(dtypes, target)), lambda x: x.astype(target), values)


@pytest.mark.parametrize("name", TYPES)
def test_arithmetic_of_each_dtype(name):
    values = np.array([1, 0, 3, 4, 5], name)
    wanted = (lambda x: x | x) if name == "bool" else (lambda x: (x + x) * x)
    check(wanted, wanted, values)


def _derivative(function, x, step=1e-3):
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        shift = np.zeros(x.shape)
        shift[at] = step
        out[at] = (function(x + shift) - function(x - shift)) / (2 * step)
    return out


W = _random.normal(size=(7, 3))
GRADIENTS = {
    "square": (lambda t: (t * t).sum(), lambda x: (x * x).sum()),
    "exp": (lambda t: t.exp().sum(), lambda x: np.exp(x).sum()),
    "log": (lambda t: (t * t + 1).log().sum(), lambda x: np.log(x * x + 1).sum()),
    "sin": (lambda t: t.sin().sum(), lambda x: np.sin(x).sum()),
    "tanh": (lambda t: t.tanh().sum(), lambda x: np.tanh(x).sum()),
    "sigmoid": (lambda t: t.sigmoid().sum(), lambda x: _sigmoid(x).sum()),
    "mean": (lambda t: t.mean(), np.mean),
    "var": (lambda t: t.var(), lambda x: x.var(ddof=1)),
    "division": (lambda t: (1 / (t * t + 1)).sum(), lambda x: (1 / (x * x + 1)).sum()),
    "softmax": (
        lambda t: (t.log_softmax() * 2).sum(),
        lambda x: 2 * _log_softmax(x).sum(),
    ),
    "movement": (lambda t: (t.T[::2] ** 3).sum(), lambda x: (x.T[::2] ** 3).sum()),
    "pad": (
        lambda t: (t.pad(((1, 1), (0, 2))) + 1).square().sum(),
        lambda x: ((x + 1) ** 2).sum(),
    ),
    "broadcast": (lambda t: (t[:1] * t).sum(), lambda x: (x[:1] * x).sum()),
    "matmul": (
        lambda t: (t @ Tensor(W.astype(np.float32), device=t.device)).square().sum(),
        lambda x: ((x @ W) ** 2).sum(),
    ),
    "cumsum": (
        lambda t: t.cumsum(1).square().sum(),
        lambda x: (x.cumsum(1) ** 2).sum(),
    ),
    "index": (lambda t: t[1].square().sum(), lambda x: (x[1] ** 2).sum()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name):
    function, reference = GRADIENTS[name]

    def gradient(t):
        function(t).backward()
        return t.grad

    check(
        gradient,
        lambda x: _derivative(reference, x.astype(np.float64)),
        WITHIN * 2,
        tolerance=2e-3,
    )
