"""picture.py OUT.webp: the tutorial's notebook in JupyterLab, for the documentation."""

import io
import sys
import tempfile
from pathlib import Path

import lab
from PIL import Image
from test_tutorial import blocks

sys.path.append(str(lab.ROOT / "web"))
from browser import open_browser, open_page

# The picture has these cells of the notebook.
FIRST, LAST = 1, 3
SIZE = {"width": 900, "height": 1400}


def record(page, server, out):
    """Runs the notebook up to its last image, and saves a picture of its begin."""
    server.notebook("picture", [*blocks()[0], "said('done')"])
    lab.open_notebook(page, server, "picture")
    page.evaluate(
        "() => void jupyterapp.commands.execute('application:toggle-left-area')"
    )
    lab.run_all(page)
    server.wait_for("picture", 1, page)
    cells = page.locator(".jp-Notebook .jp-Cell")
    cells.nth(FIRST).scroll_into_view_if_needed()
    page.wait_for_timeout(1000)  # scrollbars and the canvas settle
    top, bottom = (cells.nth(i).bounding_box() for i in (FIRST, LAST))
    height = bottom["y"] + bottom["height"] - top["y"]
    clip = {**top, "height": height}
    with Image.open(io.BytesIO(page.screenshot(clip=clip))) as image:
        image.convert("RGB").save(out, quality=60, method=6)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.serving(Path(folder)) as server,
        open_browser() as browser,
        open_page(browser, server.url, viewport=SIZE, device_scale_factor=1.5) as (
            page,
            _,
        ),
    ):
        record(page, server, Path(sys.argv[1]))
