"""dlpack_web_page.widget in marimo, whose kernel passes messages only while no cell runs."""

import lab
import marimo_server
import pytest

SHOW = "page = dlpack_web_page.widget.Page(patience=1)\npage"
WORK = """
import asyncio
import marimo as mo
result, set_result = mo.state(None)

async def work():
    said(str(await page.ready()).split(":")[0])
    double = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
}''')
    a = np.random.default_rng(0).random((1500, 1000), dtype="float32")
    with dlw.from_dlpack(a, device=page) as t:
        double(t)
        set_result(bool((await t.to_host() == 2 * a).all()))
"""
REACTION = """
mo.stop(result() is None)
said(["as the state", result()])
"""
STATUS = ".output-area [role=status]"


def open_notebook(page, server):
    page.goto(f"{server.url}?access_token={lab.TOKEN}")


@pytest.mark.parametrize("mode", ["edit", "run"])
def test_a_task_gets_results_and_sets_the_state(pages, tmp_path, mode):
    page = pages()
    cells = [SHOW, WORK, "task = asyncio.create_task(work())", REACTION]
    with marimo_server.serving(tmp_path, mode, cells) as server:
        open_notebook(page, server)
        found = server.wait_for("notebook", 2, page)
        assert found == ["webgpu", ["as the state", True]]
        assert "The kernel uses this page's GPU" in page.locator(STATUS).inner_text()


def test_a_thread_waits_without_await(pages, tmp_path):
    cells = [
        SHOW,
        """
import asyncio
import marimo as mo

def work():
    asyncio.run(page.ready())
    with dlw.from_dlpack(np.arange(3.0), device=page) as t:
        said(t.numpy().tolist())

mo.Thread(target=work).start()
""",
    ]
    with marimo_server.serving(tmp_path, "run", cells) as server:
        open_notebook(page := pages(), server)
        assert server.wait_for("notebook", 1, page) == [[0.0, 1.0, 2.0]]


def test_a_cell_that_waits_gets_an_error_that_says_what_to_do(pages, tmp_path):
    cells = [
        SHOW,
        """
import asyncio
import marimo as mo
tensor, set_tensor = mo.state(None)

async def work():
    await page.ready()
    set_tensor(dlw.from_dlpack(np.arange(3.0), device=page))

task = asyncio.create_task(work())
""",
        """
try:
    await page.ready(1)
except BufferError as error:
    said(str(error))
""",
        """
mo.stop(tensor() is None)
try:
    await tensor().to_host()
except BufferError as error:
    said(str(error))

async def read():
    said((await tensor().to_host()).tolist())

reading = asyncio.create_task(read())
""",
    ]
    with marimo_server.serving(tmp_path, "edit", cells) as server:
        open_notebook(page := pages(), server)
        first, second, third = server.wait_for("notebook", 3, page)
        assert "in marimo, in a task or a thread" in first
        assert "can it send messages to a cell that runs?" in second
        assert third == [0.0, 1.0, 2.0]


def test_a_cell_can_wait_where_the_page_is_connected_directly(pages, tmp_path):
    cells = [
        "page = dlpack_web_page.widget.Page(direct=True)\npage",
        """
import asyncio
import marimo as mo
is_there, set_there = mo.state(False)

async def work():
    await page.ready()
    set_there(page.direct)

task = asyncio.create_task(work())
""",
        """
mo.stop(not is_there())
with dlw.from_dlpack(np.arange(3.0), device=page) as t:
    said(t.numpy().tolist())
""",
    ]
    with marimo_server.serving(tmp_path, "edit", cells) as server:
        open_notebook(page := pages(), server)
        assert server.wait_for("notebook", 1, page) == [[0.0, 1.0, 2.0]]


def test_after_a_reload_the_kernel_gets_the_new_page(pages, tmp_path):
    page = pages()
    cells = [
        SHOW,
        """
import asyncio

async def work():
    for _ in range(2):
        device = await page.ready()
        said(str(device).split(":")[0])
        t = dlw.empty(1, device=page)
        try:
            while page.device == device:
                await asyncio.sleep(0.1)
            await t.to_host()
        except dlw.DeviceLostError as error:
            said(str(error).split("(")[1].split(",")[0])

task = asyncio.create_task(work())
""",
    ]
    with marimo_server.serving(tmp_path, "edit", cells) as server:
        open_notebook(page, server)
        server.wait_for("notebook", 1, page)
        page.reload()
        found = server.wait_for("notebook", 3, page)
        assert found[::2] == ["webgpu", "webgpu"]
        # Firefox may drop what a page says at its end; then the new page takes over.
        assert found[1] in (
            "its page was closed or reloaded)",
            "another page took over)",
        )
