"""The kernel's own WebSocket for its page, Page(direct=True), in JupyterLab in Chromium."""

import lab
import pytest
from test_lab import READY, STATUS, UPLOAD_UNTIL_LOST, run

SHOW = "page = dlpack_web_page.widget.Page(direct=True)\npage"
CONNECTED = """
import asyncio
async def connected():
    for _ in range(2000):
        if page.direct:
            return True
        await asyncio.sleep(0.01)
    return False
said(await connected())
"""
# 48 MB: more than is on its way at a time.
ARRAY = "a = np.random.default_rng(0).random(6_000_000)"
THERE_AND_BACK = """
with dlw.from_dlpack(a, device=page) as t:
    said(bool((t.numpy() == a).all()))
    with t[1000:2000] as part:
        part.write(np.ones(1000))
    found = await t.to_host()
said(bool((found[1000:2000] == 1).all() and (found[2000:] == a[2000:]).all()))
"""
REFUSED = """
globalThis.WebSocket = class extends WebSocket {
  constructor(url, ...rest) {
    if (!url.endsWith("/channels") && !url.includes("/api/")) HOW;
    super(url, ...rest);
  }
};
"""


def test_tensors_go_there_and_back_and_the_widget_says_so(server, pages):
    page = pages()
    cells = [SHOW, READY, "said(page.direct)", ARRAY, THERE_AND_BACK]
    assert run(server, page, "direct", cells, 4) == ["webgpu", True, True, True]
    page.locator(STATUS, has_text="by a WebSocket of its own").wait_for()


def test_arrays_of_all_dtypes_and_layouts_come_back_as_they_were(server, pages):
    cell = """
names = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64"
values = np.random.default_rng(0).random(60) * 100
wrong = []
for name in names.split():
    a = values.astype(name)
    for shape in (60,), (5, 12), (3, 4, 5), (0, 7):
        b = a[:np.prod(shape, dtype=int)].reshape(shape)
        with dlw.from_dlpack(b, device=page) as t:
            views = {"whole": np.s_[...], "part": np.s_[1:3], "steps": np.s_[::2], "turned": np.s_[::-1]}
            for what, where in views.items():
                with t[where] as view:
                    found = await view.to_host()
                if found.dtype != b.dtype or not np.array_equal(found, b[where]):
                    wrong.append([name, shape, what])
            with t.permute_dims(range(b.ndim)[::-1]) as view:
                if not np.array_equal(await view.to_host(), b.T):
                    wrong.append([name, shape, "transposed"])
said(wrong)
a = np.random.default_rng(0).bytes(6_000_003) # more than is read at once
a = np.frombuffer(a, "uint8")
with dlw.from_dlpack(a, device=page) as t:
    for where in np.s_[:], np.s_[1:], np.s_[3:-2], np.s_[:-1], np.s_[1::2], np.s_[4_000_000:]:
        with t[where] as view:
            said(bool(np.array_equal(await view.to_host(), a[where])))
"""
    cells = [SHOW, READY, cell]
    found = run(server, pages(), "dtypes", cells, 8)
    assert found == ["webgpu", [], *[True] * 6]


def test_what_is_read_back_does_not_change_while_it_is_on_its_way(server, pages):
    cell = """
import asyncio
clear = dlw.webgpu.Kernel('''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] = 0; }
}''')
for shape in (12_000_000,), (1000,):
    a = np.ones(shape, "float32")
    with dlw.from_dlpack(a, device=page) as t:
        reading = asyncio.ensure_future(t.to_host())
        await asyncio.sleep(0)
        clear(t)
        said(bool((await reading == a).all()))
        said(bool((await t.to_host() == 0).all()))
said(dlw.live_tensors())
"""
    cells = [SHOW, READY, cell]
    found = run(server, pages(), "snapshot", cells, 6)
    assert found == ["webgpu", *[True] * 4, 0]


def test_a_widget_that_cannot_be_made_leaves_no_port_open(server, pages):
    cell = """
import threading
def servers():
    return [each for each in threading.enumerate() if each.name == "dlpack_web direct"]
try:
    dlpack_web_page.widget.Page(direct=True, layout=5)
except Exception as error:
    said(type(error).__name__)
for each in servers():
    each.join(60)
said(len(servers()))
"""
    assert run(server, pages(), "unmade", [cell], 2) == ["TraitError", 0]


@pytest.mark.parametrize(
    "how",
    [
        "url = 'ws://127.0.0.1:9/'",
        "rest[0][1] += '0'",
        "rest = []",
        "url = 'no address'",
    ],
    ids=["another port", "another proof", "no proof", "not allowed"],
)
def test_a_page_that_cannot_connect_uses_the_notebooks_channel(server, pages, how):
    page = pages(REFUSED.replace("HOW", how))
    name = f"apart-{len(how)}"
    cells = [
        SHOW,
        READY,
        ARRAY,
        THERE_AND_BACK.replace("t.numpy()", "await t.to_host()"),
    ]
    cells.append("said(page.direct)")
    assert run(server, page, name, cells, 4) == ["webgpu", True, True, False]
    assert "WebSocket of its own" not in page.locator(STATUS).inner_text()


def test_a_connection_that_breaks_amid_an_upload_loses_nothing_and_comes_again(
    server, pages
):
    cells = [
        SHOW,
        READY,
        CONNECTED,
        ARRAY,
        """
import threading
def cut():
    server = page._host._server
    server._loop.call_soon_threadsafe(server._socket.transport.abort)
for _ in range(3):
    cutter = threading.Timer(0.15, cut)
    cutter.start()
    with dlw.from_dlpack(a, device=page) as t:
        said(bool((await t.to_host() == a).all()))
    cutter.join()
    said(await connected())
""",
    ]
    found = run(server, pages(), "cut", cells, 8)
    assert found == ["webgpu", True, *[True, True] * 3]


def test_after_a_reload_amid_an_upload_the_next_page_is_connected(server, pages):
    page = pages()
    cells = [
        SHOW,
        READY,
        CONNECTED,
        ARRAY,
        UPLOAD_UNTIL_LOST,
        READY,
        CONNECTED,
        THERE_AND_BACK,
    ]
    run(server, page, "direct-reload", cells, 3)
    lab.save(page)
    page.reload()
    found = server.wait_for("direct-reload", 8, page)
    assert "is lost (its page was closed or reloaded)" in found[3]
    assert found[4:] == ["webgpu", True, True, True]
