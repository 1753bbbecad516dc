"""One browser for JupyterLite and PyScript."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("outputs")

from browser import open_browser, open_page, where_it_should_be
from crashes import pytest_sessionfinish  # noqa: F401, a hook
from playwright.sync_api import Browser
from serve import Server


@pytest.fixture(scope="session")
def browser(site: Server) -> Iterator[Browser]:
    with open_browser([]) as running:
        with open_page(running, site.url) as (page, _):
            page.goto(site.url)
            where_it_should_be(page)
        yield running


@pytest.fixture(scope="session")
def lite(site: Server) -> str:
    """The address of JupyterLite, as `make serve` has it."""
    return f"{site.url}jupyterlite/"


@pytest.fixture(scope="session")
def site() -> Iterator[Server]:
    """Our site."""
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
