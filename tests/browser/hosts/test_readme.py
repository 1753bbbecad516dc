"""The snippets of the README, of js/KERNELS.md and those of other libraries in the documentation,
run as they stand there. tests/docs runs the documentation's other blocks."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from pages import TestPage

ROOT = Path(__file__).resolve().parents[3]


def snippets(language: str, document: str = "README.md") -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_python_snippets(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(notebook=True)
    code = "\n".join(snippets("python"))
    assert page.python(f"""
{code}
for each in (x, y):
    each.release()
bool((b == 2 * np.arange(10_000)).all())
""")
    assert page.watch.complaints() == []


def test_python_kernels(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(notebook=True)
    code = "\n".join(snippets("python", "js/KERNELS.md"))
    checks = page.python(f"""
{code}
expected = np.arange(1000.0) ** 2
expected[:100] = np.arange(100, 200) ** 2.0
start = expected[:12] + np.where(np.arange(12) < 10, 3 * np.arange(12) + 0.5, 0)
if "shader-f16" in device.gpu.features:
    assert ((await halves.to_host()) == np.arange(100) / 2).all()
str([(squares == expected).all(), where, first == start.tolist(), counts.tolist(),
     (values == np.arange(1000)).all(), norms.tolist()])
""")
    expected = [True, ("broken", 3), True, [100] * 10, True, [6.0, 6.0]]
    assert str(checks).replace("np.True_", "True") == str(expected)
    # Firefox says by itself what is wrong with a shader.
    assert [line for line in page.watch.complaints() if "broken" not in line] == []


def test_js_kernels(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(None)
    (code,) = snippets("js", "js/KERNELS.md")
    imported = 'import { Tensor, webgpu } from "dlpack-web";'
    assert imported in code
    code = code.replace(imported, "const { Tensor, webgpu } = harness.context.library;")
    found = page.page.evaluate(
        f"async () => {{ {code} return [[...last], error.name, error.label]; }}"
    )
    assert found == [[9604, 9801], "KernelError", "main"]


CHECKS = {
    "dlpack-web/litert": """
        const shared = [litert.getWebGpuDevice() === device, input.deleted, output.deleted];
        tensor.release();
        return [...shared, ...held];
        """,
    "dlpack-web/transformers": """
        const values = await scores.read();
        const shared = [feed.ort_tensor.gpuBuffer === tensor.buffer,
                        y.ort_tensor.gpuBuffer === scores.buffer];
        for (const each of [tensor, scores]) each.release();
        for (const each of [feed, y]) each.dispose();
        return [...shared, ...values];
        """,
    "dlpack-web": """
        const sum = pyodide.runPython("lambda t: float(t.numpy().sum())")(forPython);
        const seen = array.get(0).get(0);
        forPython.release();
        return [tensor.released, shared.released, sum, seen, ...doubled];
        """,
}
BEFORE = {
    "dlpack-web/litert": """
        globalThis.Module = { print() {}, printErr() {} };
        const litert = await import("/libraries/litert.mjs");
        const { upload } = await import("/tests/browser/cases/js/gpu.mjs");
        const { context } = harness;
        const device = await context.library.webgpu.requestDevice();
        const none = new Float32Array(200 * 64); // black pictures
        const tensor = upload(context, none, device, { shape: [200, 64] });
        """,
    "dlpack-web/transformers": """
        const { loadTransformers } = await import("/tests/browser/libraries/libraries.mjs");
        const { upload } = await import("/tests/browser/cases/js/gpu.mjs");
        const { context } = harness;
        const device = await context.library.webgpu.requestDevice();
        const transformers = await loadTransformers(4);
        const tensor = upload(context, Float32Array.of(1, 2, 3), device);
        """,
    "dlpack-web": "",
}
RESULTS = {
    "dlpack-web/litert": [True, True, True, 2000, True],
    "dlpack-web/transformers": [True, True, 2, 4, 6],
    "dlpack-web": [True, True, 6, 42, 2, 4, 6],
}
FILES = {
    "": "index",
    "/litert": "adapters/litert",
    "/transformers": "adapters/transformers",
}


def with_transformers() -> str:
    """That of the documentation, as JavaScript, with the model that is here."""
    (code,) = [
        code
        for code in snippets("ts", "web/docs/howto/javascript-libraries.md")
        if "dlpack-web/transformers" in code
    ]
    code = code.replace(" as const", "").replace('"a/model"', '"doubling"')
    return code.removesuffix("scores.release();\n")


def with_litert() -> str:
    """The same of LiteRT.js, whose files lie elsewhere here."""
    (code,) = [
        code
        for code in snippets("ts", "web/docs/howto/javascript-libraries.md")
        if "dlpack-web/litert" in code
    ]
    code = code.replace('"/litert/"', '"/libraries/litert/"')
    code = code.replace('"/digits', '"/model/digits')
    # What is there when the result of LiteRT.js is gone.
    held = "const values = await logits.read();\n"
    held += "const held = [values.length, values.some((value) => value !== 0)];\n"
    return code.replace("logits.release();\n", held + "logits.release();\n")


@pytest.mark.parametrize("code", [*snippets("js"), with_transformers(), with_litert()])
def test_js_snippet(open_test_page: Callable[..., TestPage], code: str) -> None:
    (name, *_) = re.findall(r'from "(.*)";', code)
    page = open_test_page()
    for entry, file in FILES.items():
        code = re.sub(
            rf'import (\{{.*\}}) from "dlpack-web{entry}";',
            rf'const \1 = await import("/js/{file}.js");',
            code,
        )
    outcome = page.page.evaluate(
        f"""async () => {{
          const {{ pyodide }} = harness.context;
          {BEFORE[name]}
          {code}
          {CHECKS[name]}
        }}"""
    )
    assert outcome == RESULTS[name]
    assert page.watch.complaints() == []


# Before the lines "by hand": the objects that they name.
PREPARED = """
import js
import numpy as np
from pyodide.ffi import to_js
import dlpack_web as dlw
from dlpack_web.webgpu import ElementwiseKernel

