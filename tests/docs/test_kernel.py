"""The Python of a page: what its outputs say and look like, and browsers that lack something."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser, expect
from python_page import Python, opened
from serve import ROOT, Server
from test_site import PHONE, fits, violations


@pytest.fixture(scope="module")
def python(browser: Browser, server: Server) -> Iterator[Python]:
    """One page with its kernel for all tests that leave it as it was."""
    with opened(browser, server) as made:
        yield made


def test_what_blocks_say(python: Python) -> None:
    assert python.run("print('one')\nprint('two', end='')\n3") == "one\ntwo\n3"
    assert "ZeroDivisionError: division by zero" in python.run("1 / 0")
    assert "invalid syntax" in python.run("1 +")
    ours = python.run("import dlpack_web as dlw\ndlw.from_dlpack(3)")
    assert "cannot share an int" in ours
    assert "dlpack_web/" not in ours
    assert python.run("from IPython.display import *") == ""
    assert python.run("for i in range(3): clear_output(wait=True); print(i)") == "2\n"
    assert python.run("%pip install dlpack-web") == ""
    many = python.run("for i in range(20_000): print(i)")
    assert many == GONE + "".join(f"{i}\n" for i in range(10_000, 20_000))
    assert python.run("print(list(range(100_000)))") == f"{list(range(100_000))}\n"
    assert python.run("print('10 %', end='\\r'); print('done')") == "done\n"
    assert "a.b" in python.run("import sys; print('a.b', file=sys.stderr)")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "JSON({'a': [float('nan'), -float('inf'), 0.5]})",
            '"NaN",\n    "-Infinity",\n',
        ),
        ("input('name? ')", "StdinNotImplementedError: a block cannot ask for input"),
        ("sys.stdin.read()", "StdinNotImplementedError: a block cannot ask for input"),
    ],
    ids=["NaN", "input()", "stdin"],
)
def test_what_a_page_lacks(python: Python, code: str, said: str) -> None:
    assert said in python.run(f"import sys\nfrom IPython.display import JSON\n{code}")


# Adds messages to outputs as the page does: their texts, as they are shown.
ADD = """async (messages) => {
  const { addOutput, outputElement } = await import("/docs/_static/run/output.mjs");
  const outputs = [];
  for (const message of messages) addOutput(outputs, message);
  return outputs.map((output) => outputElement(output).textContent);
}"""
GONE = "[Earlier output is not kept.]\n"


def test_lines_that_go_back_are_overwritten(python: Python) -> None:
    """In any pieces, as if they came at once."""
    random = Random(1)
    for _ in range(100):
        text = "".join(random.choices("ab\r\n", k=random.randrange(1, 40)))
        places = sorted(random.choices(range(len(text) + 1), k=random.randrange(5)))
        pieces = [text[i:j] for i, j in pairwise([0, *places, len(text)])]
        messages = [{"type": "stream", "name": "stdout", "text": p} for p in pieces]
        (shown,) = python.page.evaluate(ADD, messages)
        lines = [line.rstrip("\r").split("\r")[-1] for line in text.split("\n")]
        assert shown.split("\n") == lines, pieces


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["x\n" * 10_000], "x\n" * 10_000),
        (["\n" * 10_000, "x"], GONE + "\n" * 9_999 + "x"),
        (["a\n", "x\n" * 9_999, "y"], GONE + "x\n" * 9_999 + "y"),
        (["y" * 700_000], "y" * 700_000),
        (["x" + "y" * 699_999, "z"] * 3, GONE + "y" * 699_999 + "z"),
        (
            ["x" * 9_999 + "\n"] * 300,
            GONE + ("x" * 9_999 + "\n") * 70,
        ),
    ],
    ids=["lines", "empty lines", "a line more", "a line", "long lines", "many long"],
)
def test_the_end_of_long_outputs_is_kept(
    python: Python, pieces: list[str], shown: str
) -> None:
    messages = [{"type": "stream", "name": "stdout", "text": each} for each in pieces]
    (text,) = python.page.evaluate(ADD, messages)
    assert text == shown


def test_the_last_outputs_are_kept(python: Python) -> None:
    texts = [str(i) for i in range(1_001)]
    outputs = [{"type": "display", "data": {"text/plain": each}} for each in texts]
    assert python.page.evaluate(ADD, outputs[:-1]) == texts[:-1]
    assert python.page.evaluate(ADD, outputs) == [GONE, *texts[2:]]


def test_names_are_completed(python: Python) -> None:
    python.run("import dlpack_web as dlw")
    python.start("dlw.from_dl")
    python.finish()
    page = python.page
    page.keyboard.press("Control+End")
    page.keyboard.press("Tab")
    page.wait_for_selector(
        ".cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled)"
    )
    page.keyboard.press("Tab")
    expect(python.block().locator(".cm-content")).to_have_text("dlw.from_dlpack")


def test_dlpack_web_is_compiled_and_has_its_sources(python: Python) -> None:
    said = python.run(
        "import inspect, os, dlpack_web\n"
        "print(os.path.exists(dlpack_web.__spec__.cached))\n"
        "print('def open(' in inspect.getsource(dlpack_web.open))"
    )
    assert said == "True\nTrue\n"


def test_ipython_has_its_terminal_where_it_is_asked_for(python: Python) -> None:
    assert "embed() needs a terminal" in python.run("import IPython; IPython.embed()")
    unpacked = "import os, sysconfig\nprint(os.listdir(sysconfig.get_path('purelib')))"
    assert "IPython" not in python.run(unpacked)  # it is in the kernel's archive
    said = python.run(
        "import sys\nprint('prompt_toolkit' in sys.modules)\n"
        "from IPython.terminal.embed import InteractiveShellEmbed as Shell\n"
        "print(Shell.__name__, 'prompt_toolkit' in sys.modules)"
    )
    assert said == "False\nInteractiveShellEmbed True\n"


def test_errors_that_are_caught_show_nothing(python: Python) -> None:
    """Also those that pass through JavaScript."""
    python.run(GPU)
    wrong = 'dlw.from_dlpack(np.array([1, 2**40]), device=d, dtype="int32")'
    code = f"try:\n    {wrong}\nexcept BufferError:\n    print('caught')"
    assert python.run(code) == "caught\n"
    assert "BufferError: element 1 of the int64 tensor" in python.run(wrong)


def test_errors_of_callbacks_do_not_end_the_kernel(python: Python) -> None:
    python.run("from pyodide.code import run_js\nkept = 42")
    python.run("run_js('setTimeout(() => { throw new Error(`mine`); })')")
    expect(python.page.locator(".python-state")).to_contain_text("mine")
    assert python.run("kept") == "42"


def test_html_of_blocks_is_in_a_frame_without_scripts(python: Python) -> None:
    said = python.run(
        "from IPython.display import HTML\n"
        "HTML('<b>kept</b><script>window.hit = 1</script>"
        '<img src=x onerror="window.hit = 1"><a href="javascript:hit=1">go</a>\')'
    )
    assert said == "keptgo"
    assert python.page.evaluate("() => window.hit") is None
    frame = python.outputs().locator("iframe")
    assert "allow-scripts" not in (frame.get_attribute("sandbox") or "")
    assert python.run("HTML('<table height=321><tr><td>x</table>')").strip() == "x"
    expect(frame).to_have_js_property("offsetHeight", 321)


def test_links_of_outputs_open_pages(python: Python) -> None:
    """Of this site, which is isolated, too; and they run nothing."""
    python.run(
        "HTML('<a href=/docs/index.html>go</a> <a href=\"javascript:opener.hit=1\">run</a>')"
    )
    frame = python.outputs().frame_locator("iframe")
    with python.page.expect_popup() as opened:
        frame.get_by_text("go").click()
    expect(opened.value.locator("h1")).to_be_visible()
    opened.value.close()
    frame.get_by_text("run").click()
    assert python.page.evaluate("() => window.hit") is None


def test_frames_grow_with_their_content(python: Python) -> None:
    said = "<details><summary>more</summary><table height=321></table></details>"
    python.run(f"from IPython.display import HTML\nHTML('{said}')")
    frame = python.outputs().locator("iframe")
    before = frame.evaluate("(it) => it.offsetHeight")
    inside = python.outputs().frame_locator("iframe")
    for height in (before + 321, before):
        inside.get_by_text("more").click()
        expect(frame).to_have_js_property("offsetHeight", height)
    inside.locator("body").evaluate(
        "(it) => { it.style.height = 'calc(100vh + 99px)'; }"
    )
    grown = "(it) => new Promise((r) => setTimeout(() => r(it.offsetHeight), 1000))"
    assert frame.evaluate(grown) < before + 300


PICTURE = """
import numpy as np, dlpack_web as dlw
device = await dlw.webgpu.request_device()
dlw.from_dlpack(np.ones((300, 900, 3), "f4"), device=device)
"""


def test_outputs_keep_nobody_out(browser: Browser, server: Server) -> None:
    """axe-core finds nothing, and a phone needs no scrolling sideways."""
    with opened(browser, server) as python:
        page, size = python.page, python.page.viewport_size

        def look() -> None:
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert violations(page) == [], scheme
            page.set_viewport_size(PHONE)
            assert fits(page)
            page.set_viewport_size(size)

        for code in ("print(1); 1 / 0", "import dlpack_web as d; d.empty(3)", PICTURE):
            python.run(code)
            look()


GPU = """
import numpy as np
import dlpack_web as dlw
d = await dlw.webgpu.request_device()
"""


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("delete WorkerNavigator.prototype.gpu", "no navigator.gpu: use a"),
        (
            "GPU.prototype.requestAdapter = async () => null",
            "WebGPU has no adapter: the driver is missing or blocked",
        ),
    ],
    ids=["no WebGPU", "no adapter"],
)
def test_without_a_gpu(
    script: str, reason: str, browser: Browser, server: Server
) -> None:
    with opened(browser, server, script=script) as python:
        assert "BufferError: " in python.run(GPU)
        assert reason in python.run("print(dlw.features()['webgpu']['reason'])")
        assert python.run("t = dlw.from_dlpack(np.ones(3)); t.js.data.length") == "3"
        assert python.watch.complaints() == []


def test_without_jspi(browser: Browser, server: Server) -> None:
    script = "delete WebAssembly.Suspending; delete WebAssembly.promising"
    with opened(browser, server, script=script) as python:
        assert python.run(GPU) == ""
        assert python.run("x = dlw.from_dlpack(np.ones(3, 'f4'), device=d)") == ""
        assert "use `await t.to_host()`" in python.run("x.numpy()")
        assert python.run("(await x.to_host()).sum()") == "np.float32(3.0)"
        assert "on the GPU: await t.to_host()" in python.run("x")
        assert python.run("dlw.features()['jspi']") == "False"


def test_without_eval(browser: Browser, server: Server) -> None:
    """The page's connect() needs none; code that does raises an error."""
    policy = "script-src 'self' 'wasm-unsafe-eval'"
    with opened(browser, server, policy=policy) as python:
        assert python.run(GPU) == ""
        assert python.run("dlw.features()['unsafeEval']") == "False"
        alone = "dlw._backends.browser.javascript._javascript = None\ndlw.from_dlpack(np.ones(3), device=d)"
        assert "`connect(pyodide)` of the npm package" in python.run(alone)
        assert python.run("6 * 7") == "42"


