"""Shaders are read as JavaScript reads them: tests/wgsl.json has what both must find."""

import dataclasses
import json
from pathlib import Path

import pytest

from dlpack_web import DType
from dlpack_web._backends.desktop.arguments import check_dtype
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


# What a shader's elements may be bound to: of its own type, and narrower ones as words.
WORDS = {"uint8", "int8", "uint16", "int16", "float16", "float16x2", "bfloat16", "bool"}
READ = {
    "f32": {"float32", "complex64", "float32x4"},
    "f16": {"float16", "complex32", "float16x2"},
    "i32": {"int32", "int32x2"},
    "u32": WORDS | {"uint32"},
    "atomic<i32>": {"int32", "int32x2", "uint32"},
    "atomic<u32>": WORDS | {"uint32", "int32", "int32x2"},
}
NAMES = sorted(
    set().union(*READ.values(), {"float64", "int64", "uint64", "complex128"})
)


@pytest.mark.parametrize("element", READ)
@pytest.mark.parametrize("name", NAMES)
def test_elements_that_a_shader_would_misread_are_refused(element, name):
    source = f"@group(0) @binding(0) var<storage, read_write> x: array<{element}>;"
    [binding] = parse_shader(
        f"{source} @compute @workgroup_size(1) fn main() {{}}", "main"
    ).bindings
    if name in READ[element]:
        check_dtype(DType(name), binding, "binding 0: x")
        return
    scalar = element.removeprefix("atomic<").removesuffix(">")
    words = rf"^binding 0: x is {name}, the shader's array<.*> is of {scalar}: "
    narrower = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
    narrower["complex128"] = "complex64"
    if name in narrower:
        words += f'WGSL has no 64-bit types; upload it with dtype "{narrower[name]}"$'
    else:
        tensor = {"f32": "float32", "f16": "float16", "i32": "int32", "u32": "uint32"}
        words += (
            rf"give a tensor of {tensor[scalar]}, or declare the shader otherwise \(narrower "
            r"types come as words of u32\); check=False binds the bytes as they are$"
        )
    with pytest.raises(BufferError, match=words):
        check_dtype(DType(name), binding, "binding 0: x")
