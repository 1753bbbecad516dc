# More than 500 lines: one suite, whose tests share their fixtures.
"""Tensors where people use arrays: NumPy's functions, Python's own, and what they are told."""

import asyncio
import collections.abc
import copy
import hashlib
import inspect
import json
import operator
import pickle
import re
import struct
import sys
import zlib

import numpy as np
import pytest
from forge import Forged, Legacy

import dlpack_web as dlw

A = np.arange(6.0)
B = A.reshape(2, 3)
NOT_SUPPORTED = "Tensor does not support"


@pytest.fixture
def t():
    with dlw.from_dlpack(np.arange(6.0)) as tensor:
        yield tensor


@pytest.fixture
def matrix():
    with dlw.from_dlpack(np.arange(6.0).reshape(2, 3)) as tensor:
        yield tensor


@pytest.fixture(params=[[3], [[3]], 3], ids=["(1,)", "(1, 1)", "()"])
def single(request):
    with dlw.from_dlpack(np.array(request.param)) as tensor:
        yield tensor


# --- NumPy's functions ----------------------------------------------------------------------

# Of each way that NumPy takes an array; tests/interop/array_calls.py has more functions.
FUNCTIONS = {
    "sum": np.sum,
    "concatenate": lambda x: np.concatenate([x, x]),
    "add": lambda x: np.add(x, 1),
    "array +": lambda x: A + x,
    "array ==": lambda x: operator.eq(A, x),
    "== array": lambda x: x == A,
    "!= array": lambda x: x != A,
    "scalar *": lambda x: np.float32(2) * x,
    "where": lambda x: np.where(A > 2, x, 0),
    "where it": lambda x: np.where(x, 1, 0),
    "reshape": lambda x: np.reshape(x, (2, 3)),
    "array": np.array,
    "copy=True": lambda x: np.array(x, copy=True),
    "copy=False": lambda x: np.array(x, copy=False),
    "asarray": np.asarray,
    "another dtype": lambda x: np.asarray(x, dtype="float32"),
    "shape": np.shape,
    "zeros_like": np.zeros_like,
    "masked": np.ma.array,
    "index": lambda x: A[np.asarray(x, int)],
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_numpys_functions_take_it_as_an_array(t, function):
    found, expected = function(t), function(A)
    np.testing.assert_array_equal(found, expected)
    assert type(found) is type(expected)
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)


def test_numpy_copies_when_it_is_told_to():
    array = np.arange(6.0)
    with dlw.from_dlpack(array) as t:
        assert np.shares_memory(np.array(t, copy=False), array)
        assert np.shares_memory(np.asarray(t), array)
        assert not np.shares_memory(np.array(t), array)
        assert not np.shares_memory(np.array(t, copy=True), array)
        if np.lib.NumpyVersion(np.__version__) < "2.0.0":
            return  # copy=False meant: only if needed
        assert np.shares_memory(np.array(t, copy=None), array)
        with pytest.raises(ValueError, match="copy"):
            np.array(t, copy=False, dtype="float32")


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="this NumPy does not ask"
)
def test_numpy_asks_a_tensor_for_its_dtype(t):
    assert np.result_type(t, "float32") == np.float64
    with dlw.empty(3, "float32x4") as vectors, dlw.empty(3, "int8") as numbers:
        assert np.dtype(vectors) == np.float32
        assert np.result_type(vectors, numbers) == np.float32


def test_single_integers_are_indices_as_in_numpy(single):
    """Of shape () alone: x[array([3])] is an array, x[array(3)] a number."""
    ten = np.arange(10)
    np.testing.assert_array_equal(ten[single], ten[single.numpy()])
    assert np.shape(ten[single]) == single.shape
    if single.shape == ():
        assert list(range(single)) == [0, 1, 2]
        with dlw.from_dlpack(ten) as t:
            assert int(t[single]) == 3
    else:
        with pytest.raises(TypeError, match="can be an index, not one of"):
            range(single)


