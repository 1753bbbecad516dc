"""The static server: its headers, its mounts, and a port that is taken."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from serve import Server

SERVE = Path(__file__).resolve().parents[3] / "web" / "serve.py"


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
    assert "'unsafe-eval'" in policy("/tests/browser/hosts/notebook.eval.html")
    assert "'unsafe-eval'" in policy("/pyscript.eval.html")
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


# Ways to ask for a page by a path that has the mark somewhere, or for the worker by one that
# is not its own.
TRICKS = [
    "/.eval./../demo.html",
    "/x.eval.js/../demo.html",
    "/pyscript.eval.html/../demo.html",
    "/demo.html/.eval.mjs",
    "/demo.html/x.eval.mjs/..",
    "/demo.html;.eval.mjs",
    "/demo.html?.eval.mjs",
    "/demo.html?/.eval.mjs",
    "/demo.html#.eval.mjs",
    "/demo.html#/.eval.mjs",
    "/demo.html%3F.eval.mjs",
    "/demo.html%23.eval.mjs",
    "/demo.html%00.eval.mjs",
    "/%2eeval%2e/%2e%2e/demo.html",
    "/x.eval.x%2f..%2fdemo.html",
    "/x.eval.x%2f%2e%2e%2fdemo.html",
    "/x.eval.x%5c..%5cdemo.html",
    "/x.eval.x\\..\\demo.html",
    "/%252eeval%252e/../demo.html",
    "/%c0%ae%c0%ae/x.eval.",
    "/%ff.eval.html",
    "//x.eval.x/../demo.html",
    "/./demo.html",
    "/.//demo.html",
    "/x.eval.html/",
    "/demo.html/",
    "/.eval./demo.html",
    "/jupyterlite/../demo.html",
    "/jupyterlite/%2e%2e/demo.html",
    "/jupyterlite/..%2fdemo.html",
    "/jupyterlite//../demo.html",
    "http://localhost/x.eval.html",
    "demo.html/.eval.",
    "*",
]


def raw(server: Server, line: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request written by hand."""
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as peer:
        peer.sendall(
            f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n".encode("latin-1")
        )
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    fields = (each.split(": ", 1) for each in lines)
    return int(status.split()[1]), {name.lower(): value for name, value in fields}, body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", TRICKS)
def test_no_trick_gets_a_page_another_policy(
    path: str, method: str, server: Server
) -> None:
    status, headers, _ = raw(server, f"{method} {path} HTTP/1.1")
    policy = headers["content-security-policy"]
    assert "'unsafe-eval'" not in policy
    assert "'unsafe-inline'" not in policy
    assert status in (200, 400, 404)
    # What is found that way is what has that policy by its own name.
    assert status != 200 or path.startswith(("/demo.html?", "/demo.html#"))


def test_errors_are_as_strict_as_can_be(server: Server) -> None:
    for line in (
        "GET /no.eval.html HTTP/1.1",
        "BREW /x.eval.html HTTP/1.1",
        "GET * HTTP/1.1",
    ):
        _, headers, _ = raw(server, line)
        assert "'unsafe-eval'" not in headers["content-security-policy"], line


def test_policy_of_one_answer_is_not_that_of_the_next(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    for path, allowed in (
        ("/pyscript.eval.html", True),
        ("/demo.html", False),
        ("/nothing.eval.html", False),
        ("/pyscript.eval.html", True),
    ):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        policy = response.headers["Content-Security-Policy"]
        assert ("'unsafe-eval'" in policy) == allowed, path
    connection.close()


def test_only_python_asks_outside_and_only_if_it_may(server: Server) -> None:
    paths = ("/demo.html", "/pyscript.eval.html", "/jupyterlite/x")

    def may(which: Server) -> list[bool]:
        policies = [
            get(which, path).headers["Content-Security-Policy"] for path in paths
        ]
        return ["https:" in policy for policy in policies]

    assert may(server) == [False] * 3
    with Server(outside=True) as open_one:
        threading.Thread(target=open_one.serve_forever, daemon=True).start()
        assert may(open_one)[:2] == [False, True]
        open_one.shutdown()


def test_missing_page_says_so(server: Server) -> None:
    for path in ("/nothing.html", "/deep/in/nothing"):
        status, headers, body = raw(server, f"GET {path} HTTP/1.1")
        assert status == 404
        assert b"Page not found" in body
        assert headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["/nothing.html", "/pyodide/", "/../README.md", "/tests/../../README.md"]
)
def test_nothing_else_is_served(path: str, server: Server) -> None:
    assert get(server, path).status == 404


