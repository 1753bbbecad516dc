"""dlpack_web_page.widget in JupyterLab and Notebook: Python in a kernel, the GPU in a browser."""

import os
import signal
import time

import lab
import pytest

SHOW = "page = dlpack_web_page.widget.Page()\npage"
READY = "said(str(await page.ready()).split(':')[0])"
DOUBLE = """
double = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
}''')
"""
UPLOAD_UNTIL_LOST = """
said("uploading")
try:
    while True:
        dlw.from_dlpack(a, device=page).release()
        await page._host.backend().settle(0)
except dlw.DeviceLostError as error:
    said(str(error))
"""
STATUS = "[role=status]"
both = pytest.mark.parametrize(
    "host", ["lab/tree", "notebooks"], ids=["lab", "notebook"]
)


def run(server, page, name, cells, count, host="lab/tree"):
    """What the cells of a new notebook say."""
    server.notebook(name, cells)
    lab.open_notebook(page, server, name, host)
    lab.run_all(page)
    return server.wait_for(name, count, page)


@both
def test_tensors_go_to_the_page_kernels_run_and_results_come_back(server, pages, host):
    page = pages()
    cells = [
        SHOW,
        READY,
        DOUBLE,
        """
a = np.random.default_rng(0).random((1500, 1000), dtype="float32")
with dlw.from_dlpack(a, device=page) as t:
    double(t)
    said(bool((await t.to_host() == 2 * a).all()))
    with t[10:20] as rows:
        rows.write(np.ones((10, 1000), "float32"))
    while not page._host.backend().can_block():
        await t.to_host()
    said(bool((t.numpy()[9:21] == np.vstack([2 * a[9], *np.ones((10, 1000)), 2 * a[20]]).astype("f4")).all()))
""",
        """
add = dlw.webgpu.ElementwiseKernel("f32 x, f32 y", "f32 z", "z = x + k * y".replace("k", "2"))
total = dlw.webgpu.ReductionKernel("f32 x", "f32 y", "x", "a + b", "y = a", "0")
with dlw.from_dlpack(np.arange(10.0), device=page, dtype="float32") as x, add(x, x) as z:
    with total(z) as s, dlw.empty(3, device=page) as e:
        said([(await each.to_host()).tolist() for each in (z, s, e)])
        with dlw.webgpu.batch() as b:
            double(z)
            double(z)
        b.run()
        said((await z.to_host()).tolist())
""",
    ]
    found = run(server, page, f"works-{host[0]}", cells, 5, host)
    threes = [3.0 * i for i in range(10)]
    assert found == [
        "webgpu",
        True,
        True,
        [threes, 135.0, [0.0, 0.0, 0.0]],
        [4 * x for x in threes],
    ]
    # In Firefox a cell that is out of sight has no inner text.
    assert "The kernel uses this page's GPU" in page.locator(STATUS).text_content()


def test_python_waits_though_the_page_had_no_subshell_at_first(server, pages):
    cells = [
        SHOW,
        READY,
        """
import contextvars
page._context = contextvars.copy_context()  # as after such a message
with dlw.from_dlpack(np.arange(3.0), device=page) as t:
    for _ in range(20):
        await t.to_host()
    said(page._host.backend().can_block())
    said(t.numpy().tolist())
""",
    ]
    found = run(server, pages(), "subshell", cells, 3)
    assert found == ["webgpu", True, [0.0, 1.0, 2.0]]


@both
def test_faults_reach_the_cell_with_the_lines_of_shader_and_call(server, pages, host):
    cells = [
        SHOW,
        READY,
        """
bad = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = nothing; }''', label="bad")
t = dlw.empty(3, device=page)
bad(t)
try:
    await t.to_host()
except dlw.KernelError as error:
    said([error.label, error.line, error.lineno, "nothing" in str(error)])
try:
    await bad.ready(page)
except dlw.KernelError as error:
    said(error.line)
other = dlw.from_dlpack(np.ones(2, "float32"), device=page)
said((await other.to_host()).tolist())
try:
    bad(dlw.empty(3, "int32", device=page))
except BufferError as error:
    said(str(error))
""",
    ]
    found = run(server, pages(), f"faults-{host[0]}", cells, 5, host)
    assert found[1:4] == [["bad", 3, 5, True], 3, [1.0, 1.0]]
    assert "is int32, the shader's array<f32> is of f32" in found[4]


@both
def test_a_reload_amid_pieces_is_an_error_and_the_page_comes_back(server, pages, host):
    page = pages()
    cells = [
        SHOW,
        READY,
        "a = np.ones(16 << 20, 'float32')",
        UPLOAD_UNTIL_LOST,
        READY,
        """
with dlw.from_dlpack(np.arange(5.0), device=page) as t:
    said((await t.to_host()).tolist())
said(dlw.live_tensors())
""",
    ]
    run(server, page, f"reload-{host[0]}", cells, 2, host)
    page.wait_for_timeout(1500)
    lab.save(page)
    page.reload()
    found = server.wait_for(f"reload-{host[0]}", 6, page)
    assert "is lost (" in found[2]
    assert found[3:] == ["webgpu", [0.0, 1.0, 2.0, 3.0, 4.0], 0]