class Key:
    """A mask, or a list of places, of a library that has `__index__` for it."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape

    def __index__(self):
        return 1


def test_masks_and_lists_of_others_are_no_indices(t):
    """PyTorch's and MLX's of one element turn into ints."""
    for key in (Key("torch.bool", ()), Key("torch.int64", (1,)), Key("int32", (1, 1))):
        with pytest.raises(TypeError, match=r"for a copy use t\.numpy\(\)"):
            t[key]
    assert float(t[Key("torch.int64", ())]) == 1
    for mask in (t, A > 2, dlw.from_dlpack(A > 2), dlw.from_dlpack(np.array([1]))):
        with pytest.raises(TypeError, match=r"for a copy use t\.numpy\(\)"):
            t[mask]


def test_other_single_elements_are_no_indices():
    for array in (np.array(3.0), np.array(True)):
        with (
            dlw.from_dlpack(array) as t,
            pytest.raises(TypeError, match="can be an index, not one of"),
        ):
            range(t)


def test_array_interface_gives_no_address(t, matrix):
    """Warp took the first byte of "data", a buffer, for one, and crashed."""
    read_only = A.copy()
    read_only.flags.writeable = False
    for x in (t, matrix, t[::2], t[:0], dlw.from_dlpack(read_only)):
        described = x.__array_interface__
        assert described == {
            "version": 3,
            "shape": x.shape,
            "typestr": np.dtype(float).str,
            "strides": None if x._row_major() else x.numpy().strides,
        }
    with dlw.empty(2, "bfloat16") as other:
        assert not hasattr(other, "__array_interface__")
    t.release()
    with pytest.raises(dlw.ReleasedError):
        _ = t.__array_interface__


class Described:
    """All that NumPy finds of `x` if asking it for a buffer of elements fails."""

    def __init__(self, x):
        self._x, self.__array_interface__ = x, x.__array_interface__

    def __buffer__(self, flags):
        if flags & inspect.BufferFlags.FORMAT:
            raise BufferError("no elements")
        return memoryview(self._x).cast("B")


def test_numpy_takes_no_memory_by_the_interface_alone(matrix):
    """It lets go of such buffers at once, so the array would outlive `release()`."""
    with pytest.raises(ValueError, match="cannot coerce scalar"):
        np.asarray(Described(matrix))


# --- Python's own functions -----------------------------------------------------------------


def test_bytes_are_those_of_the_elements(t):
    for view in (t, t[2:4], t[:0], t.reshape((3, 2))):
        data = np.asarray(view).tobytes()
        assert bytes(view) == view.tobytes() == data
        assert zlib.crc32(view) == zlib.crc32(data)
        assert hashlib.sha256(view).digest() == hashlib.sha256(data).digest()
        assert memoryview(view).tobytes() == data
    assert struct.unpack("6d", t) == (0, 1, 2, 3, 4, 5)
    struct.pack_into("d", t, 8, 7.5)
    assert t.numpy()[1] == 7.5


def test_strided_bytes_are_copied_or_refused(t):
    strided = t[::-2]
    assert bytes(strided) == strided.tobytes() == A[::-2].tobytes()
    for use in (zlib.crc32, hashlib.sha256, lambda x: struct.unpack("3d", x)):
        with pytest.raises(BufferError, match="strided; copy it first"):
            use(strided)


def test_single_elements_are_numbers(single):
    assert (int(single), float(single), complex(single)) == (3, 3.0, 3 + 0j)
    assert bool(single) is True
    assert f"{single:05.2f}" == "03.00"
    assert f"{single}" == str(single) == repr(single)


def test_several_elements_are_none(t):
    for use in (int, float, complex, lambda x: f"{x:.2f}"):
        with pytest.raises(TypeError, match=r"not one of 6: use t\[i\]"):
            use(t)
    for use in (bool, lambda x: x and 1, lambda x: not x):
        with pytest.raises(ValueError, match=r"is ambiguous: use `t is not"):
            use(t)
    with t[:0] as nothing, pytest.raises(ValueError, match="0 elements"):
        bool(nothing)


def test_iteration_is_over_views(t, matrix):
    assert [float(each) for each in t] == A.tolist()
    assert [row.numpy().tolist() for row in matrix] == B.tolist()
    assert [float(each) for each in reversed(t)] == A[::-1].tolist()
    first, *_ = matrix
    assert np.shares_memory(first.numpy(), matrix.numpy())
    assert all(each.shape == () for each in t)
    assert (len(t), len(matrix)) == (6, 2)
    with dlw.empty(()) as scalar:
        with pytest.raises(TypeError, match="without dimensions"):
            iter(scalar)  # at once: libraries ask so whether it can be iterated
        with pytest.raises(TypeError, match="len"):
            len(scalar)


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float64", "complex128"])
def test_single_elements_are_found_by_their_number(name):
    """Sets and pandas' tables compare elements by hash and ==; none was ever found."""
    values = np.array([0, 1, 1, 3], name)
    with dlw.from_dlpack(values) as t:
        assert set(t) == set(values.tolist())
        assert len({*t, *t}) == len(set(values.tolist()))
        assert values.tolist()[3] in set(t)
        assert 9.5 not in set(t)
        assert list(t).index(1) == 1
        assert {1: "one"}[t[1]] == {t[2]: "one"}[1] == "one"
        assert t[0] == 0 == t[0]
        assert (t[1] == t[2], t[1] != t[2], t[0] == t[1]) == (True, False, False)
        assert t[1] != "1"
        for other in ([1], (1,), t, t[:1]):
            with pytest.raises(TypeError, match=NOT_SUPPORTED):
                _ = t[1] == other


