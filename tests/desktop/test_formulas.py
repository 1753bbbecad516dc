"""The WGSL around formulas. tests/fuzz/twins compares it with JavaScript's."""

import math

import numpy as np
import pytest

from dlpack_web._backends.model.wgsl import place_in
from dlpack_web._kernels import formulas


@pytest.mark.parametrize("length", [1, 63, 4096, 4097, 99991, 10**6 + 3])
@pytest.mark.parametrize("inner", [1, 15, 16, 1000, 70000])
@pytest.mark.parametrize("outer", [1, 7, 65537])
def test_pieces_cover_the_axis_once(outer, inner, length):
    outputs = outer * inner
    plan = formulas.plan(outputs, inner, length)
    assert 64 % plan.lanes == 0
    assert (plan.chunks - 1) * plan.chunk < length <= plan.chunks * plan.chunk
    x, y = formulas.grid(outputs * plan.chunks * plan.lanes)
    assert max(x, y) <= 65535
    assert x * y * 64 >= outputs * plan.chunks * plan.lanes


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