def test_taken_port_says_what_to_do(server: Server) -> None:
    port = str(server.server_port)
    command = [sys.executable, str(SERVE), "--port", port]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert f"Port {port} is taken" in done.stdout
    assert f"make serve PORT={int(port) + 1}" in done.stdout


@pytest.mark.parametrize("port", ["-1", "65536", "eighty", "80.5", ""])
def test_number_of_a_port_is_checked(port: str) -> None:
    command = [sys.executable, str(SERVE), f"--port={port}"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert f"invalid port value: '{port}'" in done.stderr


def test_port_0_is_a_free_one() -> None:
    command = [sys.executable, str(SERVE), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            said = running.stdout.readline()
            found = re.search(r"http://localhost:(\d+)/", said)
            assert found, said
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=60):
                pass
        finally:
            running.terminate()


def page_of(port: int, path: str, accept: str = "text/html") -> tuple[int, str, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Accept": accept})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text, response.headers.get("Refresh", "")


def building(root: Path, script: str) -> subprocess.Popen[str]:
    build = shlex.join([sys.executable, "-c", script])
    command = [sys.executable, str(SERVE), "--port=0", f"--root={root}"]
    return subprocess.Popen(
        [*command, f"--build={build}"], stdout=subprocess.PIPE, text=True
    )


def port_of(running: subprocess.Popen[str]) -> int:
    assert running.stdout is not None
    found = re.search(r"http://localhost:(\d+)/", running.stdout.readline())
    assert found
    return int(found[1])


def test_pages_that_are_being_built_say_so(tmp_path: Path) -> None:
    """The build waits for a file, so the test does not depend on times."""
    root, go_on = tmp_path / "site", tmp_path / "go-on"
    wait = f"""
import pathlib, time
root = pathlib.Path({str(root)!r})
root.mkdir()
(root / "demo.html").write_text("the demo")
print("begun", flush=True)
while not pathlib.Path({str(go_on)!r}).exists():
    time.sleep(0.05)
for name in "model", "jupyterlite", "docs":
    (root / name).mkdir()
(root / "index.html").write_text("the start page")
print("ended", flush=True)"""
    with building(root, wait) as running:
        try:
            assert running.stdout is not None
            port = port_of(running)
            assert running.stdout.readline() == "begun\n"
            for path in ("/", "/docs/", "/docs/howto/install.html", "/jupyterlite/"):
                status, text, refresh = page_of(port, path)
                assert (status, refresh) == (503, "2"), path
                assert "Documentation: is being built" in text
                assert '<a href="/demo.html">Demo</a>' in text
            assert page_of(port, "/demo.html")[:2] == (200, "the demo")
            assert page_of(port, "/docs/x.mjs", "*/*")[0] == 404
            assert page_of(port, "/style.css", "text/css")[0] == 200
            go_on.touch()
            assert running.stdout.readline() == "ended\n"
            while (missing := page_of(port, "/nothing.html")[0]) == 503:
                pass  # its process has not ended yet
            assert missing == 404
            assert page_of(port, "/")[:2] == (200, "the start page")
        finally:
            running.terminate()


def test_a_build_that_fails_ends_the_server(tmp_path: Path) -> None:
    with building(tmp_path, "raise SystemExit(3)") as running:
        port_of(running)
        assert running.stdout is not None
        assert "The build failed" in running.stdout.read()
    assert running.returncode == 1


def test_the_build_ends_with_the_server(tmp_path: Path) -> None:
    forever = "import os, time; print(os.getpid(), flush=True); time.sleep(3600)"
    with building(tmp_path, forever) as running:
        lines = [running.stdout.readline() for _ in range(2)]  # type: ignore[union-attr]
        (pid,) = (int(line) for line in lines if line.strip().isdigit())
        running.terminate()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
