"""examples/scatter in JupyterLab: points are drawn, moved, and selected with the mouse."""

import io

import lab
import numpy as np
from bundles import bundled
from PIL import Image

SCATTER = lab.ROOT / "examples" / "scatter" / "scatter.js"
COUNT = 100_000


def pixels(canvas):
    """What the canvas shows, as an array of red, green and blue."""
    with Image.open(io.BytesIO(canvas.screenshot())) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def test_points_are_drawn_moved_and_selected(server, pages):
    page = pages()
    bundled(SCATTER, server.folder)
    cells = [
        """
import sys; sys.path.insert(0, "scatter")
from scatter import Scatter
plot = Scatter()
plot
""",
        "said(str(await plot.ready()).split(':')[0])",
        f"""
a = np.random.default_rng(0).normal(0, 0.2, ({COUNT}, 2)).astype("float32")
with dlw.from_dlpack(a, device=plot) as points:
    plot.show(points)
said("shown")
""",
        """
import asyncio
while not plot.selected:
    await asyncio.sleep(0.1)
found = await plot.indices()
x0, y0, x1, y1 = plot.selected["rectangle"]
inside = (a[:, 0] >= np.float32(x0)) & (a[:, 0] <= np.float32(x1)) & (a[:, 1] >= np.float32(y0)) & (a[:, 1] <= np.float32(y1))
said([str(found.dtype), len(found), bool(np.array_equal(found, np.flatnonzero(inside)))])
plot.turn(np.pi / 2)
with plot.tensors["points"] as points:
    b = await points.to_host()
said(float(np.abs(b - a[:, ::-1] * [-1, 1]).max()))
""",
    ]
    server.notebook("scatter", cells)
    lab.open_notebook(page, server, "scatter")
    lab.run_all(page)
    server.wait_for("scatter", 2, page)
    canvas = page.locator("canvas[data-frames]")
    canvas.wait_for()
    canvas.scroll_into_view_if_needed()
    before = pixels(canvas)
    height, width, _ = before.shape
    inner = before[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3]
    assert inner[:, :, 2].mean() > 50
    assert before[10 : height // 10, : width // 2].mean() < 2
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.up()
    found = server.wait_for("scatter", 4, page)
    assert found[:2] == ["webgpu", "shown"]
    assert found[2][0] == "uint32"
    assert found[2][1] > 1000
    assert found[2][2] is True
    assert found[3] < 1e-6
    page.wait_for_function("c => c.dataset.frames > 2", arg=canvas.element_handle())
    # What was in the upper right of the middle is in its upper left now, and orange.
    after = pixels(canvas)
    orange = (after[:, :, 0] > 200) & (after[:, :, 2] < 50)
    height, width = orange.shape
    assert orange[height // 3 : height // 2, width // 3 : width // 2].mean() > 0.3
    assert orange[:, width // 2 + 5 :].sum() == 0
