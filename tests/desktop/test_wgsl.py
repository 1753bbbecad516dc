"""What the elements of a shader may be bound to. tests/fuzz/twins compares Python's reader of
shaders with JavaScript's."""

import pytest

from dlpack_web import DType
from dlpack_web._backends.model.kernels.arguments import check_dtype
from dlpack_web._backends.model.kernels.wgsl import parse_shader

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
