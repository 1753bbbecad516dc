"""Shaders are read as JavaScript reads them: tests/wgsl.json has what both must find."""

import dataclasses
import json
from pathlib import Path

import pytest

from dlpack_web._backends.wgsl import parse_shader, strip_comments

CASES = json.loads((Path(__file__).parents[1] / "wgsl.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_shaders_are_read_as_javascript_reads_them(case):
    found = parse_shader(case["source"], case["entry"])
    bindings = found.bindings
    if bindings is not None:
        bindings = [dataclasses.asdict(binding) for binding in bindings]
    assert bindings == case["bindings"]
    size = found.workgroup
    assert (size and list(size)) == case["workgroup"]


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a / b * c", "a / b * c"),
        ("a/*x*/b//c\nd", "a b\nd"),
        ("a/* // */b", "a b"),
        ("a/* /* x */ // \n y */b", "a\n b"),
        ("a// /* \nb // */\nc", "a\nb \nc"),
        ("a /* open", "a "),
    ],
)
def test_comments_go_and_division_stays(source, left):
    assert strip_comments(source) == left
