"""One program, and the same bytes wherever it runs: in every browser, in Deno and Node, on
every driver, and in CPython.

What each step gives is NumPy's answer, bit by bit, and its SHA-256 stands in
tests/same_bytes.json, the one table for all of them. WGSL leaves much of arithmetic open:
divisions and functions may be off by some ULP, a*b+c may be rounded once or twice, subnormals
may be 0, NaNs may have any bits. So every number here is one that has no choice: integers, which
wrap; and floats whose every intermediate result is exact in 24 bits, whichever way it is
computed. Divisions of floats, square roots and NaNs do not occur; subnormals are only copied.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from gpu_world import get_bytes, has_feature, image_of, set_bytes

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

TABLE = json.loads((Path(__file__).parents[3] / "same_bytes.json").read_text())

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
VIEWS = {
    "transposed": np.s_[...],
    "steps": np.s_[::2, 1::3],
    "reversed": np.s_[::-1, ::-1],
    "column": np.s_[:, 3],
}


def numbers(shape, dtype):
    """Numbers that every dtype has, each different from its neighbours."""
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 101).astype(dtype).reshape(shape)


async def on_gpu(array, **how):
    """What is read back of an array that was uploaded."""
    with dlw.from_dlpack(array) as host, host.to_device("webgpu", **how) as tensor:
        return await tensor.to_host()


async def computed(wgsl, arrays, out, *uniforms, workgroups=None):
    """What a kernel makes of arrays: bound in their order, the result behind them."""
    sources = [dlw.from_dlpack(array, device="webgpu") for array in arrays]
    shape, dtype = out
    target = dlw.empty(shape, dtype, device="webgpu")
    try:
        kernel = dlw.webgpu.Kernel(wgsl)
        kernel(*sources, target, *uniforms, workgroups=workgroups)
        return await target.to_host()
    finally:
        for tensor in (*sources, target):
            tensor.release()


# --- moved ----------------------------------------------------------------------------------


async def uploaded():
    for dtype in DTYPES:
        array = numbers((5, 7), dtype)
        yield await on_gpu(array), array


async def uploaded_views():
    for dtype in ("u1", "f2", "f4", "f8", "c16"):
        array = numbers((9, 11), dtype)
        for view in VIEWS.values():
            part = array.T if view is Ellipsis else array[view]
            yield await on_gpu(part), part


async def narrowed():
    """Rounded to the nearest, to even where two are as near; too large is infinite."""
    exact = [1, -0.0, 1 / 3, -2 / 3, 16777217, 16777219, 1e-40, -1e-46, 3e38]
    wide = np.array([*exact, 1e300, -1e300, np.inf, 1 + 2**-24, 1 + 3 * 2**-24], "f8")
    with np.errstate(over="ignore", under="ignore"):
        yield await on_gpu(wide, dtype="float32"), wide.astype("f4")
        yield await on_gpu(wide[::-2], dtype="float32"), wide[::-2].astype("f4")
        pairs = wide.view("c16")
        yield await on_gpu(pairs, dtype="complex64"), pairs.astype("c8")
    small = numbers((6, 5), "i8") - 50
    yield await on_gpu(small.T, dtype="int32"), small.T.astype("i4")
    yield await on_gpu(small.astype("f4"), dtype="float16"), small.astype("f2")


async def written():
    array = numbers((8, 12), "f4")
    with dlw.empty((8, 12), device="webgpu") as tensor:
        yield await tensor.to_host(), np.zeros((8, 12), "f4")
        tensor.write(array)
        yield await tensor.to_host(), array
        tensor.write(array[::-1, ::-1])
        with tensor[2:4] as rows:
            rows.write(array[:2] * 2)
        expected = array[::-1, ::-1].copy()
        expected[2:4] = array[:2] * 2
        yield await tensor.to_host(), expected
        with dlw.empty((2, 12), device="webgpu") as other, tensor[3:5] as rows:
            other.write(rows)
            yield await other.to_host(), expected[3:5]


async def viewed():
    array = numbers((6, 8, 3), "u1")
    with dlw.from_dlpack(array, device="webgpu") as tensor:
        for view in (
            np.s_[1:5],
            np.s_[::2, ::-3],
            np.s_[:, 4, 1:],
            np.s_[None, ..., 0],
        ):
            with tensor[view] as part:
                yield await part.to_host(), array[view]
        with tensor.permute_dims((2, 0, 1)) as turned:
            yield await turned.to_host(), array.transpose(2, 0, 1)
        with tensor.reshape((12, 12)) as flat:
            yield await flat.to_host(), array.reshape(12, 12)


async def smaller_than_bytes():
    """The packed bytes, of elements that share them."""
    for name, count in (
        ("int4", 9),
        ("uint2", 13),
        ("uint1", 21),
        ("float6_e2m3fn", 5),
    ):
        with dlw.empty(count, name) as host:
            set_bytes(host, bytes(i * 37 % 251 for i in range(int(host.nbytes))))
            expected = np.frombuffer(host.tobytes(), "u1")
            with host.to_device("webgpu") as tensor, tensor.to_device("cpu") as back:
                yield np.frombuffer(get_bytes(back), "u1"), expected


# --- computed -------------------------------------------------------------------------------

UNSIGNED = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> seed: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&y)) { return; }
  var h = x[id.x] * 2654435761u + seed;
  h = (h ^ (h >> 15u)) * 2246822519u;
  h = (h << 13u) | (h >> 19u);
  y[id.x] = h / 7u + h % 11u + countOneBits(h) + reverseBits(h);
}"""


