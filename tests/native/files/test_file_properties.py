"""Random tensors through files: what NumPy and safetensors write is what we read, what we write is
what they read, byte for byte where the format has one form; and headers at their bounds."""

import io
import json
import random

import numpy as np
import pytest
from conftest import run

import dlpack_web as dlw

pytest.importorskip("safetensors", reason="safetensors has a native part")
import safetensors
import safetensors.numpy

DTYPES = [
    "?",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
]
SEEDS = range(40)


def random_array(chance, dtypes=DTYPES):
    """Of any shape, order and strides; often without elements, of one row or one column."""
    shape = [chance.choice([0, 1, 1, 2, 3, 5]) for _ in range(chance.randrange(5))]
    dtype = np.dtype(chance.choice(dtypes))
    size = int(np.prod(shape)) * dtype.itemsize
    data = np.frombuffer(chance.randbytes(size), "u1")
    array = (data & 1 if dtype == bool else data).view(dtype).reshape(shape)
    if array.dtype.kind in "fc":  # no NaN, so that == compares
        array = np.nan_to_num(array)
    array = array.transpose(chance.sample(range(array.ndim), array.ndim))
    for axis in range(array.ndim):
        if chance.random() < 0.2:
            array = np.flip(array, axis)
    return np.asfortranarray(array) if chance.random() < 0.3 else array