def test_rows_that_are_read_come_alone(server, pages):
    cells = [
        SHOW,
        READY,
        """
came = []
page.on_msg(lambda _, __, buffers: came.extend(memoryview(b).nbytes for b in buffers))
a = np.random.default_rng(0).random((4000, 1000), dtype="float32")
with dlw.from_dlpack(a, device=page) as t, t[1000:1100] as rows, t[::40] as steps:
    found = [await each.to_host() for each in (rows, steps)]
said([bool((found[0] == a[1000:1100]).all()), bool((found[1] == a[::40]).all()), sum(came)])
""",
    ]
    *equal, came = run(server, pages(), "rows", cells, 2)[1]
    assert equal == [True, True]
    assert 800_000 <= came < 810_000  # of 16 MB; and the frames' heads


def test_two_views_share_a_gpu_and_both_draw(server, pages):
    page = pages()
    cells = [
        SHOW,
        "page",
        READY,
        """
image = np.zeros((20, 30, 3), "uint8")
image[:, :, 0] = 255
with dlw.from_dlpack(image, device=page) as t:
    await page.canvas(t)
said("drawn")
""",
    ]
    run(server, page, "views", cells, 2)
    assert page.locator(STATUS).count() == 2
    for canvas in page.locator(".jp-OutputArea canvas").all():
        canvas.wait_for()
        assert canvas.evaluate("c => [c.width, c.height]") == [30, 20]


def test_a_second_page_is_refused_until_the_first_is_closed(server, pages):
    page = pages()
    cells = [
        SHOW,
        READY,
        """
import asyncio
before = page.device
try:
    while page.device == before:
        await asyncio.sleep(0.2)
except dlw.DeviceLostError:
    pass
said("gone")
""",
        READY,
    ]
    run(server, page, "pages", cells, 1)
    # The other page shows the outputs that the file has.
    lab.save(page)
    other = pages()  # Firefox draws nothing in pages behind it
    lab.open_notebook(other, server, "pages")
    other.get_by_text("another page has the GPU of this widget").first.wait_for()
    page.close()
    found = server.wait_for("pages", 3, other)
    assert found[1:] == ["gone", "webgpu"]


@pytest.mark.skipif(
    os.environ.get("BROWSER") == "firefox", reason="only Chromium names its processes"
)
def test_a_page_that_slept_goes_on_with_its_tensors(server, pages, opened):
    """For longer than the patience of the kernel, whose waiting ends with an error meanwhile."""
    page = pages()
    cells = [
        "page = dlpack_web_page.widget.Page(patience=3)\npage",
        READY,
        DOUBLE,
        """
a = np.random.default_rng(0).random((1500, 1000), dtype="float32")
t = dlw.from_dlpack(a, device=page)
said(bool((await t.to_host() == a).all()))
try:
    while True:
        double(t)
        a *= 2
        await t.to_host()
except BufferError as error:
    said(str(error))
""",
        """
while True:
    try:
        said(bool((await t.to_host() == a).all()))
        break
    except BufferError:
        pass
t.release()
""",
    ]
    run(server, page, "slept", cells, 2)
    processes = opened.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    renderers = [p["id"] for p in processes["processInfo"] if p["type"] == "renderer"]
    for each in renderers:
        os.kill(each, signal.SIGSTOP)
    try:
        assert "the page has not answered for 3 s" in server.wait_for("slept", 3)[2]
        time.sleep(12)  # longer than a link takes messages for sent
    finally:
        for each in renderers:
            os.kill(each, signal.SIGCONT)
    assert server.wait_for("slept", 4, page)[3:] == [True]


def test_after_a_restart_the_cells_run_again(server, pages):
    page = pages()
    cells = [
        SHOW,
        READY,
        """
with dlw.from_dlpack(np.arange(3.0), device=page) as t:
    said((await t.to_host()).tolist())
""",
    ]
    assert run(server, page, "restart", cells, 2) == ["webgpu", [0.0, 1.0, 2.0]]
    (server.folder / "restart.json").unlink()
    page.evaluate(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    lab.run_all(page)
    assert server.wait_for("restart", 2, page) == ["webgpu", [0.0, 1.0, 2.0]]


def test_a_page_without_webgpu_gives_cpu_tensors_and_a_message(server, pages):
    page = pages(
        "Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined })"
    )
    cells = [
        SHOW,
        """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    said(str(await page.ready()))
said([str(each.message) for each in caught])
with dlw.from_dlpack(np.arange(3.0), device=page) as t:
    said((await t.to_host()).tolist())
""",
    ]
    found = run(server, page, "none", cells, 3)
    assert found[0] == "cpu"
    reason = "no WebGPU here (navigator.gpu is missing)"
    assert any(reason in each for each in found[1]), found[1]
    assert found[2] == [0.0, 1.0, 2.0]
    page.locator(STATUS, has_text="no WebGPU here").wait_for()
