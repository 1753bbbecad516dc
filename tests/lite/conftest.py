"""One browser for the notebooks: those of JupyterLite and those of our own page."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "web"))

from browser import open_browser
from notebooks import LITE
from serve import Server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser([]) as running:
        yield running


@pytest.fixture(scope="session")
def lite() -> Iterator[Server]:
    """The JupyterLite site."""
    yield from serving(Server(LITE, strict=False))


@pytest.fixture(scope="session")
def site() -> Iterator[Server]:
    """Our site, with the notebook page."""
    yield from serving(Server())


def serving(server: Server) -> Iterator[Server]:
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
