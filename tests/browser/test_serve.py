"""The static server: its headers, its mounts, and a port that is taken."""

from __future__ import annotations

import subprocess
import sys
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from serve import Server

SERVE = Path(__file__).resolve().parents[2] / "web" / "serve.py"


def get(server: Server, path: str) -> HTTPResponse:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_pages_forbid_eval_unless_their_name_allows_it(server: Server) -> None:
    def policy(path: str) -> str:
        return get(server, path).headers["Content-Security-Policy"]

    assert "'wasm-unsafe-eval'" in policy("/demo.html")
    assert "'unsafe-eval'" not in policy("/demo.html")
    assert "'unsafe-eval'" not in policy("/demo.html?x=.eval.html")
    assert "'unsafe-eval'" in policy("/tests/browser/pages/notebook.eval.html")
    assert "'unsafe-eval'" in policy("/notebook/worker.eval.mjs")
    assert "'unsafe-eval'" not in policy("/notebook/")
    assert "'unsafe-inline'" not in policy("/demo.html")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/demo.mjs", "text/javascript"),
        ("/js/index.js", "text/javascript"),
        ("/pyodide/pyodide.asm.wasm", "application/wasm"),
        ("/wheel/wheel.json", "application/json"),
    ],
)
def test_files_have_their_type(path: str, kind: str, server: Server) -> None:
    response = get(server, path)
    assert response.status == 200
    assert response.headers["Content-Type"] == kind
    assert response.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


@pytest.mark.parametrize(
    "path", ["/nothing.html", "/pyodide/", "/../README.md", "/tests/../../README.md"]
)
def test_nothing_else_is_served(path: str, server: Server) -> None:
    assert get(server, path).status == 404


def test_taken_port_says_what_to_do(server: Server) -> None:
    port = str(server.server_port)
    command = [sys.executable, str(SERVE), "--port", port]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert f"Port {port} is taken" in done.stdout
