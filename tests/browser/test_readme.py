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


def test_python_snippets(open_test_page: Callable[..., TestPage], webgpu: None) -> None:
    page = open_test_page(notebook=True)
    code = "\n".join(snippets("python"))
    assert page.python(f"""{code}
written = await narrow.to_host()
all([(a == b).all(), (doubled == 2 * np.arange(1000)).all(), t.released, gpu.released,
     (written == wide + 1).all(), narrow.dtype == "float32"])
""")
    assert page.watch.complaints() == []


@pytest.mark.parametrize("code", snippets("js"))
def test_js_snippet(strict_page: TestPage, code: str) -> None:
    imported = 'const { connect } = await import("/js/index.js");'
    code, count = re.subn(r'import \{ connect \} from "dlpack-web";', imported, code)
    assert count == 1
    outcome = strict_page.page.evaluate(
        f"""async () => {{
          const {{ pyodide }} = harness.context;
          {code}
          const sum = pyodide.runPython("lambda t: float(t.numpy().sum())")(forPython);
          const seen = array.get(0).get(0);
          forPython.release();
          return [tensor.released, shared.released, sum, seen];
        }}"""
    )
    assert outcome == [True, True, 6, 42]
    assert strict_page.watch.complaints() == []