def npy_of(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def is_same(tensor, array):
    assert tensor.shape == array.shape
    assert tensor.dtype == str(array.dtype)
    assert tensor.tobytes() == array.tobytes()


def safe(dtypes):
    return [each for each in dtypes if each != "c16"]


@pytest.mark.parametrize("seed", SEEDS)
def test_npy_as_numpy_writes_and_reads_it(seed):
    chance = random.Random(seed)
    for _ in range(25):
        array = random_array(chance)
        with run(dlw.open(npy_of(array))) as tensor:
            is_same(tensor, array)
            if (
                array.size > 1 and 1 not in array.shape
            ):  # the order of such has a meaning
                strides = np.load(io.BytesIO(npy_of(array))).strides
                assert tensor.strides == tuple(x // array.itemsize for x in strides)
        data = run(dlw.save(None, array))
        # NumPy copies what is in no order of its own; both write the same header then.
        assert data == npy_of(array)


@pytest.mark.parametrize("seed", SEEDS)
def test_safetensors_as_their_library_writes_and_reads_them(seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 12)
    arrays = {
        f"{chance.randrange(99)} {i}": random_array(chance, safe(DTYPES))
        for i in range(count)
    }
    said = {"by": "me"} if seed % 2 else None
    plain = {
        name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()
    }
    with run(dlw.open(safetensors.numpy.save(plain, said))) as file:
        assert set(file) == set(arrays)
        assert file.metadata == (said or {})
        for name, array in arrays.items():
            is_same(file[name], array)
    data = run(dlw.save(None, arrays, metadata=said))
    for name, array in safetensors.numpy.load(data).items():
        assert array.shape == arrays[name].shape
        assert array.dtype == arrays[name].dtype
        assert array.tobytes() == arrays[name].tobytes()
    with run(dlw.open(data)) as file:
        assert list(file) == list(arrays) or 0 in [a.size for a in arrays.values()]
        for name, array in arrays.items():
            is_same(file[name], array)


def fact(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_of(facts, data):
    header = json.dumps(facts).encode()
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize("seed", SEEDS)
def test_a_header_in_any_order_is_read_as_its_library_reads_it(seed):
    """Tensors without elements before, between and behind others, at the same place."""
    chance = random.Random(seed)
    for _ in range(20):
        facts, at = {}, 0
        for i in range(chance.randrange(1, 8)):
            shape = [chance.choice([0, 0, 1, 3])]
            facts[str(i)] = fact("U8", shape, at, at + shape[0])
            at += shape[0]
        items = list(facts.items())
        chance.shuffle(items)
        data = safetensors_of(dict(items), chance.randbytes(at))
        with run(dlw.open(data)) as file:
            order = sorted(
                facts,
                key=lambda name: (
                    facts[name]["data_offsets"],
                    items.index((name, facts[name])),
                ),
            )
            assert list(file) == order
            for name, found in dict(safetensors.deserialize(data)).items():
                assert file[name].tobytes() == bytes(found["data"])


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_that_are_moved_are_refused_as_by_its_library(seed):
    chance = random.Random(seed)
    for _ in range(20):
        facts, at = {}, 0
        for i in range(chance.randrange(1, 5)):
            size = chance.choice([0, 1, 3])
            facts[str(i)] = fact("U8", [size], at, at + size)
            at += size
        for _ in range(chance.randrange(1, 3)):
            each = chance.choice(list(facts.values()))["data_offsets"]
            each[chance.randrange(2)] += chance.choice([-1, 1])
        data = safetensors_of(facts, bytes(max(at + chance.choice([-1, 0, 0, 1]), 0)))
        try:
            theirs = {
                name: bytes(f["data"]) for name, f in safetensors.deserialize(data)
            }
        except (safetensors.SafetensorError, OverflowError):
            theirs = None
        try:
            with run(dlw.open(data, format="safetensors")) as file:
                ours = {name: file[name].tobytes() for name in file}
        except BufferError:
            ours = None
        assert ours == theirs


# --- bounds -------------------------------------------------------------------------------

MOST = (2**53 - 1) // 16  # elements
BOUNDS = {
    (MOST,): "cut off",
    (MOST + 1,): "too many elements",
    (MOST, 1): "cut off",
    (MOST, 2): "too many elements",
    (2, (MOST + 1) // 2): "too many elements",
    (2, (MOST - 1) // 2): "cut off",
    (2**53 - 1,): "too many elements",
    (2**53,): "is not a size",
    (MOST, 0): None,
    (0, MOST): None,
    (MOST + 1, 0): "too many elements",
    (2**53, 0): "is not a size",
    (-1,): "is not a size",
    (0, -1): "is not a size",
    (1,) * 64: "cut off",
    (1,) * 65: "dimensions",
    (0,) * 64: None,
    (0,) * 65: "dimensions",
}


@pytest.mark.parametrize("format", ["npy", "safetensors"])
@pytest.mark.parametrize("shape", BOUNDS, ids=lambda shape: str(shape)[:30])
def test_a_shape_at_its_bounds(shape, format):
    if format == "npy":
        text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n"
        data = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()
    else:
        size = int(np.prod([int(x) for x in shape], dtype=object))
        data = safetensors_of({"a": fact("U8", shape, 0, max(size, 0))}, b"")
    if BOUNDS[shape] is None:
        with run(dlw.open(data)) as found:
            tensor = found if format == "npy" else found["a"]
            assert tensor.shape == shape
            assert tensor.nbytes == 0
        return
    with pytest.raises(
        BufferError, match=BOUNDS[shape] + "|data_offsets|size is needed"
    ):
        run(dlw.open(data))


@pytest.mark.parametrize("length", [1, 2, 99_999_999, 100_000_000, 100_000_001, 2**63])
def test_a_header_of_safetensors_at_its_bounds(length):
    data = length.to_bytes(8, "little") + b"{}".ljust(64)
    message = "cut off" if 2 < length <= 100_000_000 else "safetensors has 2 to"
    if length == 2:
        message = "follow the elements"
    with pytest.raises(BufferError, match=message):
        run(dlw.open(data, format="safetensors"))


@pytest.mark.parametrize(
    "shape", [(7,), (1,), (0,), (), (1, 1), (1, 7), (7, 1), (2, 3)]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_that_is_written_is_the_one_that_numpy_writes(shape, order):
    array = np.zeros(shape, order=order)
    for given in (array, array[::-1] if array.ndim else array, array.T):
        assert run(dlw.save(None, given)) == npy_of(given)
