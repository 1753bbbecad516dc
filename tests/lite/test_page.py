"""Our own notebook page, used as a person would."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import outputs
import pytest
from notebook_page import PHONE, Notebook, opened
from playwright.sync_api import Browser, Page
from serve import ROOT, Server

AXE = ROOT / "build" / "libraries" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def notebook(browser: Browser, site: Server) -> Iterator[Notebook]:
    """One page with its kernel for all tests that leave it as it was."""
    with opened(browser, site) as made:
        made.idle()
        yield made


@pytest.mark.parametrize(
    "name", ["tour", "images", "onnx", "onnxruntime", "train", "by_hand"]
)
def test_examples_run(name: str, browser: Browser, site: Server) -> None:
    with opened(browser, site, f"#{name}") as notebook:
        notebook.page.click("#run-all")
        notebook.page.wait_for_selector(
            ".cell[data-type=code][data-state=idle] >> nth=-1"
        )
        notebook.idle()
        file, written = notebook.saved()
        assert file == f"{name}.ipynb"
        cells = [cell for cell in written["cells"] if cell["cell_type"] == "code"]
        outputs.check(name, cells, ours=True)
        assert notebook.problem() == ""
        assert notebook.watch.complaints() == []


def test_what_cells_say(notebook: Notebook) -> None:
    assert notebook.run("print('one')\nprint('two', end='')\n3") == "one\ntwo\n3"
    assert "ZeroDivisionError: division by zero" in notebook.run("1 / 0")
    assert "invalid syntax" in notebook.run("1 +")
    assert notebook.run("from IPython.display import *") == ""
    assert notebook.run("display(Markdown('**bold** text'))") == "bold text"
    assert notebook.run("for i in range(3): clear_output(wait=True); print(i)") == "2\n"
    assert notebook.run("%pip install dlpack-web") == ""
    many = notebook.run("for i in range(20_000): print(i)")
    assert many == "".join(f"{i}\n" for i in range(20_000))
    assert notebook.run("print('10 %', end='\\r'); print('done')") == "done\n"
    assert "a.b" in notebook.run("import sys; print('a.b', file=sys.stderr)")
    notebook.run("import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()")
    assert notebook.page.locator(".cell:last-child .outputs img").count() == 1


def test_dlpack_web_is_compiled_and_has_its_sources(notebook: Notebook) -> None:
    said = notebook.run(
        "import inspect, os, dlpack_web\n"
        "print(os.path.exists(dlpack_web.__spec__.cached))\n"
        "print(inspect.getsource(dlpack_web.open).split('(')[0])"
    )
    assert said == "True\nasync def open\n"


def test_ipython_has_its_terminal_where_it_is_asked_for(notebook: Notebook) -> None:
    assert "embed() needs a terminal" in notebook.run("import IPython; IPython.embed()")
    unpacked = "import os, sysconfig\nprint(os.listdir(sysconfig.get_path('purelib')))"
    assert "IPython" not in notebook.run(unpacked)  # it is in the kernel's archive
    said = notebook.run(
        "import sys\nprint('prompt_toolkit' in sys.modules)\n"
        "from IPython.terminal.embed import InteractiveShellEmbed as Shell\n"
        "print(Shell.__name__, 'prompt_toolkit' in sys.modules)"
    )
    assert said == "False\nInteractiveShellEmbed True\n"


def test_errors_of_callbacks_do_not_end_the_kernel(notebook: Notebook) -> None:
    notebook.run("from pyodide.code import run_js\nkept = 42")
    notebook.run("run_js('setTimeout(() => { throw new Error(`mine`); })')")
    notebook.page.wait_for_selector("#problem:visible")
    assert "mine" in notebook.problem()
    assert notebook.run("kept") == "42"


def test_html_of_cells_is_in_a_frame_without_scripts(notebook: Notebook) -> None:
    said = notebook.run(
        "from IPython.display import HTML\n"
        "HTML('<b>kept</b><script>window.hit = 1</script>"
        '<img src=x onerror="window.hit = 1"><a href="javascript:hit=1">go</a>\')'
    )
    assert (
        said
        == "Left out: script. Outputs run no scripts and have no forms here.\nkeptgo"
    )
    assert notebook.page.evaluate("() => window.hit") is None
    frame = notebook.page.locator(".cell:last-child .outputs iframe")
    assert "allow-scripts" not in (frame.get_attribute("sandbox") or "")
    high = notebook.run("HTML('<div style=\"height: 321px\">x</div>')")
    assert high == "x"
    notebook.page.wait_for_function(
        "() => document.querySelector('.cell:last-child iframe').offsetHeight === 321"
    )


def test_keys(browser: Browser, site: Server) -> None:
    with opened(browser, site) as notebook:
        page, keyboard = notebook.page, notebook.page.keyboard
        notebook.idle()
        page.locator(".cell").first.focus()
        assert page.locator(".cell").count() == 13
        keyboard.press("b")  # a cell below, which is edited then
        keyboard.press("Enter")
        keyboard.insert_text("first = 20 + 1\nfirst")
        keyboard.press("Alt+Enter")
        keyboard.insert_text("import dlpack_web as dlw\ndlw.from_dl")
        notebook.idle()
        keyboard.press("Tab")
        page.wait_for_selector(
            ".cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled)"
        )
        keyboard.press("Tab")
        page.wait_for_selector(".cm-tooltip-autocomplete", state="detached")
        keyboard.press("Escape")
        assert notebook.sources()[1:3] == [
            "first = 20 + 1\nfirst",
            "import dlpack_web as dlw\ndlw.from_dlpack",
        ]
        assert page.locator(".cell .outputs").nth(1).inner_text() == "21"
        page.locator(".cell").nth(1).focus()
        keyboard.press("c")
        keyboard.press("ArrowDown")
        keyboard.press("v")
        keyboard.press("k")
        keyboard.press("d")
        keyboard.press("d")
        assert page.locator(".cell").count() == 15
        assert notebook.sources()[1:3] == ["first = 20 + 1\nfirst"] * 2
        keyboard.press("z")
        assert "from_dlpack" in notebook.sources()[2]
        keyboard.press("x")
        keyboard.press("m")
        kinds = page.locator(".cell").evaluate_all(
            "(all) => all.map((c) => c.dataset.type)"
        )
        assert kinds[2] == "markdown"
        keyboard.press("y")
        keyboard.press("a")
        keyboard.press("Enter")
        keyboard.insert_text("6 * 7")
        keyboard.press("Control+Enter")
        page.wait_for_function(
            "() => document.querySelectorAll('.outputs')[2].textContent === '42'"
        )
        name, _ = notebook.saved(lambda: keyboard.press("Control+s"))
        assert name == "tour.ipynb"
        keyboard.press("Escape")
        keyboard.press("h")
        assert page.locator("#keys").is_visible()
        keyboard.press("Escape")
        page.locator(".cell").nth(2).focus()
        keyboard.press("0")
        keyboard.press("0")
        page.wait_for_selector("#kernel[data-state=starting]")
        assert page.locator("#loading").is_visible()
        notebook.idle()
        assert "NameError" in notebook.run("first")
        assert notebook.watch.complaints() == []


def test_files_come_back_as_they_were(
    browser: Browser, site: Server, tmp_path: Path
) -> None:
    with opened(browser, site, "#images") as notebook:
        notebook.idle()
        notebook.run("from IPython.display import HTML; HTML('<i>shown</i>')")
        notebook.run("1 / 0")
        notebook.page.fill("#name", "mine")
        name, written = notebook.saved()
        assert name == "mine.ipynb"
        assert (written["nbformat"], written["nbformat_minor"]) == (4, 5)
        assert len({cell["id"] for cell in written["cells"]}) == len(written["cells"])
        file = tmp_path / name
        file.write_text(json.dumps(written))
        bad, old = tmp_path / "bad.ipynb", tmp_path / "old.ipynb"
        bad.write_text("no JSON")
        old.write_text(json.dumps({"nbformat": 3, "worksheets": []}))
        for wrong, words in ((bad, "is not a notebook"), (old, "nbformat 3: open")):
            notebook.page.set_input_files("#file", wrong)
            notebook.page.wait_for_function(
                "(words) => document.querySelector('#problem').textContent.includes(words)",
                arg=words,
            )
            assert notebook.page.locator(".cell").count() == len(written["cells"])
        notebook.page.set_input_files("#file", file)
        notebook.page.wait_for_selector("#problem", state="hidden")
        assert notebook.saved() == (name, written)
        assert (
            notebook.page.frame_locator(".outputs iframe").locator("i").inner_text()
            == "shown"
        )


def test_memory_is_shown(notebook: Notebook) -> None:
    page = notebook.page
    page.click("#memory")
    notebook.run(
        "import numpy as np, dlpack_web as dlw\n"
        "mine = dlw.from_dlpack(np.zeros((3, 5)))\n"
        "d = await dlw.webgpu.request_device()\n"
        "ours = [mine.to_device(d, dtype='float32')]"
    )
    panel = page.locator("#panel").inner_text()
    assert "mine\tfloat64\t(3, 5)\tcpu\t120 B\tNumPy" in panel
    assert "ours[0]\tfloat32\t(3, 5)\twebgpu:" in panel
    left = page.locator("#left").inner_text()
    assert "mine: float64 (3, 5) on cpu, 120 B, NumPy's memory" in left
    assert "ours[0]: float32 (3, 5) on webgpu:" in left
    notebook.run("mine.release(); ours[0].release()")
    assert "0 tensors alive" in page.locator("#held").inner_text()
    page.click("#memory")
    assert page.locator("#panel").is_hidden()


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
def test_nothing_keeps_people_out(
    viewport: dict[str, int] | None, browser: Browser, site: Server
) -> None:
    """axe-core finds nothing serious, and a phone needs no scrolling sideways."""
    options: dict[str, object] = {"viewport": viewport} if viewport else {}
    with opened(browser, site, **options) as notebook:
        page = notebook.page
        page.evaluate(AXE.read_text())
        looks = [lambda: None]  # while it loads
        looks.append(lambda: notebook.idle())
        looks.append(lambda: notebook.run("print(1); 1 / 0"))
        looks.append(lambda: notebook.run("import dlpack_web as d; d.empty(3)"))
        looks.append(lambda: notebook.run("from dlw_page import *; slider(0, 1)"))
        looks.append(lambda: notebook.run(PICTURE))
        looks.append(lambda: notebook.start("input('Name? ')"))
        looks.append(lambda: page.wait_for_selector(".ask"))
        looks.append(lambda: page.keyboard.press("Enter"))
        looks.append(lambda: page.click("#memory"))
        looks.append(lambda: page.click("#help"))
        looks.append(lambda: page.keyboard.press("Escape"))
        looks.append(lambda: page.click("#share"))
        for look in looks:
            look()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert serious(page) == [], scheme
            wide = "document.documentElement.scrollWidth - innerWidth"
            assert page.evaluate(wide) <= 0


PICTURE = """
import numpy as np, dlpack_web as dlw
device = await dlw.webgpu.request_device()
dlw.from_dlpack(np.ones((300, 900, 3), "f4"), device=device)
"""


def serious(page: Page) -> list[tuple[str, list[str]]]:
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


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
    script: str, reason: str, browser: Browser, site: Server
) -> None:
    with opened(browser, site, script=script) as notebook:
        notebook.idle()
        assert "BufferError: " in notebook.run(GPU)
        assert reason in notebook.run("print(dlw.features()['webgpu']['reason'])")
        assert notebook.run("t = dlw.from_dlpack(np.ones(3)); t.js.data.length") == "3"
        assert notebook.watch.complaints() == []


def test_without_jspi(browser: Browser, site: Server) -> None:
    script = "delete WebAssembly.Suspending; delete WebAssembly.promising"
    with opened(browser, site, script=script) as notebook:
        notebook.idle()
        assert notebook.run(GPU) == ""
        assert notebook.run("x = dlw.from_dlpack(np.ones(3, 'f4'), device=d)") == ""
        assert "use `await t.to_host()`" in notebook.run("x.numpy()")
        assert notebook.run("(await x.to_host()).sum()") == "np.float32(3.0)"
        assert "on the GPU: await t.to_host()" in notebook.run("x")
        assert notebook.run("dlw.features()['jspi']") == "False"


def test_without_eval(browser: Browser, site: Server) -> None:
    """The page's connect() needs none; a cell that does says so."""
    policy = "script-src 'self' 'wasm-unsafe-eval'"
    with opened(browser, site, policy=policy) as notebook:
        notebook.idle()
        assert notebook.run(GPU) == ""
        assert notebook.run("dlw.features()['unsafeEval']") == "False"
        alone = "dlw._backends.browser.seam._seam = None\ndlw.from_dlpack(np.ones(3), device=d)"
        assert "`connect(pyodide)` of the npm package" in notebook.run(alone)
        assert notebook.run("6 * 7") == "42"


