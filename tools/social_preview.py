"""social_preview.py OUT.png: renders tools/social.svg as the preview picture of links
to the project."""

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize

sys.path.append(str(Path(__file__).resolve().parents[1] / "web"))
from browser import open_browser

PICTURE = Path(__file__).with_name("social.svg")
SIZE: ViewportSize = {
    "width": 1280,
    "height": 640,
}  # the size that hosts of repositories require


def draw_with(browser: Browser, out: Path) -> Page:
    svg = PICTURE.read_text()
    page = browser.new_page(viewport=SIZE)
    page.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{svg}")
    page.screenshot(path=out)
    return page


if __name__ == "__main__":
    with open_browser() as browser:
        draw_with(browser, Path(sys.argv[1]))
