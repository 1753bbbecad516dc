"""A widget of an author: its own script, bundled with dlpack-web-page/widget, in JupyterLab."""

import lab
from bundles import bundled
from test_lab import run

SCRIPT = lab.PACKAGE / "tests" / "widget" / "author" / "author.js"
SHOW = """
import pathlib, traitlets
class Mine(dlpack_web_page.widget.Page):
    _esm = pathlib.Path("author/author.bundle.js")
    label = traitlets.Unicode("mine").tag(sync=True)
    heard = traitlets.List().tag(sync=True)
page = Mine(label="given")
page
"""
READY = "said(str(await page.ready()).split(':')[0])"
# After a reload.
AGAIN = """
while page.tensors:
    await asyncio.sleep(0.1)
await page.ready()
with dlw.from_dlpack(np.array([9], dtype="float32"), device=page) as t:
    page.tensors["x"] = t
await heard(9)
del page.tensors["x"]
said(dlw.live_tensors())
"""
HEARD = """
import asyncio
async def heard(*expected):
    while page.heard != [*expected]:
        await asyncio.sleep(0.1)
    said(page.heard)
"""


def test_a_script_of_its_own_gets_tensors_by_name(server, pages):
    page = pages()
    bundled(SCRIPT, server.folder)
    cells = [
        SHOW,
        READY,
        HEARD,
        """
with dlw.from_dlpack(np.arange(3, dtype="float32"), device=page) as t:
    page.tensors["x"] = t
await heard(0, 1, 2)
with page.tensors["x"] as t:
    dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) { x[i] += 5; }''')(t)
await heard(5, 6, 7)
with page.tensors["x"] as t, t[1:] as rows:
    rows.write(np.ones(2, "float32"))
await heard(5, 1, 1)
""",
    ]
    found = run(server, page, "author", cells, 4)
    assert found == ["webgpu", [0, 1, 2], [5, 6, 7], [5, 1, 1]]
    line = page.locator(".jp-OutputArea p").first
    assert line.inner_text().startswith("given: Tensor float32[3] on webgpu:")
    assert not page.locator("[role=status]").is_visible()
    # The page has its widget again from the outputs that are saved, as soon as the kernel is idle.
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    lab.open_notebook(page, server, "author")
    page.get_by_text("given: nothing").first.wait_for()
    lab.execute(page, AGAIN)
    found = server.wait_for("author", 6, page)
    assert found[4:] == [[9], 0]
    page.get_by_text("given: nothing").first.wait_for()
