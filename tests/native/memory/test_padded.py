"""Packed and padded elements of one sub-byte dtype: equal by name, different in memory.

A write between them is a conversion. The model is a list of numbers; every byte of the
target is compared, those of neighbours included.
"""

import random
from math import prod

import numpy as np
import pytest
from forge import SUBBYTE_PADDED, Forged

import dlpack_web as dlw
from dlpack_web import _core

SUB_BYTE = {
    name: dlw.DType(name).bits for name in _core._dtypes() if dlw.DType(name).bits < 8
}
BOTH = pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
DTYPES = pytest.mark.parametrize("name", SUB_BYTE)


def octets(tensor):
    return memoryview(_core._raw(tensor)[0])


def made(name, padded, shape, fill):
    tensor = _core._empty(shape, dlw.DType(name)._packed, padded)
    octets(tensor)[:] = fill(tensor.nbytes)
    return tensor


def step_of(tensor):
    return 8 if tensor.padded else tensor.dtype.bits


def numbers(memory, step, bits, positions):
    """The elements at `positions` from the start of the memory."""
    whole = int.from_bytes(memory, "little")
    return [whole >> step * at & (1 << bits) - 1 for at in positions]


def put(memory, step, bits, positions, values, padded):
    """The memory with other elements; the unused bits of a padded one are 0."""
    whole, mask = int.from_bytes(memory, "little"), (1 << (8 if padded else bits)) - 1
    for at, value in zip(positions, values, strict=True):
        whole = whole & ~(mask << step * at) | value << step * at
    return whole.to_bytes(len(memory), "little")


def places(shape, strides, first):
    """Positions in row-major order."""
    return [
        first + sum(i * s for i, s in zip(index, strides, strict=True))
        for index in np.ndindex(*shape)
    ]


def a_part(rng, name, padded):
    """A row-major part of some memory, and the position of its first element in that.
    It begins at a byte, and ends anywhere."""
    each = 1 if padded else {1: 8, 2: 4, 4: 2, 6: 4}[SUB_BYTE[name]]
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(4)))
    if rng.randrange(8) == 0:
        shape = (*shape, 0)
    first = rng.randrange(4) * each
    size = prod(shape)
    whole = made(name, padded, (first + size + rng.randrange(9),), rng.randbytes)
    return whole, first, shape


@BOTH
@DTYPES
def test_values_are_written_and_neighbours_stay(name, padded):
    bits, rng = SUB_BYTE[name], random.Random(f"{name} {padded}")
    for _ in range(60):
        whole, first, shape = a_part(rng, name, padded)
        part = whole[first : first + prod(shape)].reshape(shape)
        source, *_ = a_part(rng, name, not padded)
        source = made(name, not padded, shape, rng.randbytes)
        axes = rng.sample(range(len(shape)), len(shape))
        backwards = [axes.index(axis) for axis in range(len(shape))]
        # In another order in memory, as a view of the right shape.
        turned = made(name, not padded, tuple(shape[a] for a in axes), rng.randbytes)
        view = turned.permute_dims(backwards)
        for given in source, view:
            before = bytes(octets(whole))
            held = turned if given is view else source
            there = bytes(octets(held))
            positions = places(given.shape, given.strides, 0)
            values = numbers(there, step_of(given), bits, positions)
            with pytest.raises(BufferError, match=r"packed in one.*convert=True"):
                part.write(given)
            assert bytes(octets(whole)) == before
            part.write(given, convert=True)
            targets = range(first, first + len(values))
            after = put(before, step_of(part), bits, targets, values, padded)
            assert bytes(octets(whole)) == after
            assert bytes(octets(held)) == there


@BOTH
@DTYPES
def test_every_value_comes_back(name, padded):
    count = (1 << SUB_BYTE[name]) - 1  # odd
    rng = random.Random(name)
    source = made(name, padded, (count,), rng.randbytes)
    other = made(name, not padded, (count,), rng.randbytes)
    back = made(name, padded, (count,), lambda n: bytes(n))
    other.write(source, convert=True)
    back.write(other, convert=True)
    mask = (1 << SUB_BYTE[name]) - 1
    expected = bytes(octets(source))
    if padded:
        expected = bytes(octet & mask for octet in expected)
    found, kept = bytes(octets(back)), count * SUB_BYTE[name] % 8
    if not padded and kept:
        last = (1 << kept) - 1
        found, expected = (b[:-1] + bytes([b[-1] & last]) for b in (found, expected))
    assert found == expected
    assert back.numpy().tobytes() == bytes(o & mask for o in source.numpy().tobytes())


@BOTH
def test_numpy_elements_of_a_byte_each_are_written_by_value(padded):
    """As ml_dtypes' arrays are, which are borrowed."""
    memory = np.arange(250, 259, dtype=np.uint16).astype(np.uint8)
    array = memory.view(np.dtype("V1", metadata={"dlpack": "uint4"}))
    with dlw.from_dlpack(array) as borrowed, dlw.empty(9, "uint4") as packed:
        assert (borrowed.padded, packed.padded) == (True, False)
        if padded:
            packed.write(np.zeros(9, array.dtype), convert=True)
            borrowed.write(packed, convert=True)
            assert memory.tolist() == [0] * 9
        else:
            packed.write(array, convert=True)
            assert packed.numpy().view("u1").tolist() == (memory & 15).tolist()


