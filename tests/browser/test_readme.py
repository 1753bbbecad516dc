"""The README's snippets, run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import TestPage

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_python_snippets(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(notebook=True)
    code = "\n".join(snippets("python"))
    assert page.python(f"""
from js import harness
ort = await (await harness.load("/tests/browser/libraries.mjs")).loadOrt()
{code}
written = await narrow.to_host()
all([(a == b).all(), (doubled == 2 * np.arange(1000)).all(), t.released, gpu.released,
     (written == wide + 1).all(), narrow.dtype == "float32",
     (await same.to_host() == np.arange(1000)).all()])
""")
    assert page.watch.complaints() == []


CHECKS = {
    "dlpack-web": """
        const sum = pyodide.runPython("lambda t: float(t.numpy().sum())")(forPython);
        const seen = array.get(0).get(0);
        forPython.release();
        return [tensor.released, shared.released, sum, seen];
        """,
    "dlpack-web/ort": """
        tensor.release();
        const sum = values.reduce((a, b) => a + b);
        return [pixels.device.gpu === device, Math.round(1e6 * sum), values.length];
        """,
}
BEFORE = {
    "dlpack-web": "",
    "dlpack-web/ort": """
        const { libraries, model: onnx } = await import("/tests/browser/libraries.mjs");
        const { ort, tf } = await libraries();
        const model = onnx("Add", "float32", ["x"]);
        const { Tensor } = harness.context.library;
        const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2, 3, 4));
        """,
}
RESULTS = {
    "dlpack-web": [True, True, 6, 42],
    "dlpack-web/ort": [True, 1_000_000, 4],
}
FILES = {
    "": "index",
    "/ort": "adapters/ort",
    "/tfjs": "adapters/tfjs",
    "/share": "adapters/devices",
}


@pytest.mark.parametrize("code", snippets("js"))
def test_js_snippet(open_test_page: Callable[..., TestPage], code: str) -> None:
    page = open_test_page()
    (name, *_) = re.findall(r'from "(.*)";', code)
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