async def of_unsigned_integers():
    x = numbers(1000, "u4") * np.uint32(40503)
    h = x * np.uint32(2654435761) + np.uint32(99)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2246822519)
    h = (h << np.uint32(13)) | (h >> np.uint32(19))
    bits = np.unpackbits(h.view("u1").reshape(-1, 4), axis=1, bitorder="little")
    mirrored = np.packbits(bits[:, ::-1], axis=1, bitorder="little").view("u4")[:, 0]
    expected = h // 7 + h % 11 + bits.sum(axis=1, dtype="u4") + mirrored
    yield await computed(UNSIGNED, [x], (1000, "uint32"), 99), expected


SIGNED = """
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4i>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&y)) { return; }
  let a = x[id.x];
  // wgpu 29's a % 7 is wrong for negative numbers on NVIDIA (gfx-rs/wgpu#8191).
  y[id.x] = vec4i(a / 7, a - a / 7 * 7, a >> 3u, a * -1640531527);
}"""


async def of_signed_integers():
    x = (numbers(300, "i4") - 50) * 21474836
    product = (x.astype("i8") * -1640531527).astype("i4")
    towards_0 = (np.abs(x.astype("i8")) // 7 * np.sign(x)).astype("i4")
    expected = np.stack([towards_0, x - 7 * towards_0, x >> 3, product], axis=1)
    yield await computed(SIGNED, [x], ((300, 4), "int32"), workgroups=5), expected


FLOATS = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
@group(0) @binding(2) var<uniform> factor: f32;
@group(0) @binding(3) var<uniform> offset: i32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&y)) { return; }
  let a = x[id.x];
  y[id.x] = vec4f(factor * a + f32(offset), round(a * 0.5), floor(a * 0.25) + clamp(a, -9, 9),
                  f32(i32(a * 0.125)) + abs(a) + sign(a));
}"""


async def of_floats():
    a = (numbers(500, "f4") - 50) * np.float32(3)
    expected = np.stack(
        [
            np.float32(2.5) * a - 7,
            np.round(a * np.float32(0.5)),
            np.floor(a * np.float32(0.25)) + a.clip(-9, 9),
            np.trunc(a * np.float32(0.125)) + np.abs(a) + np.sign(a),
        ],
        axis=1,
    )
    # Not whether a zero is negative, which WGSL leaves open: adding 0 makes it positive.
    got = await computed(FLOATS, [a], ((500, 4), "float32"), 2.5, -7, workgroups=8)
    yield got + np.float32(0), expected + np.float32(0)


PRODUCT = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

const N = 32u;
var<workgroup> left: array<array<f32, 8>, 8>;
var<workgroup> right: array<array<f32, 8>, 8>;

@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) at: vec3u) {
  let row = 8 * group.y + at.y;
  let column = 8 * group.x + at.x;
  var sum = 0.0;
  for (var tile = 0u; tile < N; tile += 8) {
    left[at.y][at.x] = a[row * N + tile + at.x];
    right[at.y][at.x] = b[(tile + at.y) * N + column];
    workgroupBarrier();
    for (var k = 0u; k < 8; k++) { sum += left[at.y][k] * right[k][at.x]; }
    workgroupBarrier();
  }
  c[row * N + column] = sum;
}"""