def test_a_strided_or_read_only_target_is_refused():
    source = made("uint4", False, (3,), bytes)
    target = made("uint4", True, (6,), bytes)
    with pytest.raises(BufferError, match="read-only or strided"):
        target[::2].write(source, convert=True)
    dtype = np.dtype("V1", metadata={"dlpack": "uint4"})
    array = np.zeros(3, np.uint8).view(dtype)
    array.flags.writeable = False
    with (
        dlw.from_dlpack(array) as read_only,
        pytest.raises(BufferError, match="read-only or strided"),
    ):
        read_only.write(source, convert=True)


@pytest.mark.parametrize("other", ["int8", "uint8", "uint4", "int4x2", "int4x1"])
@BOTH
def test_other_dtypes_and_vectors_do_not_convert(padded, other):
    source = made("int4", padded, (4,), bytes)
    if other == "int4x1":
        target = made("int4", padded, (2, 2), bytes)  # another shape
    else:
        target = dlw.empty(4, other)
    for convert in False, True:
        with pytest.raises(BufferError, match=r"cannot (be written|convert)"):
            target.write(source, convert=convert)


def test_what_is_needed_is_said():
    """And convert=True where it would do."""
    padded, packed = (made("int4", each, (2,), bytes) for each in (True, False))
    one = "int4 is packed in one and padded in the other"
    other = "shape and dtype must be the same"
    way = "; convert=True converts"
    for source, target, expected in (
        (padded, packed, one + way),
        (padded, packed.reshape((1, 2)), other),
        (padded, dlw.empty(2, "int8"), other),
        (dlw.empty(2, "float64"), dlw.empty(2, "float32"), other + way),
        (dlw.empty(2, "float16"), dlw.empty(2, "float32"), other + way),
        (dlw.empty(2, "float64"), dlw.empty(3, "float32"), other),
        (dlw.empty(2, "float32"), dlw.empty(2, "int32"), other),
        (dlw.empty(2, "int32"), dlw.empty(2, "float32"), other),
        (dlw.empty(2, "complex64"), dlw.empty(2, "float32"), other),
        (
            Forged(device_type=15, shape=(2,), strides=(1,), ndim=1, data=7),
            padded,
            other,
        ),
        (
            Forged(device_type=15, data=7, ndim=1, code=0, bits=4, shape=(2,)),
            padded,
            one,
        ),
    ):
        with pytest.raises(BufferError) as told:
            target.write(source)
        assert str(told.value).partition(": ")[2] == expected
        if way not in expected and source.__dlpack_device__() == (1, 0):
            with pytest.raises(BufferError):
                target.write(source, convert=True)


@pytest.mark.parametrize("code", ["?", "i1", "u2", "f2", "f4", "c8", "c16"])
def test_any_part_is_written_from_any_view_of_the_same_memory(code):
    """Against NumPy's own assignment, which copies where the two overlap."""
    rng = random.Random(code)
    for _ in range(100):
        start = np.frombuffer(rng.randbytes(16 * 40), "u1").copy()
        memory = (start & 1 if code == "?" else start)[: 40 * np.dtype(code).itemsize]
        whole = memory.copy().view(code)
        rows, columns = rng.randrange(1, 5), rng.randrange(1, 5)
        first, step = rng.randrange(16), rng.choice((1, 1, -1, 2))
        target = whole[first : first + rows * columns].reshape(rows, columns)
        at = rng.randrange(0, 40 - rows * columns * 2 + 1)
        given = whole[at : at + rows * columns * abs(step)][::step]
        given = (
            given.reshape(columns, rows).T
            if step in (1, -1)
            else given.reshape(rows, columns)
        )
        model = whole.copy()
        model[first : first + rows * columns] = given.reshape(-1)
        with dlw.from_dlpack(target) as t, dlw.from_dlpack(given) as source:
            t.write(source)
        assert whole.tobytes() == model.tobytes()


def test_vectors_cannot_be_padded():
    packed = dlw.DType("int4x2")._packed
    with pytest.raises(BufferError, match="int4x2, padded"):
        _core._empty((3,), packed, True)
    with dlw.empty(3, "int4x2") as t, pytest.raises(BufferError, match="padded"):
        _core._convert(t, packed, True)


@pytest.mark.parametrize("copy", [None, True])
@DTYPES
def test_a_foreign_producer_keeps_its_flag(name, copy):
    bits = SUB_BYTE[name]
    code = dlw.DType(name).code
    described = {"code": code, "bits": bits, "shape": (4,), "strides": (1,)}
    padded = Forged(**described, ndim=1, flags=SUBBYTE_PADDED)
    packed = Forged(**described, ndim=1)
    with dlw.from_dlpack(padded, copy=copy) as a, dlw.from_dlpack(packed) as b:
        assert (a.padded, b.padded) == (True, False)
        expected = numbers(octets(b), bits, bits, range(4))
        a.write(b, convert=True)
        assert bytes(octets(a)) == bytes(expected)
