"""JupyterLite, whose kernel is a worker of the page: the worker has a GPU itself, and
dlpack_web_page.widget says so. The script of a widget gets copies of tensors by the wire, as
packages/page/docs/own-widget.md shows it."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import lab
import pytest
from bundles import bundled
from notebooks import failed, run_notebook
from serve import Server

sys.path.append(str(lab.ROOT / "tests" / "docs"))
from documentation import fences

LITE = lab.ROOT / "build" / "lite"
HOWTO = lab.ROOT / "packages/page/docs/own-widget.md"
# What code prints or raises, run in the kernel and in no cell.
ASK = """async (code) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  const future = kernel.requestExecute({ code });
  const said = [];
  future.onIOPub = ({ content }) => said.push(content.text ?? content.evalue ?? "");
  await future.done;
  return said.join("");
}"""


def listings():
    """Of the how-to's part about JupyterLite: the script, the widget, and its use."""
    text = HOWTO.read_text("utf-8")
    start = text[: text.index("## Send tensors to a widget in JupyterLite")].count("\n")
    return [fence.code for fence in fences(HOWTO) if fence.line > start][:3]


def build(source, site):
    """A JupyterLite with anywidget, over the Pyodide of `make lite`."""
    dist = lab.ROOT / "dist"
    wheel = json.loads((dist / "wheel.json").read_text())["file"]
    page = json.loads((dist / "packages.json").read_text())["dlpack-web-page"]
    widgets = [
        next((lab.ROOT / "build" / "wheels").glob(f"{name}-*.whl"))
        for name in (
            "anywidget",
            "ipywidgets",
            "jupyterlab_widgets",
            "psygnal",
            "typing_extensions",
        )
    ]
    wheels = [dist / wheel, dist / page, *widgets, *(LITE / "wheels").glob("comm-*")]
    shown = [
        each for each in widgets if each.name.startswith(("anywidget", "jupyterlab"))
    ]
    config = {
        "LiteBuildConfig": {
            "contents": ["files"],
            "federated_extensions": [str(each) for each in shown],
            "no_sourcemaps": True,
        },
        "PipliteAddon": {"piplite_urls": [str(each) for each in wheels]},
    }
    (source / "jupyter_lite_config.json").write_text(json.dumps(config))
    settings = (LITE / "source" / "jupyter-lite.json").read_text()
    (source / "jupyter-lite.json").write_text(settings)
    (source / "static").symlink_to(LITE / "source" / "static")
    command = [str(Path(sys.executable).with_name("jupyter")), "lite", "build"]
    command += ["--output-dir", str(site)]
    done = subprocess.run(
        command, cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="module")
def lite(tmp_path_factory):
    """The address of JupyterLite, with a notebook that shows the how-to's widget."""
    folder = tmp_path_factory.mktemp("lite")
    script, widget, _ = listings()
    (folder / "page").mkdir()
    (folder / "page" / "squares.js").write_text(script)
    there = bundled(folder / "page" / "squares.js", folder / "bundled")
    files = folder / "source" / "files"
    files.mkdir(parents=True)
    (there / "squares.bundle.js").rename(files / "squares.bundle.js")
    kernel = {"name": "python", "display_name": "Python (Pyodide)"}
    book = lab.book_of(["%pip install dlpack-web anywidget", widget], kernel)
    (files / "widget.ipynb").write_text(book)
    build(folder / "source", folder / "site")
    with Server(folder, mounts={"/jupyterlite/": folder / "site"}) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{server.url}jupyterlite/"
        server.shutdown()


@pytest.fixture
def ask(pages, lite):
    """Runs code in the kernel of the notebook, whose cells have run, and returns what it
    printed or raised."""
    page = pages()
    page.set_default_timeout(1000 * 300)
    assert failed(run_notebook(page, lite, "widget.ipynb")) == []
    return lambda code: page.evaluate(ASK, code)


def test_a_kernel_in_the_page_has_the_gpu_and_no_widget_page(ask):
    said = ask("import dlpack_web_page.widget")
    assert "this Python runs in the page" in said
    assert "`await dlpack_web.webgpu.request_device()` has its GPU" in said
    assert "dlpack_web_page.wire" in said
    said = ask("""
import dlpack_web as dlw
await dlw.webgpu.request_device()
double = dlw.webgpu.ElementwiseKernel("f32 x", "f32 y", "y = 2 * x")
with dlw.from_dlpack(np.arange(3.0), device="webgpu", dtype="float32") as x, double(x) as y:
    print((await y.to_host()).tolist())
""")
    assert said == "[0.0, 2.0, 4.0]\n"


def test_the_script_of_a_widget_gets_tensors_and_sends_results_back(ask):
    *_, use = listings()

    def ask_until_true(what):
        for _ in range(lab.LIMIT_S * 5):
            if "True" in ask(f"await asyncio.sleep(0.2); print({what})"):
                break

    # Messages do not reach a cell that waits.
    said = ask(f"""
import asyncio
{use}
for _ in range(20):
    await asyncio.sleep(0.1)
print(remote.ready.done(), hasattr(squares, "result"))
""")
    assert said == "False False\n"
    ask_until_true("hasattr(squares, 'result')")
    x = "np.arange(3e6, dtype='float32')"
    said = ask(f"print(remote.ready.done(), np.array_equal(squares.result, {x} * {x}))")
    assert said == "True True\n"
    # They reach a task.
    ask(f"""
async def work():
    {use}
    await remote.ready
    return remote.name
task = asyncio.create_task(work())
""")
    ask_until_true("task.done()")
    assert ask("print(task.result())") == "x\n"
