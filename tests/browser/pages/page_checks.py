"""What the tests of pages share."""

from __future__ import annotations

from browser import Watch, await_result
from playwright.sync_api import Page
from serve import Server

# Largest difference that float32 sums of some hundred products in 0..1 may show.
TOLERANCE = 1e-5

# Is a canvas drawn: how many different colours has a coarse grid over it?
COLOURS = """(canvas) => {
  const { data } = canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  const words = new Uint32Array(data.buffer);
  return new Set(words.filter((_, i) => i % 97 === 0)).size;
}"""


def open_and_run(page: Page, name: str, server: Server) -> dict:
    page.goto(f"{server.url}{name}.html#auto")
    return await_result(page)


def assert_clean(watch: Watch) -> None:
    assert watch.complaints() == []