async def of_matrices():
    """Whole numbers, the sums below 2**24: exact in any order."""
    a, b = numbers((32, 32), "f4") - 50, numbers((32, 32), "f4").T - 20
    got = await computed(PRODUCT, [a, b], ((32, 32), "float32"), workgroups=(4, 4))
    yield got, (a.astype("i8") @ b.astype("i8")).astype("f4")


COUNTS = """
@group(0) @binding(0) var<storage, read> bytes: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= arrayLength(&bytes)) { return; }
  for (var i = 0u; i < 4; i++) { atomicAdd(&counts[extractBits(bytes[id.x], 8 * i, 8)], 1); }
}"""


async def of_bytes():
    """An image of uint8, bound as words."""
    image = numbers((16, 20, 4), "u1")
    got = await computed(COUNTS, [image], (256, "uint32"), workgroups=5)
    yield got, np.bincount(image.ravel(), minlength=256).astype("u4")


HALVES = """
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = 2 * x[id.x] + 0.5h; }
}"""


async def of_halves():
    x = numbers(100, "f2") - np.float16(50)
    yield await computed(HALVES, [x], (100, "float16")), 2 * x + np.float16(0.5)


# --- pictures ---------------------------------------------------------------------------------


async def of_an_image():
    """ImageData in a page, an array on the desktop; and back, rounded to bytes."""
    pixels = (np.arange(5 * 7 * 4) * 37 % 251).astype("u1").reshape(5, 7, 4)
    pixels[..., 3] = 255
    for channels in (3, 4):
        with await dlw.webgpu.from_image(image_of(pixels), channels=channels) as tensor:
            yield await dlw.webgpu.to_image(tensor), pixels[..., :channels]
    levels = np.arange(-2, 8, dtype="f4").reshape(2, 5, 1) * np.float32(0.25)
    with dlw.from_dlpack(levels, device="webgpu") as tensor:
        grey = np.round(levels[..., 0].clip(0, 1) * 255).astype("u1")
        yield await dlw.webgpu.to_image(tensor), grey


STEPS = [
    uploaded,
    uploaded_views,
    narrowed,
    written,
    viewed,
    smaller_than_bytes,
    of_unsigned_integers,
    of_signed_integers,
    of_floats,
    of_matrices,
    of_bytes,
    of_halves,
    of_an_image,
]


def digest(arrays):
    """Of what arrays are: dtype, shape, elements in C order."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_the_same_bytes_everywhere(step, device):
    if step is of_halves and not has_feature(device.gpu, "shader-f16"):
        pytest.skip("this adapter has no shader-f16")
    made = []
    async for got, expected in step():
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        wrong = np.flatnonzero(got.ravel().view("u1") != expected.ravel().view("u1"))
        assert wrong.size == 0, f"bytes {wrong[:8]} of part {len(made)}"
        made.append(got)
    assert digest(made) == TABLE[step.__name__]


def test_the_table_has_all_steps():
    assert list(TABLE) == [step.__name__ for step in STEPS]
