"""The package in Next.js, built by Turbopack and by webpack: the server renders with it, and the
page finds the wheel. `make suite NAME=bundlers`; not collected by itself."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bundlers import free_port
from playwright.sync_api import Browser
from projects import install, lay_out
from sites import found

# No usage data goes anywhere.
ENVIRONMENT = os.environ | {"NEXT_TELEMETRY_DISABLED": "1", "NO_COLOR": "1"}
BUILDERS = {"turbopack": "--turbopack", "webpack": "--webpack"}


@pytest.fixture(scope="session")
def next_project() -> Path:
    folder = install("bundlers")
    lay_out(folder / "app", "nextjs/app")
    lay_out(folder, "wheel/found.js")
    return folder


def next_of(project: Path, *arguments: str) -> list[str]:
    return [
        "node",
        str(project / "node_modules" / "next" / "dist" / "bin" / "next"),
        *arguments,
    ]


@contextmanager
def serving(project: Path, *arguments: str) -> Iterator[str]:
    """`next start` or `next dev` on a free port, until it answers, and the end of it."""
    port = str(free_port())
    with subprocess.Popen(
        next_of(project, *arguments, "--hostname", "127.0.0.1", "--port", port),
        cwd=project,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout
        log = []
        try:
            for line in server.stdout:
                log.append(line)
                if "Ready in" in line:
                    break
            else:
                pytest.fail("".join(log))
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


@pytest.mark.parametrize("builder", BUILDERS)
def test_nextjs(
    builder: str, next_project: Path, browser: Browser, wheel_hash: str
) -> None:
    done = subprocess.run(
        next_of(next_project, "build", BUILDERS[builder]),
        cwd=next_project,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with serving(next_project, "start") as url:
        assert_rendered(url)
        assert found(browser, url) == wheel_hash


def test_nextjs_while_developing(
    next_project: Path, browser: Browser, wheel_hash: str
) -> None:
    with serving(next_project, "dev") as url:
        assert_rendered(url)
        assert found(browser, url) == wheel_hash


def assert_rendered(url: str) -> None:
    """What the server made of both components, before any script runs."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    assert '<p id="server">Tensor float32[2,3] on cpu false</p>' in text
    assert '<p id="client">Tensor is a function</p>' in text
