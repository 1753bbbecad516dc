"""Tensors against the layouts of arrays and structures in shaders: what is taken is read and
written as NumPy has it, and the rest is refused."""

import random

import numpy as np
import pytest
from gpu_world import has_feature
from wgsl_layouts import IN_NUMPY, laid

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

POINT = "struct P { a: u32, b: vec3f }"  # a at 0, b at 16: 20 bytes, of 32 with padding
PAIR = "struct P { a: vec2f, b: vec2f }"
TAIL = "struct P { n: u32, points: array<vec3f> }"


def kernel(type_, access="storage, read", **options):
    """Binds x, and counts on y."""
    declared, _, value = type_.rpartition("; ")
    return dlw.webgpu.Kernel(
        f"{declared} @group(0) @binding(0) var<{access}> x: {value};"
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;"
        "@compute @workgroup_size(1) fn main() { _ = &x; y[0] += 1; }",
        **options,
    )


@pytest.mark.parametrize(
    ("type_", "shape", "dtype", "words"),
    [
        ("array<vec3f>", (4, 3), "f4", "pad that axis to 4, or declare array<f32>$"),
        ("array<vec3f>", (2, 8, 3), "f4", "12 bytes .* 16 bytes apart: .* to 4,"),
        ("array<vec3f>", (6,), "f4", "24 bytes .* pad that axis to 8,"),
        ("array<vec3i>", (4, 3), "i4", "declare array<i32>$"),
        ("array<vec4f>", (4, 3), "f4", "pad that axis to 4, or declare array<f32>$"),
        ("array<vec4f>", (4, 2), "f4", "pad that axis to 4,"),
        ("array<vec4f>", (4, 6), "f4", "pad that axis to 8,"),
        ("array<vec2f>", (4, 3), "f4", "pad that axis to 4,"),
        ("array<vec2f>", (4, 3), "c8", None),
        ("array<mat3x3f>", (4, 3, 3), "f4", "48 bytes apart: pad that axis to 4,"),
        ("array<mat3x3f>", (4, 9), "f4", "pad that axis to 12,"),
        ("array<mat3x3f>", (4, 4, 3), "f4", "pad that axis to 4,"),
        ("array<mat2x3f>", (3, 2, 3), "f4", "pad that axis to 4,"),
        ("array<array<vec3f, 2>>", (4, 2, 3), "f4", "pad that axis to 4,"),
        ("array<vec3f, 2>", (8, 3), "f4", "pad that axis to 4,"),
        ("array<vec3f, 2>", (9,), "f4", "36 bytes"),
        ("mat3x3f", (4, 3), "f4", "mat3x3f are 16 bytes apart: pad that axis to 4,"),
        (f"{POINT}; array<P>", (8, 20), "u1", "to 32, or declare array<u32>$"),
        (f"{POINT}; array<P>", (8, 4), "f4", "to 8, or declare array<f32>$"),
        (f"{POINT}; array<P>", (8, 16), "u1", "pad that axis to 32,"),
        (f"{POINT}; array<P>", (20,), "u1", "pad that axis to 32,"),
        (f"{PAIR}; array<P>", (7,), "f4", "pad that axis to 8,"),
        (f"{TAIL}; P", (4, 3), "f4", "pad that axis to 4,"),
        (f"{TAIL}; P", (16 + 3 * 12,), "u1", "pad that axis to 64,"),
        (f"{TAIL}; P", (16,), "u1", "has 16 bytes, .* needs 32$"),
        # As many words, of which the shader takes the rows apart; other shapes of whole elements.
        *(("array<u32>", shape, "u1", None) for shape in [(5, 7, 3), (3,), (4, 4)]),
        *(("array<vec4u>", shape, "u1", None) for shape in [(5, 7, 3), (33,)]),
        *(("array<f32>", shape, "f4", None) for shape in [(), (3,), (5, 3), (0, 3)]),
        *(("array<vec4f>", shape, "f4", None) for shape in [(), (3,), (8,), (5, 1)]),
        *(("array<vec4f>", shape, "f4", None) for shape in [(5, 4), (3, 8), (2, 3, 4)]),
        *(("array<vec4f>", shape, "f4", None) for shape in [(3, 2, 2), (5, 4, 1)]),
        *(("array<vec3f>", shape, "f4", None) for shape in [(5, 4), (8,), (0, 3)]),
        *(
            ("array<mat3x3f>", shape, "f4", None)
            for shape in [(5, 3, 4), (5, 12), (24,)]
        ),
        *(
            ("array<mat4x4f>", shape, "f4", None)
            for shape in [(5, 4, 4), (4, 4), (32,)]
        ),
        *(("mat3x3f", shape, "f4", None) for shape in [(3, 4), (12,), (16,)]),
        *((f"{POINT}; array<P>", shape, "u1", None) for shape in [(3, 32), (64,)]),
        *((f"{POINT}; array<P>", shape, "f4", None) for shape in [(3, 8), (3, 2, 4)]),
        *(
            (f"{PAIR}; array<P>", shape, "f4", None)
            for shape in [(3, 4), (3, 2, 2), (8,)]
        ),
        *((f"{TAIL}; P", shape, "f4", None) for shape in [(3, 4), (16,)]),
        ("array<atomic<u32>>", (5, 3), "i4", None),
    ],
)
async def test_last_axes_are_whole_elements(type_, shape, dtype, words):
    access = "storage, read_write" if "atomic" in type_ else "storage, read"
    with (
        dlw.from_dlpack(np.ones(shape, dtype), device="webgpu") as x,
        dlw.empty(1, device="webgpu") as y,
    ):
        if words is not None:
            with pytest.raises(BufferError, match=words):
                kernel(type_, access)(x, y, workgroups=1)
            if "needs" not in words:  # WebGPU has another word there
                kernel(type_, access, check=False)(x, y, workgroups=1)
        else:
            kernel(type_, access)(x, y, workgroups=1)
        await y.to_host()


