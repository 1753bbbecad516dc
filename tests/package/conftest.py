from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BrowserMissingError, open_browser
from crashes import pytest_sessionfinish  # noqa: F401, a hook
from playwright.sync_api import Browser
from projects import install, shipped_wheel


@pytest.fixture(scope="session")
def project() -> Path:
    """A project with compilers, bundlers and the tarball in node_modules."""
    return install("tools", "--omit=dev")


@pytest.fixture(scope="session")
def wheel_hash(project: Path) -> str:
    """What `found()` of wheel/found.js says where all is well."""
    return hashlib.sha256(shipped_wheel(project).read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with open_browser() as running:
            yield running
    except BrowserMissingError as error:
        pytest.fail(str(error), pytrace=False)