def test_old_pyodide(browser: Browser, server: Server) -> None:
    pyodide = """
        import * as real from "./pyodide.mjs?real";
        export async function loadPyodide(options) {
          const made = await real.loadPyodide(options);
          delete made._module.validSuspender;
          return made;
        }"""
    with opened(browser, server, pyodide=pyodide) as python:
        words = "lacks _module.validSuspender: dlpack-web serves Pyodide 0.29 and 314"
        assert words in python.run(GPU)
        expect(python.page.locator(".python-state")).to_contain_text(words)
        assert python.run("6 * 7") == "42"


def test_wheel_for_another_abi(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    made = json.loads((ROOT / "dist" / "wheel.json").read_text())["file"]
    other = tmp_path / "dlpack_web-0.1.0-cp311-cp311-emscripten_3_1_46_wasm32.whl"
    with (
        zipfile.ZipFile(ROOT / "dist" / made) as old,
        zipfile.ZipFile(other, "w") as new,
    ):
        for name in old.namelist():
            suffix = "cpython-311-wasm32-emscripten.so"
            new.writestr(name.replace("abi3.so", suffix), old.read(name))
    with opened(browser, server, wheel=other) as python:
        # Pyodide's own packages have one that fits.
        assert python.run("import dlpack_web as d; d.empty(3).shape") == "(3,)"
        words = "the C extension of this dlpack_web cannot be loaded on "
        expect(python.page.locator(".python-state")).to_contain_text(words)
        assert python.run("6 * 7") == "42"


def test_kernel_that_does_not_start(browser: Browser, server: Server) -> None:
    with opened(browser, server, pyodide="throw new Error('broken');") as python:
        python.run("6 * 7")
        assert python.block().locator(".state").inner_text() == "Stopped."
        assert python.bar() == "Python did not start: broken"
        python.page.unroute("**/packages/pyodide.mjs")
        python.restart()
        assert python.bar() == "Python is ready."
        assert python.run("6 * 7") == "42"
