"""Runs node tests in a page of Chromium, over onnxruntime-web."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from playwright.sync_api import Page

CHUNK = 50  # tests to a call, so that the host is told now and then


def run(
    page: Page, url: str, provider: str, names: Sequence[str], seconds: float
) -> Iterator[tuple[str, list[str]]]:
    """Each name with what became of it, until so many seconds are over."""
    page.goto(f"{url}tests/models/page.html")
    page.wait_for_function("() => globalThis.nodes")
    end = time.monotonic() + seconds
    for first in range(0, len(names), CHUNK):
        some = names[first : first + CHUNK]
        left = end - time.monotonic()
        if left <= 0:
            return
        outcomes = page.evaluate(
            "([names, provider, seconds]) => nodes.run(names, provider, seconds)",
            [some, provider, left],
        )
        yield from zip(some, outcomes, strict=False)
        if len(outcomes) < len(some):
            return