def test_old_pyodide(browser: Browser, site: Server) -> None:
    pyodide = """
        import * as real from "./pyodide.mjs?real";
        export async function loadPyodide(options) {
          const made = await real.loadPyodide(options);
          delete made._module.validSuspender;
          return made;
        }"""
    with opened(browser, site, pyodide=pyodide) as notebook:
        notebook.idle()
        words = "lacks _module.validSuspender; dlpack-web needs Pyodide 0.29 or newer"
        assert words in notebook.problem()
        assert words in notebook.run(GPU)
        assert notebook.run("6 * 7") == "42"


def test_wheel_for_another_abi(browser: Browser, site: Server, tmp_path: Path) -> None:
    made = json.loads((ROOT / "dist" / "wheel.json").read_text())["file"]
    other = tmp_path / "dlpack_web-0.1.0-cp311-cp311-emscripten_3_1_46_wasm32.whl"
    with (
        zipfile.ZipFile(ROOT / "dist" / made) as old,
        zipfile.ZipFile(other, "w") as new,
    ):
        for name in old.namelist():
            suffix = "cpython-311-wasm32-emscripten.so"
            new.writestr(name.replace("abi3.so", suffix), old.read(name))
    with opened(browser, site, wheel=other) as notebook:
        notebook.idle()
        words = "the C extension of this dlpack_web cannot be loaded on "
        assert words in notebook.problem()
        # Pyodide's own packages have one that fits.
        assert notebook.run("import dlpack_web as d; d.empty(3).shape") == "(3,)"
        assert notebook.run("6 * 7") == "42"


def test_kernel_that_does_not_start(browser: Browser, site: Server) -> None:
    with opened(browser, site, pyodide="throw new Error('broken');") as notebook:
        notebook.idle()
        assert "Python did not start: broken" in notebook.problem()
        assert "Restart" in notebook.page.locator("#kernel").inner_text()
        notebook.page.unroute("**/packages/pyodide.mjs")
        notebook.page.click("#restart")
        notebook.page.wait_for_selector("#kernel[data-state=idle]")
        assert notebook.problem() == ""
        assert notebook.run("6 * 7") == "42"
