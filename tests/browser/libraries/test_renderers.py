"""The listings of web/docs/howto/renderers.md, with the real libraries."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pages import TestPage
from test_readme import snippets

MODULES = {
    "GPUBufferUsage;\nconst vertices": "",
    "tgpu.": "typegpu",
    "luma.": "luma",
    "WebGPUEngine": "babylon",
}
PAGE = snippets("ts", "web/docs/howto/renderers.md")
# What stands in them for the page's own, and what they made.
BEFORE = """
const { Tensor, webgpu } = harness.context.library;
const { drawn } = await import("/tests/browser/libraries/drawn.mjs");
const canvas = document.createElement("canvas");
const device = await webgpu.requestDevice();
const tensor = Tensor.fromTypedArray(Float32Array.of(-1, -1, 3, -1, -1, 3), { shape: [3, 2] });
"""
AFTER = {
    "": "return [await drawn(device, same, vertices)];",
    "typegpu": """
        const read = [...(await points.read()).map((p) => [...p])].flat();
        const shown = await drawn(device, root.unwrap(points), x);
        scales.write(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
        points.destroy();
        return [shown, read, [...(await y.read())], [...(await x.read())]];""",
    "luma": """
        const { buffer, byteOffset } = await points.readAsync();
        const read = [...new Float32Array(buffer, byteOffset, 6)];
        const shown = await drawn(gl.handle, points.handle, x);
        scales.write(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
        points.destroy();
        return [shown, read, [...(await y.read())], [...(await x.read())]];""",
    "babylon": """
        const shown = await drawn(gpu, points.getBuffer().underlyingResource, x);
        scales.update(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
        points.dispose();
        return [shown, [...tensor.data], [...(await y.read())], [...(await x.read())]];""",
}
VALUES, SCALES = [-1, -1, 3, -1, -1, 3], [1, 2, 3, 4, 5, 6, 7, 8]


# The same with half floats, odd counts of them among these.
HALVES = """
const { VERTEX, STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
const usage = VERTEX | STORAGE | COPY_SRC | COPY_DST;
const make = (shape, values) => Tensor.fromTypedArray(Float16Array.from(values), { shape });
const corners = make([3, 2], [-1, -1, 3, -1, -1, 3]);
const numbers = (n) => Array.from({ length: n }, (_, i) => i + 0.5);
const wrong = [];
const same = (found, expected) =>
  `${found}` === `${expected}` || wrong.push(`${found}, not ${expected}`);
"""
HALVES_OF = {
    "typegpu": """
const root = tgpu.initFromDevice({ device });
const x = corners.to(device, { usage });
const points = root.createBuffer(d.arrayOf(d.vec2h, 3), x.buffer).$usage("vertex", "storage");
same(await drawn(device, root.unwrap(points), x, "float16x2"), [255, 0, 0, 255]);
for (const [schema, shape] of [
  [d.arrayOf(d.f16, 6), [6]],
  [d.arrayOf(d.vec2h, 3), [3, 2]],
  [d.arrayOf(d.vec3h, 3), [3, 4]],
  [d.arrayOf(d.vec4h, 3), [3, 4]],
]) {
  const values = numbers(shape.reduce((a, b) => a * b));
  const shown = values.filter((_, i) => schema.elementType !== d.vec3h || i % 4 !== 3);
  const there = make(shape, values).to(device, { usage });
  const theirs = root.createBuffer(schema, there.buffer);
  same((await theirs.read()).map((each) => [...(each.length ? each : [each])]).flat(), shown);
  const own = root.createBuffer(schema).$usage("storage");
  own.write(new Float16Array(values).buffer);
  const y = Tensor.fromGPUBuffer(root.unwrap(own), { device, shape, dtype: "float16" });
  same(await y.read(), values);
  y.write(Float16Array.from(values, (value) => -value));
  same((await own.read()).map((each) => [...(each.length ? each : [each])]).flat(), shown.map((v) => -v));
  // From the second element on, which is no whole word.
  const odd = { device, shape: [3], dtype: "float16", byteOffset: 2 };
  const part = Tensor.fromGPUBuffer(root.unwrap(own), odd);
  same(await part.read(), [-1.5, -2.5, -3.5]);
  try {
    part.write(Float16Array.of(7, 8, 9));
    wrong.push("halves of words were written");
  } catch (error) {
    same(error.name, "UnsupportedError");
  }
}
// TypeGPU makes such a buffer of 6 bytes, of which WebGPU copies 4.
const three = root.createBuffer(d.arrayOf(d.f16, 3)).$usage("storage");
const odd = Tensor.fromGPUBuffer(root.unwrap(three), { device, shape: [3], dtype: "float16" });
const told = await odd.read().then(String, String);
if (!/UnsupportedError.*8 bytes in its GPUBuffer \\(it has 6\\): pad/.test(told)) wrong.push(told);
""",
    "babylon": """
const engine = new WebGPUEngine(canvas);
await engine.initAsync();
const gpu = engine._device;
const type = { size: 2, stride: 2, type: VertexBuffer.HALF_FLOAT };
const x = corners.to(gpu, { usage });
const data = new WebGPUDataBuffer(x.buffer, x.nbytes);
const points = new VertexBuffer(engine, data, "position", type);
same([points.byteStride, points.type], [4, 5131]);
const { underlyingResource } = points.getBuffer();
same(await drawn(gpu, underlyingResource, x, "float16x2"), [255, 0, 0, 255]);
for (const size of [1, 2, 3, 4]) {
  const values = numbers(3 * size);
  const given = make([3, size], values).data;
  const vertices = new VertexBuffer(engine, given, "position", { ...type, size, stride: size });
  same(vertices.getFloatData(3), values);
}
for (const [format, channels] of [[5, 4], [6, 1], [7, 2]]) { // RGBA, R, RG
  const { data } = make([2, 3, channels], numbers(6 * channels));
  const texture = engine.createRawTexture(data, 3, 2, format, false, false, 1, null, 2);
  engine.flushFramebuffer();
  const { underlyingResource } = texture._hardwareTexture;
  const read = engine._textureHelper.readPixels(underlyingResource, 0, 0, 3, 2, texture._hardwareTexture.format);
  same(await read, data);
}
""",
}


def module_of(code: str) -> str:
    (found,) = [module for mark, module in MODULES.items() if mark in code]
    return found


def test_every_listing_is_known() -> None:
    assert sorted(map(module_of, PAGE)) == sorted(AFTER)


def loading(module: str) -> str:
    names = {
        "typegpu": "tgpu, d",
        "luma": "luma, Buffer, webgpuAdapter",
        "babylon": "WebGPUEngine, WebGPUDataBuffer, VertexBuffer, StorageBuffer",
    }.get(module)
    return (
        f'const {{ {names} }} = await import("/libraries/{module}.mjs");'
        if names
        else ""
    )


@pytest.mark.parametrize("module", HALVES_OF)
def test_half_floats(open_test_page: Callable[..., TestPage], module: str) -> None:
    page = open_test_page(None)
    code = f"{BEFORE} {loading(module)}\n{HALVES}{HALVES_OF[module]}\nreturn wrong;"
    assert page.page.evaluate(f"async () => {{ {code} }}") == []
    assert page.watch.complaints() == []


@pytest.mark.parametrize("code", PAGE, ids=module_of)
def test_listing(open_test_page: Callable[..., TestPage], code: str) -> None:
    module = module_of(code)
    load = loading(module)
    code = re.sub(r"^import .*\n", "", code, flags=re.MULTILINE)
    page = open_test_page(None)
    found = page.page.evaluate(
        f"async () => {{ {BEFORE} {load}\n{code}\n{AFTER[module]} }}"
    )
    red = [255, 0, 0, 255]
    expected = [red, VALUES, SCALES, VALUES] if module else [red]
    assert found == expected
    assert page.watch.complaints() == []
