"""One browser and one server for the tests of the documentation, which `make docs` has built."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from browser import Watch, open_browser, open_page, where_it_should_be
from crashes import pytest_sessionfinish  # noqa: F401, a hook
from playwright.sync_api import Browser, Page
from serve import SITE, Server

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if not (SITE / "docs" / "index.html").is_file():
        pytest.fail(
            "the documentation is not built: run `make suite NAME=docs`, which does it"
        )
    yield from serving(Server())


@pytest.fixture(scope="session")
def open_server() -> Iterator[Server]:
    """The site, where Python may ask other hosts."""
    yield from serving(Server(outside=True))


def serving(server: Server) -> Iterator[Server]:
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def browser(server: Server) -> Iterator[Browser]:
    with open_browser() as running:
        with open_page(running, server.url) as (page, _):
            page.goto(server.url)
            where_it_should_be(page)
        yield running


@pytest.fixture
def open_docs(
    browser: Browser, server: Server
) -> Iterator[Callable[..., tuple[Page, Watch]]]:
    """Open a page of the documentation; it must not complain."""
    with ExitStack() as stack:
        watches = []

        def start(
            name: str = "index.html", script: str = "", **options: object
        ) -> tuple[Page, Watch]:
            page, watch = stack.enter_context(
                open_page(browser, server.url, **options)  # type: ignore[arg-type]
            )
            if script:
                page.add_init_script(script)
            watches.append(watch)
            page.goto(f"{server.url}docs/{name}")
            return page, watch

        yield start
        assert [line for watch in watches for line in watch.complaints()] == []
