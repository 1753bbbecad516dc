"""Servers as those of users are, and what a page there says of the wheel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from browser import open_page
from playwright.sync_api import Browser
from serve import Handler, Server

ENTRIES = ["function"] * 4


class SinglePageHandler(Handler):
    """What is not there is the start page, as servers of applications have it."""

    def translate_path(self, path: str) -> str:
        file = super().translate_path(path)
        return file if Path(file).exists() else super().translate_path("/index.html")


@contextmanager
def single_page_site(root: Path) -> Iterator[str]:
    handler = partial(SinglePageHandler, directory=str(root), mounts={}, strict=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        yield from _running(server)


@contextmanager
def site(root: Path, mounts: dict[str, Path]) -> Iterator[str]:
    with Server(root=root, mounts=mounts) as server:
        yield from _running(server)


def _running(server: ThreadingHTTPServer) -> Iterator[str]:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def says(browser: Browser, url: str) -> str:
    """The result of a page, once it has one."""
    with open_page(browser, url) as (page, watch):
        page.goto(url)
        page.wait_for_selector("#out:not(:has-text('…'))")
        assert [x for x in watch.complaints() if "favicon" not in x] == []
        return page.inner_text("#out")


def found(browser: Browser, url: str, options: str = "{}") -> str:
    """The hash of the wheel that connect() finds on a page, or its error."""
    origin = "/".join(url.split("/")[:3])
    with open_page(browser, origin) as (page, watch):
        page.goto(url)
        page.wait_for_function("() => typeof globalThis.found === 'function'")
        assert page.evaluate("globalThis.entries") in (None, ENTRIES)
        result: str = page.evaluate(f"found({options})")
        # What connect() tried in vain, the browser tells as well.
        told = "Failed to load resource"
        assert [it for it in watch.complaints() if not it.startswith(told)] == []
    return result
