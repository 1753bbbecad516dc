"""record_clip.py OUT.webp: records the landing page's picture, for pages without WebGPU.

Playwright screenshots are used, because a WebGPU canvas keeps no pixels to read.
"""

import sys
import threading
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

sys.path.append(str(Path(__file__).resolve().parents[1] / "web"))
from browser import open_browser, open_page
from serve import SITE, Server

FRAMES = 12
STEP_MS = 100
SIZE = (320, 240)


def record(page: Page, out: Path) -> None:
    """Saves the frames of a page that shows some as an animated WebP."""
    frames = []
    for _ in range(FRAMES):
        png = page.locator("#canvas").screenshot()
        frames.append(Image.open(BytesIO(png)).convert("RGB").resize(SIZE))
    first, *others = frames
    first.save(
        out,
        save_all=True,
        append_images=others,
        duration=STEP_MS,
        loop=0,
        quality=30,
        method=6,
    )


if __name__ == "__main__":
    with (
        Server(SITE) as server,
        open_browser() as browser,
        open_page(browser, server.url) as (page, _),
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(server.url)
        page.wait_for_selector("#canvas[data-by=python]")
        record(page, Path(sys.argv[1]))
        server.shutdown()
