"""The forms in which hosts pass messages to a widget, in a sandboxed frame without eval,
workers and network: VS Code's and Colab's, by what their sources say, and not the hosts.

The kernel is this Python."""

import asyncio
import base64
import functools
import http.server
import json
import shutil
import threading
from collections import deque

import lab
import numpy as np
import pytest

import dlpack_web as dlw
from dlpack_web_page._page.host import Host

POLICY = (
    "default-src 'none'; img-src data:; script-src 'self'; worker-src 'none'; connect-src 'none'; "
    "require-trusted-types-for 'script'"
)
STUB = lab.PACKAGE / "tests" / "widget" / "stub"
SCRIPT = lab.PACKAGE / "py" / "dlpack_web_page" / "_widget.js"
DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
}"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")  # a sandbox has no origin
        if "frame.html" in self.path:
            self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    """The address of the stub's folder."""
    shutil.copytree(STUB, tmp_path, dirs_exist_ok=True)
    shutil.copy(SCRIPT, tmp_path)
    handler = functools.partial(_Handler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Kernel:
    """A Host whose messages a frame gets; `run` awaits on a thread meanwhile."""

    def __init__(self, page, frame):
        self.page, self.frame, self.queue = page, frame, deque()
        self.host = Host(self._post, 10)

    def _post(self, content, buffers):
        found = [base64.b64encode(each).decode() for each in buffers]
        self.queue.append([json.dumps(content), found])

    def run(self, coroutine):
        found = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(coroutine)))
        thread.start()
        while thread.is_alive():
            self.pass_on()
            self.page.wait_for_timeout(5)
        thread.join()
        assert found, "the coroutine raised an error"
        return found[0]

    def pass_on(self):
        while self.queue:
            self.frame.evaluate("([c, b]) => give(c, b)", self.queue.popleft())
        for each in self.frame.evaluate("() => globalThis.taken?.() ?? []"):
            buffers = [memoryview(base64.b64decode(b)) for b in each["buffers"]]
            self.host.receive(json.loads(each["content"]), buffers)


def shown(page, site, form):
    """The frame with the widget."""
    page.goto(site)
    page.evaluate(
        "url => { document.querySelector('#output').src = url; }",
        f"{site}frame.html#{form}",
    )
    page.frame_locator("#output").locator("[role=status]").wait_for()
    return page.frames[1]


@pytest.mark.parametrize("form", ["views", "bytes", "buffers"])
def test_arrays_travel_and_kernels_run(pages, site, form):
    page = pages()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: m.type == "error" and errors.append(m.text))
    frame = shown(page, site, form)
    assert frame.evaluate("() => origin") == "null"
    kernel = Kernel(page, frame)
    a = np.random.default_rng(0).random((300, 1000), dtype="float32")

    async def work():
        device = await kernel.host.ready(lab.LIMIT_S)
        with dlw.from_dlpack(a, device=device) as t:
            dlw.webgpu.Kernel(DOUBLE)(t)
            with t[10:20] as rows:
                rows.write(np.ones((10, 1000), "float32"))
            return str(device), await t.to_host()

    device, found = kernel.run(work())
    assert device.startswith("webgpu:")
    assert np.array_equal(found, np.vstack([2 * a[:10], 0 * a[10:20] + 1, 2 * a[20:]]))
    assert (
        "The kernel uses this page's GPU" in frame.locator("[role=status]").inner_text()
    )
    frame.evaluate("() => remove()")
    kernel.pass_on()
    assert errors == []
    assert frame.evaluate("() => blocked()") == ["EvalError", "TypeError"]
    kernel.host.close()


def test_a_host_that_drops_buffers_is_an_error_on_both_sides(pages, site):
    page = pages()
    frame = shown(page, site, "dropped")
    kernel = Kernel(page, frame)

    async def work():
        device = await kernel.host.ready(lab.LIMIT_S)
        try:
            await dlw.from_dlpack(np.arange(3.0), device=device).to_host()
        except dlw.DeviceLostError as error:
            return str(error)

    assert "this notebook passes messages without their buffers" in kernel.run(work())
    status = frame.locator("[role=status]").inner_text()
    assert status.startswith("The GPU cannot be used here: this notebook passes")
    kernel.host.close()
