"""The train page: a network learns in a worker, reads what is drawn, and its weights are exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import PATIENT_S, await_result, is_firefox, open_page
from page_checks import COLOURS, assert_clean
from playwright.sync_api import Browser, Page
from serve import SITE, Server

type Weights = dict[str, np.ndarray]

# This library opens the exported file, as a reader of it would.
OPEN = """async (bytes) => {
  const { open } = await import("/js/open/index.js");
  const file = await open(Uint8Array.from(bytes));
  const found = {};
  for await (const [name, tensor] of file) {
    found[name] = { shape: [...tensor.shape], values: [...tensor.data] };
    tensor.release();
  }
  return found;
}"""

# Presses Stop after the first step.
STOP_SOON = """() => {
  const step = document.querySelector("#step");
  const watching = new MutationObserver(() => {
    if (!step.textContent.includes("at step 1;")) return;
    watching.disconnect();
    document.querySelector("#stop").click();
  });
  watching.observe(step, { childList: true, characterData: true, subtree: true });
}"""


def test_a_network_learns_and_reads_what_is_drawn(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.set_default_timeout(1000 * PATIENT_S)
        page.goto(f"{server.url}train.html#auto")
        result = await_result(page)
        assert result["ok"], result
        losses = result["losses"]
        assert len(losses) == 160
        assert losses[0] > 2  # about ln 10: it knows nothing
        assert np.mean(losses[-10:]) < losses[0] / 4
        assert result["accuracy"] >= 0.9
        assert page.eval_on_selector("#curve", COLOURS) > 2
        assert page.eval_on_selector("#photo", COLOURS) > 16

        weights = export(page, tmp_path / "digits.safetensors")
        with np.load(SITE / "model" / "handwriting.npz") as file:
            pixels, labels = file["test_pixels"], file["test_labels"]
        expected = softmax(logits(weights, pixels / 16))
        right = (expected.argmax(1) == labels).mean()
        assert (
            right == result["accuracy"]
        )  # these are the weights of the page's network

        digit = int(np.argmax(expected.max(1) * (labels == 3)))
        paint(page, pixels[digit])
        page.wait_for_function("() => !document.querySelector('#run').disabled")
        page.click("#read-own")
        page.wait_for_selector("#own[data-read='3']")
        assert sum(scores(page)) == pytest.approx(1, abs=1e-5)

        page.click("#samples button:text-is('0')")
        page.wait_for_selector("#own[data-read='0']")
        first = pixels[np.flatnonzero(labels == 0)[0]]
        np.testing.assert_allclose(
            scores(page),
            softmax(logits(weights, first[None] / first.max()))[0],
            atol=1e-3,
        )
        assert_clean(watch)


def test_training_stops_and_starts_again(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.set_default_timeout(1000 * PATIENT_S)
        page.goto(f"{server.url}train.html")
        assert page.is_disabled("#stop")
        assert page.is_disabled("#export")
        found = []
        for _ in range(2):
            page.evaluate("delete globalThis.__result")
            page.evaluate(STOP_SOON)
            page.click("#run:enabled")
            result = await_result(page)
            assert result["ok"], result
            assert result["stopped"]
            found.append(result["losses"][0])
            assert page.is_enabled("#export")
            assert page.is_disabled("#stop")
        assert found[0] == found[1]  # the same network from the beginning
        assert_clean(watch)


KEEP_BLOB = """() => {
  const { createObjectURL } = URL;
  URL.createObjectURL = (blob) => createObjectURL.call(URL, (globalThis.exported = blob));
}"""


def export(page: Page, path: Path) -> Weights:
    """The weights of the exported file, read by this library."""
    if is_firefox():  # of whose downloads Playwright does not know
        page.evaluate(KEEP_BLOB)
        page.click("#export")
        page.wait_for_function("() => globalThis.exported")
        data = page.evaluate(
            "() => exported.arrayBuffer().then((b) => [...new Uint8Array(b)])"
        )
    else:
        with page.expect_download() as download:
            page.click("#export")
        assert download.value.suggested_filename == "digits.safetensors"
        download.value.save_as(path)
        data = list(path.read_bytes())
    weights = {
        name: np.float32(found["values"]).reshape(found["shape"])
        for name, found in page.evaluate(OPEN, data).items()
    }
    assert {name: array.shape for name, array in weights.items()} == {
        "filters.weight": (16, 1, 3, 3),
        "filters.bias": (16,),
        "last.weight": (10, 144),
        "last.bias": (10,),
    }
    return weights


def logits(weights: Weights, pictures: np.ndarray) -> np.ndarray:
    """What the page's network computes, by NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (3, 3), axis=(1, 2))
    found = np.einsum("nyxij,fij->nfyx", windows, weights["filters.weight"][:, 0])
    found = (found + weights["filters.bias"][:, None, None]).clip(0)
    pooled = found.reshape(-1, 16, 3, 2, 3, 2).max(axis=(3, 5)).reshape(-1, 144)
    return pooled @ weights["last.weight"].T + weights["last.bias"]


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def scores(page: Page) -> list[float]:
    rows = page.locator("#scores li").all()
    return [float(row.get_attribute("data-score") or "nan") for row in rows]


def paint(page: Page, cells: np.ndarray) -> None:
    """Draws a digit with the mouse: a stroke along each row's ink."""
    page.click("#clear")
    x, y, width, height = page.locator("#pad").bounding_box().values()  # type: ignore[union-attr]
    for row, ink in enumerate(cells > 7):
        edges = np.flatnonzero(np.diff(np.r_[0, ink, 0]))
        for begin, end in edges.reshape(-1, 2):
            at = y + (row + 1) / 10 * height
            page.mouse.move(x + (begin + 1) / 10 * width, at)
            page.mouse.down()
            page.mouse.move(x + end / 10 * width, at, steps=3)
            page.mouse.up()
