"""The WGSL around formulas. tests/fuzz/twins compares it with JavaScript's."""

import math

import numpy as np
import pytest

from dlpack_web._backends.model.kernels.wgsl import place_in
from dlpack_web._formulas import formulas


@pytest.mark.parametrize("length", [1, 63, 4096, 4097, 99991, 10**6 + 3])
@pytest.mark.parametrize("inner", [1, 15, 16, 1000, 70000])
@pytest.mark.parametrize("outer", [1, 7, 65537])
def test_pieces_cover_the_axis_once(outer, inner, length):
    outputs, lanes, chunk, chunks, *_ = formulas.sizes((outer, length, inner), {1})
    assert 64 % lanes == 0
    assert (chunks - 1) * chunk < length <= chunks * chunk
    x, y, z = formulas.grid(outputs * chunks * lanes)
    assert max(x, y) <= 65535
    assert z == 1
    assert x * y * 64 >= outputs * chunks * lanes


def in_a_row(steps):
    """Operations that one element goes through: eights are reduced in pairs, the rest singly."""
    return steps // 8 + (3 if steps >= 8 else 0) + steps % 8


@pytest.mark.parametrize("outputs", [2**k for k in range(24)])
@pytest.mark.parametrize("inner", [1, 15, 16, 2**40])
def test_an_element_goes_through_few_operations(outputs, inner):
    """The bound of the error of a sum, as web/docs/howto/kernels.md states it."""
    length, inner = 10**7 // outputs, min(inner, outputs)
    outputs, lanes, chunk, chunks, *_ = formulas.sizes(
        (outputs // inner, length, inner), {1}
    )
    operations = in_a_row(-(-chunk // lanes)) + lanes.bit_length() - 1
    if chunks > 1:
        _, lanes, chunk, *_ = formulas.sizes((chunks, outputs), {0}, length)
        operations += in_a_row(-(-chunk // lanes)) + lanes.bit_length() - 1
    assert operations <= 100


@pytest.mark.parametrize(
    ("length", "expected"), [(2**12, 1), (2**16, 64), (2**20, 512), (2**28, 1024)]
)
def test_how_many_chunks_a_long_axis_has(length, expected):
    """Chunks of 64 lanes: none, of 16 steps, balanced, of 2 ** 16 invocations in all."""
    _, lanes, _, chunks, *_ = formulas.sizes((length,), {0})
    assert (lanes, chunks) == (64, expected)


def reached(shape, axes):
    """The elements that each output is made of, as the shader finds them."""
    words = formulas.sizes(shape, axes)
    outputs, length, kept_last, reduced_last = words[0], words[4], *words[6:8]

    def offset(number, last, part):
        total = 0
        for at in range(2, last):
            extent, stride = words[4 * at + part : 4 * at + part + 2]
            total += number % extent * stride
            number //= extent
        return total + number * words[4 * last + part + 1]

    return [
        [offset(i, kept_last, 0) + offset(k, reduced_last, 2) for k in range(length)]
        for i in range(outputs)
    ]


@pytest.mark.parametrize("seed", range(50))
def test_each_output_is_of_its_elements_in_their_order(seed):
    r = np.random.default_rng(seed)
    shape = tuple(int(n) for n in r.integers(1, 5, r.integers(0, 6)))
    axes = {at for at in range(len(shape)) if r.random() < 0.5}
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    ends = range(-len(axes), 0)
    moved = np.moveaxis(a, sorted(axes), list(ends))
    kept = moved.ndim - len(axes)
    expected = moved.reshape(int(np.prod(moved.shape[:kept])), -1)
    assert reached(shape, axes) == expected.tolist()


def test_as_many_axes_as_32_bits_have():
    for first in (0, 1):
        words = formulas.sizes((2,) * 31, set(range(first, 31, 2)))
        assert len(words) == 72
        assert max(words[6:8]) == 17
    assert formulas.sizes((2,) * 63 + (0,), {63})[4] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5"),
        (np.int64(-3), "-3"),
        (True, "1"),
        (2**60, "1.152921504606847e+18"),
    ],
)
def test_identities_of_pythons_numbers(value, text):
    assert formulas.identity_of(value, "f32") == text


def test_identities_that_are_none():
    for value in (None, b"1", 1j, []):
        with pytest.raises(
            TypeError, match="identity is a number, or a string of WGSL"
        ):
            formulas.identity_of(value, "f32")
    for value in (10**400, -(10**400), math.nan):
        with pytest.raises(ValueError, match=r"WGSL has no literal for (-?inf|nan)"):
            formulas.identity_of(value, "f32")


def test_definitions_of_other_types():
    with pytest.raises(TypeError) as told:
        formulas.parse(["f32 x"], "f32 y")
    assert str(told.value) == (
        'parameters are a string such as "f32 x, f32 k", not a list'
    )
    with pytest.raises(TypeError) as told:
        formulas.formula(7, "operation")
    assert str(told.value) == "operation is a string of WGSL, not an int"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (2, ("generated source, line 2", 2, 7, None)),
        (3, ("map, line 1", 4, 1, 1)),
        (4, ("map, line 1", 4, 7, 1)),
        (5, ("map, line 2", 5, 7, 2)),
        (6, ("map, line 2", 5, 5, 2)),
        (7, ("reduce, line 1", 8, 1, 1)),
        (8, ("reduce, line 1", 8, 7, 1)),
    ],
)
def test_lines_around_a_part_are_its_ends(line, expected):
    wgsl = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight"
    assert place_in(wgsl, [("map", 4, 2), ("reduce", 8, 1)], line, 7) == expected


def test_without_parts_lines_are_those_of_the_source():
    assert place_in("one\ntwo", [], 2, 3) == ("line 2", 2, 3, 2)