a = np.arange(1000, dtype="f4")
gpu = (await dlw.webgpu.request_device()).gpu
plain = lambda **fields: to_js(fields, dict_converter=js.Object.fromEntries)
x, y = (gpu.createBuffer(plain(size=4000, usage=0x8c)) for _ in "xy")
staging = gpu.createBuffer(plain(size=4000, usage=0x9))
WGSL = '''
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = 2 * x[id.x]; }
}'''

def dispatch(wgsl, x, y, staging):
    compute = plain(module=gpu.createShaderModule(plain(code=wgsl)), entryPoint="main")
    pipeline = gpu.createComputePipeline(plain(layout="auto", compute=compute))
    entries = [plain(binding=i, resource=plain(buffer=b)) for i, b in enumerate((x, y))]
    layout = pipeline.getBindGroupLayout(0)
    group = gpu.createBindGroup(plain(layout=layout, entries=to_js(entries)))
    encoder = gpu.createCommandEncoder()
    work = encoder.beginComputePass()
    work.setPipeline(pipeline)
    work.setBindGroup(0, group)
    work.dispatchWorkgroups(16)
    work.end()
    encoder.copyBufferToBuffer(y, 0, staging, 0, 4000)
    gpu.queue.submit(to_js([encoder.finish()]))
"""


@pytest.mark.parametrize("way", ["before", "after"])
def test_lines_of_the_landing_page(
    way: str, open_test_page: Callable[..., TestPage]
) -> None:
    html = (ROOT / "web" / "pages" / "live" / "live.html").read_text("utf-8")
    lines = unescape(re.search(rf'<code id="{way}">(.*?)</code>', html, re.DOTALL)[1])
    assert lines.count("\n") == 3
    page = open_test_page(notebook=True)
    assert page.python(f"{PREPARED}\n{lines}\nbool((b == 2 * a).all())")
    assert page.watch.complaints() == []