def test_tensors_of_several_elements_have_no_hash(t, matrix):
    for x in (t, matrix, t[:1], t[:0]):
        for use in (hash, lambda x: {x}, lambda x: {x: 1}, lambda x: {}.get(x)):
            with pytest.raises(TypeError, match=r"not hashable.*id\(t\).*t\.numpy\(\)"):
                use(x)
    with pytest.raises(TypeError, match="not hashable"):
        _ = (0.0, 1.0, 2.0) in set(matrix)
    t.release()
    with pytest.raises(dlw.ReleasedError):
        hash(t)


OPERATORS = {
    "+": [lambda x: x + 1, lambda x: 1 + x, lambda x: +x],
    "-": [lambda x: x - 1, lambda x: 1 - x, lambda x: -x],
    "*": [lambda x: x * 2, lambda x: 2 * x, lambda x: [0] * x],
    "/": [lambda x: x / 2, lambda x: 2 / x],
    "//": [lambda x: x // 2, lambda x: 2 // x],
    "%": [lambda x: x % 2, lambda x: 2 % x],
    "**": [lambda x: x**2, lambda x: 2**x],
    "@": [lambda x: x @ x],
    "&": [lambda x: x & 1, lambda x: 1 & x],
    "|": [lambda x: x | 1, lambda x: 1 | x],
    "^": [lambda x: x ^ 1, lambda x: 1 ^ x],
    "~": [lambda x: ~x],
    "<<": [lambda x: x << 1, lambda x: 1 << x],
    ">>": [lambda x: x >> 1, lambda x: 1 >> x],
    "abs()": [abs],
    "round()": [round, lambda x: round(x, 1)],
    "divmod()": [lambda x: divmod(x, 2), lambda x: divmod(2, x)],
    "<": [lambda x: x < 1, lambda x: operator.gt(1, x)],
    "<=": [lambda x: x <= 1],
    ">": [lambda x: x > 1],
    ">=": [lambda x: x >= 1],
    "in": [lambda x: 1 in x],
    "==": [lambda x: x == 1, lambda x: operator.eq(1.5, x), lambda x: x == [1, 2]],
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_name_numpy(t, symbol):
    for use in OPERATORS[symbol]:
        words = rf"{NOT_SUPPORTED} {re.escape(symbol)}: use np\.asarray"
        with pytest.raises(TypeError, match=words):
            use(t)


def test_tensors_are_not_compared_by_their_elements(t):
    """`t == 3` was False, whatever the elements, and nothing said so."""
    with t[:] as same, pytest.raises(TypeError, match=r"`t is u` compares"):
        _ = t == same
    with pytest.raises(TypeError, match=NOT_SUPPORTED):
        _ = t != 3
    other = Forged(flavour=Legacy)  # as tensors of PyTorch and JAX, which said False
    for use in (lambda: t == other, lambda: other == t, lambda: t != other):
        with pytest.raises(TypeError, match=NOT_SUPPORTED):
            use()
    assert operator.eq(t, t)
    assert operator.ne(t, None)
    assert t != "t"
    assert ["x", t].index(t) == 1
    assert t in (None, t)


def test_what_kinds_of_collection_it_is(t):
    for kind in ("Iterable", "Sized", "Collection", "Buffer"):
        assert isinstance(t, getattr(collections.abc, kind, object))
    assert not isinstance(t, collections.abc.Sequence)  # index, count: arithmetic


def test_what_json_takes(t):
    assert json.loads(json.dumps({"dtype": t.dtype, "shape": t.shape})) == {
        "dtype": "float64",
        "shape": [6],
    }
    assert json.dumps(t.numpy().tolist()) == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]"
    with pytest.raises(TypeError, match="Tensor is not JSON serializable"):
        json.dumps(t)


def test_strides_are_no_array_of_bytes(matrix):
    """ndarray.strides count bytes: what is computed with ours would be of other elements."""
    strides = matrix.strides
    assert isinstance(strides, tuple)
    assert strides == (3, 1)
    assert repr(strides) == "(3, 1)"
    assert hash(strides) == hash((3, 1))
    words = r"count elements, NumPy's count bytes: use np\.asarray\(t\)\.strides"
    for use in (np.array, np.asarray, lambda x: x * np.array([2, 2]), np.prod):
        with pytest.raises(TypeError, match=words):
            use(strides)
    assert np.array(tuple(strides)).tolist() == [3, 1]


def test_what_is_only_a_hint_is_not_there(t):
    missing = [name for name in dir(np.ndarray) if not hasattr(dlw.Tensor, name)]
    assert {"astype", "sum", "T", "flags"} <= set(missing)
    for name in missing:
        assert not hasattr(t, name)
        assert name not in dir(t)
        assert getattr(t, name, None) is None
    assert {"shape", "reshape", "release"} <= set(dir(t))
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        t.nonsense  # noqa: B018


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        np.sum,
        len,
        list,
        float,
        lambda x: x[0],
        lambda x: x + 1,
        lambda x: A * x,
        lambda x: x > 1,
        dlw.from_dlpack,
        dlw.from_buffer,
    ],
)
def test_to_host_has_to_be_awaited(t, use):
    reading = t.to_host()
    told = (
        r"^the elements are not read yet(: use|, so there is no '\w+': use) "
        r"`await t\.to_host\(\)`$|its elements are not read yet: use `await x`$"
    )
    with pytest.raises((TypeError, AttributeError), match=told):
        use(reading)
    with pytest.raises(AttributeError) as caught:
        _ = reading.shape
    assert str(caught.value) == (
        "the elements are not read yet, so there is no 'shape': use `await t.to_host()`"
    )
    assert reading
    reading.close()


