"""The WGSL around formulas: tests/elementwise.json has what JavaScript writes, too."""

import json
import math
import re
from pathlib import Path

import pytest

from dlpack_web._backends.wgsl import place_in
from dlpack_web._kernels import formulas

CASES = json.loads((Path(__file__).parents[1] / "elementwise.json").read_text("utf-8"))


def compare(found, case):
    assert found.wgsl == case["wgsl"]
    assert [list(part) for part in found.parts] == case["parts"]


@pytest.mark.parametrize("case", CASES["elementwise"], ids=str)
def test_elementwise(case):
    params = formulas.parse(case["inputs"], case["outputs"])
    operation = formulas.formula(case["operation"], "operation")
    compare(formulas.elementwise(*params, operation, case["kinds"]), case)


@pytest.mark.parametrize("case", CASES["reductions"], ids=str)
def test_reductions(case):
    params = formulas.parse(case["inputs"], case["outputs"], "a", "b")
    texts = (case[name] for name in ("map", "reduce", "postMap", "identity", "type"))
    what = formulas.Reduction(*params, *texts, ("map", "reduce", "postMap"))
    compare(formulas.reduction(what, case["kinds"], case["pass"]), case)


def test_plans_of_passes():
    for case in CASES["plans"]:
        assert list(formulas.plan(*case["given"])) == case["plan"], case
    for case in CASES["last"]:
        assert list(formulas.plan_last(*case["given"])) == case["plan"], case
    for case in CASES["grids"]:
        assert list(formulas.grid(case["given"])) == case["grid"], case


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


def test_identities():
    for case in CASES["identities"]:
        assert formulas.identity_of(case["given"]) == case["text"]
    with pytest.raises(ValueError, match="no literal") as told:
        formulas.identity_of(-math.inf)
    assert str(told.value) == (
        'WGSL has no literal for -inf: use the largest finite number, "-0x1.fffffep+127f" '
        "for f32"
    )
    with pytest.raises(TypeError, match="not a NoneType"):
        formulas.identity_of(None)
    with pytest.raises(ValueError, match="identity is empty"):
        formulas.identity_of(" ")


@pytest.mark.parametrize("case", CASES["errors"], ids=str)
def test_definitions_that_are_none(case):
    with pytest.raises(ValueError, match=re.escape(case["message"]) + "$"):
        formulas.parse(case["inputs"], case["outputs"], "a", "b")


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