def copying(structs, value, scalars, half):
    """Copies each scalar of all elements, as f32, and then adds 1 to it."""
    lines = [
        f"y[i * {len(scalars)} + {at}] = f32(x[i]{name}); x[i]{name} += {of}(1);"
        for at, (name, _, of) in enumerate(scalars)
    ]
    return dlw.webgpu.Kernel(
        f"{'enable f16;' if half else ''} {' '.join(structs)}"
        f"@group(0) @binding(0) var<storage, read_write> x: array<{value}>;"
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;"
        "@compute @workgroup_size(1) fn main() {"
        f"for (var i = 0u; i < arrayLength(&x); i++) {{ {' '.join(lines)} }} }}"
    )


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_taken_has_numpys_numbers(seed, device):
    chance = random.Random(seed)
    half = has_feature(device.gpu, "shader-f16")
    structs, n = [], chance.randrange(2, 5)
    one = laid(chance, ["f32", "i32", "u32", *["f16"] * half], structs)
    scalars = one.scalars
    copy = copying(structs, one.text, scalars, half)
    record = np.dtype(
        {
            "names": [name or "x" for name, _, _ in scalars],
            "formats": [IN_NUMPY[of] for _, _, of in scalars],
            "offsets": [at for _, at, _ in scalars],
            "itemsize": one.stride,
        }
    )
    expected = np.arange(n * len(scalars)).reshape(n, -1)
    filled = np.zeros(n, record)
    for name, column in zip(record.names, expected.T, strict=True):
        filled[name] = column
    kinds = {of for _, _, of in scalars}
    raw = filled.view(IN_NUMPY[kinds.pop()] if len(kinds) == 1 else "u1")
    given = [raw.reshape(n, -1), raw]
    flat = sum(record[name].itemsize for name in record.names) == one.stride
    if one.packed is not None:
        dtype = IN_NUMPY[scalars[0][2]]
        given.append(filled.view(dtype).reshape(n, *one.padded))
        given.append(expected.astype(dtype).reshape(n, *one.packed))
    for at, array in enumerate(given):
        with (
            dlw.from_dlpack(array, device="webgpu") as x,
            dlw.empty(expected.size, device="webgpu") as y,
        ):
            if at == 3 and not flat:
                with pytest.raises(BufferError, match="bytes apart"):
                    copy(x, y, workgroups=1)
                continue
            copy(x, y, workgroups=1)
            np.testing.assert_array_equal(await y.to_host(), expected.ravel())
            written = await x.to_host()
        records = written.ravel().view(record)
        for name, column in zip(record.names, expected.T, strict=True):
            np.testing.assert_array_equal(records[name], column + 1)