@pytest.mark.skipif(sys.platform == "emscripten", reason="a loop is running there")
def test_to_host_is_a_coroutine(t):
    async def together():
        return await asyncio.gather(asyncio.create_task(t.to_host()), t.to_host())

    for array in asyncio.run(together()):
        assert np.shares_memory(array, t.numpy())
    reading = t.to_host()
    assert asyncio.iscoroutine(reading)
    reading.close()


# --- what is no array -----------------------------------------------------------------------


class Lazy:
    def __array__(self, dtype=None, copy=None):
        return A


class Sparse:
    def toarray(self):
        return B


class Awaitable:
    def __await__(self):
        yield


OTHERS = {
    "a list": ([1, 2], r"np\.asarray\(x\)"),
    "a tuple": ((1, 2), r"np\.asarray\(x\)"),
    "an int": (3, r"np\.asarray\(x\)"),
    "a float": (1.5, r"np\.asarray\(x\)"),
    "a complex": (1j, r"np\.asarray\(x\)"),
    "a range": (range(3), r"np\.asarray\(x\)"),
    "a NoneType": (None, r"np\.asarray\(x\)"),
    "a Lazy": (Lazy(), r"it has __array__: use np\.asarray\(x\)"),
    "a Sparse": (Sparse(), r"use x\.toarray\(\)"),
    "an Awaitable": (Awaitable(), "use `await x`"),
    "a dict": ({"a": A}, "each of its values"),
    "a str": ("abc", r"from_buffer\(x\.encode\(\)\)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_told_what_to_do_in_one_line(name):
    x, way = OTHERS[name]
    words = rf"^cannot share {name}, which has neither __dlpack__ nor a buffer: .*{way}"
    for use, error in (
        (dlw.from_dlpack, AttributeError),
        (lambda x: dlw.from_dlpack(x, device="cpu"), AttributeError),
        (lambda x: dlw.from_dlpack(x, dtype="float32"), AttributeError),
        (dlw.from_buffer, TypeError),
        (lambda x: dlw.empty(2).write(x), TypeError),
    ):
        with pytest.raises(error, match=words) as caught:
            use(x)
        assert "\n" not in str(caught.value)
        assert caught.value.__suppress_context__
        assert caught.value.__cause__ is None


def test_buffers_are_told_of_from_buffer():
    for x in (b"abc", bytearray(3), memoryview(b"abc"), np.float32(3)):
        if not hasattr(x, "__dlpack__"):
            with pytest.raises(AttributeError, match=r"is a buffer: use from_buffer\("):
                dlw.from_dlpack(x)
        dlw.from_buffer(x).release()


def test_attribute_errors_of_producers_stay_theirs():
    class Broken(Forged):
        def __dlpack__(self, **keywords):
            return self.nonsense

    with pytest.raises(AttributeError, match="nonsense"):
        dlw.from_dlpack(Broken(flavour=Legacy))


# --- dtypes ---------------------------------------------------------------------------------


def test_types_and_kinds_are_numpys(dtype):
    found, kind = dlw.DType(dtype["name"]).type, dlw.DType(dtype["name"]).kind
    if dtype["numpy"] == "numpy":
        assert found is np.dtype(dtype["name"]).type
        assert kind == np.dtype(dtype["name"]).kind
    else:
        assert kind == "V"
        with dlw.empty(1, dtype["name"]) as t:
            assert found is t.numpy().dtype.type
    assert issubclass(found, np.generic)


def test_dtypes_can_be_copied_and_pickled(t):
    for dtype in (t.dtype, dlw.DType("float32x4")):
        for again in (copy.deepcopy(dtype), pickle.loads(pickle.dumps(dtype))):
            assert type(again) is dlw.DType
            assert (again, again.lanes, again.bits) == (dtype, dtype.lanes, dtype.bits)


def test_attributes_of_numpys_dtypes_name_it(t):
    for name in ("byteorder", "names", "isnative"):
        with pytest.raises(AttributeError, match=rf"t\.numpy\(\)\.dtype\.{name}"):
            getattr(t.dtype, name)
    with pytest.raises(AttributeError, match=r"no attribute 'foo'$"):
        _ = t.dtype.foo
