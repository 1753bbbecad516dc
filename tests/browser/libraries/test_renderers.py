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


def module_of(code: str) -> str:
    (found,) = [module for mark, module in MODULES.items() if mark in code]
    return found


def test_every_listing_is_known() -> None:
    assert sorted(map(module_of, PAGE)) == sorted(AFTER)


@pytest.mark.parametrize("code", PAGE, ids=module_of)
def test_listing(open_test_page: Callable[..., TestPage], code: str) -> None:
    module = module_of(code)
    names = {
        "": "",
        "typegpu": "tgpu, d",
        "luma": "luma, Buffer, webgpuAdapter",
        "babylon": "WebGPUEngine, WebGPUDataBuffer, VertexBuffer, StorageBuffer",
    }[module]
    load = (
        f'const {{ {names} }} = await import("/libraries/{module}.mjs");'
        if module
        else ""
    )
    code = re.sub(r"^import .*\n", "", code, flags=re.MULTILINE)
    page = open_test_page(None)
    found = page.page.evaluate(
        f"async () => {{ {BEFORE} {load}\n{code}\n{AFTER[module]} }}"
    )
    red = [255, 0, 0, 255]
    expected = [red, VALUES, SCALES, VALUES] if module else [red]
    assert found == expected
    assert page.watch.complaints() == []
