"""The picture that links to the project show: whole, and nothing of it runs out of the picture."""

from pathlib import Path

from playwright.sync_api import Browser
from social_preview import SIZE, draw_with

OUTSIDE = """() => {
  const { width, height } = document.querySelector("svg").getBoundingClientRect();
  const inside = ({ left, top, right, bottom }) =>
    left >= 0 && top >= 0 && right <= width && bottom <= height;
  const texts = [...document.querySelectorAll("text")];
  return [texts.length, texts.filter((each) => !inside(each.getBoundingClientRect())).length];
}"""


def test_all_words_are_in_the_picture(browser: Browser, tmp_path: Path) -> None:
    page = draw_with(browser, tmp_path / "preview.png")
    texts, outside = page.evaluate(OUTSIDE)
    assert texts > 5
    assert outside == 0
    assert page.viewport_size == SIZE
    assert (tmp_path / "preview.png").stat().st_size > 10_000
    page.close()
