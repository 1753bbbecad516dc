"""Serve build/site on 127.0.0.1, with the headers that the pages rely on.

- COOP and COEP make pages cross-origin isolated, for performance.now() with a
  resolution of 5 us. dlpack-web itself does not need them.
- Pages run under a strict content security policy: no `unsafe-eval`, no inline scripts
  or styles. WebAssembly needs `wasm-unsafe-eval`, nothing else does.
- Media may come from blobs of the page, for videos that the reader chooses.
- Files with `.eval.` in their name may also use eval, and workers made of text: a worker
  that runs the documentation's blocks, pages of PyScript, and a page that acts as a notebook
  host, where `import dlpack_web` runs the JavaScript inside the wheel. Paths must be
  written plainly: those with `..`, `//` or double encoding are not found.
- JupyterLite, which is not ours, gets the policy that it needs and is not isolated.
- Requests to other hosts are blocked. --outside allows Python's, for %pip install.
- --build runs a command, which builds the site. Until it ends, pages that are missing show
  what is being built, and reload.

Usage: python web/serve.py [--port 8000] [--root build/site] [--outside] [--build "make …"]
"""

from __future__ import annotations

import argparse
import errno
import re
import shlex
import signal
import subprocess
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
SHARED = ROOT / "web" / "site"
# While the site is being built: a part, its address, and what is there when it is built.
PARTS = (
    ("Demo", "demo.html", "demo.html"),
    ("Start page", "live.html", "model"),
    ("JupyterLite", "jupyterlite/", "jupyterlite"),
    ("Documentation", "docs/", "docs"),
)
EVAL_MARK = ".eval."
LITE = "/jupyterlite/"
REST = "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
OUR_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{eval}; "
    "style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "worker-src 'self'{workers}; connect-src 'self'{outside}; " + REST + "'none'"
)
LITE_POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' "
    "blob: data:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; "
    "connect-src 'self' data: blob:{outside}; " + REST + "'self'"
)
ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


def plain_path(target: str) -> str | None:
    """The decoded path of a request; None unless it is written plainly.

    The policy depends on the path, so each file must have only one path.
    """
    path = unquote(re.split(r"[?#]", target, maxsplit=1)[0], errors="strict")
    odd = re.search(r"[\\%\0?#]|//|/\.{1,2}(/|$)", path)
    return None if odd or not path.startswith("/") else path


def headers_of(path: str, *, outside: bool) -> dict[str, str]:
    """Policy and isolation for a path."""
    more = " https:" if outside else ""
    if path.startswith(LITE):
        return {"Content-Security-Policy": LITE_POLICY.format(outside=more)}
    evaluates = EVAL_MARK in path.rpartition("/")[2]
    policy = OUR_POLICY.format(
        eval=" 'unsafe-eval'" if evaluates else "",
        workers=" blob:" if evaluates else "",
        outside=more if evaluates else "",
    )
    return {"Content-Security-Policy": policy} | ISOLATED


class Build:
    """A command that builds the site in `root` while it is served."""

    def __init__(self, command: str, root: Path):
        self.root = root
        self.process = subprocess.Popen(shlex.split(command), cwd=ROOT)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def missing(self) -> list[str]:
        """Names of the parts that are not there yet."""
        return [name for name, _, file in PARTS if not (self.root / file).exists()]

    def page(self) -> str:
        """What is shown in place of a page that is not there yet."""
        missing = self.missing()
        rows = "".join(
            f"<li>{name}: is being built</li>"
            if name in missing
            else f'<li><a href="/{address}">{name}</a></li>'
            for name, address, _ in PARTS
        )
        template = (SHARED / "building.html").read_text("utf-8")
        return template.replace("<li></li>", rows)


class Handler(SimpleHTTPRequestHandler):
    """Static files from `directory`, and from the folders mounted under a prefix."""

    protocol_version = "HTTP/1.1"  # keeps connections open: a page fetches many files
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".json": "application/json",
        ".md": "text/plain; charset=utf-8",
        ".wasm": "application/wasm",
        ".whl": "application/zip",
    }

    def __init__(
        self,
        *args: object,
        mounts: dict[str, Path],
        strict: bool,
        outside: bool = False,
        **kwargs: object,
    ):
        self.mounts = mounts
        self.strict = strict
        self.outside = outside
        self.failed = False
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        site = self.directory
        for prefix, folder in self.mounts.items():
            if path.startswith(prefix):
                self.directory, path = str(folder), path.removeprefix(prefix[:-1])
                break
        try:
            found = super().translate_path(path)
        finally:
            self.directory = site  # one object answers all requests of a connection
        # What the page of a build needs.
        if getattr(self.server, "build", None) and path in ("/style.css", "/icon.svg"):
            return str(SHARED / path[1:])
        return found

    def send_head(self) -> Any:
        self.failed = False  # one object answers all requests of a connection
        try:
            plain = plain_path(self.path)
        except UnicodeDecodeError:
            plain = None
        if plain is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        build: Build | None = getattr(self.server, "build", None)
        if build and build.is_running() and self.waits_for(plain, build):
            self.send_page(HTTPStatus.SERVICE_UNAVAILABLE, build.page(), reload=2)
            return None
        return super().send_head()

    def waits_for(self, path: str, build: Build) -> bool:
        """Whether the request is for a page that is not there yet."""
        if "text/html" not in self.headers.get("Accept", ""):
            return False
        missing = build.missing()
        if path == "/" and missing:
            return True
        folders = [f"/{address}" for name, address, _ in PARTS if name in missing]
        if any(path.startswith(each) for each in folders if each.endswith("/")):
            return True
        return not Path(self.translate_path(self.path)).exists()

    def send_page(self, code: int, text: str, reload: int = 0) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if reload:
            self.send_header("Refresh", str(reload))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, *rest: Any, **more: Any) -> None:
        """Errors get the strictest policy; for 404 there is a page."""
        self.failed = True
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, *rest, **more)
            return
        self.send_page(code, page.read_text("utf-8"))

    def end_headers(self) -> None:
        if self.strict:
            # A malformed request line is answered before its path is known.
            path = None if self.failed else plain_path(getattr(self, "path", ""))
            for name, value in headers_of(path or "", outside=self.outside).items():
                self.send_header(name, value)
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: object) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the browser's own tools show each request."""


class Server(ThreadingHTTPServer):
    """The site, with further folders mounted under URL prefixes such as "/tests/".

    strict: with the headers above. outside: Python may send requests to other hosts.
    handler: the request handler, for tests that need more.
    """

    daemon_threads = True
    build: Build | None = None

    def __init__(
        self,
        root: Path = SITE,
        port: int = 0,
        mounts: dict[str, Path] | None = None,
        *,
        strict: bool = True,
        outside: bool = False,
        handler: type[Handler] = Handler,
    ):
        handling = partial(
            handler,
            directory=str(root),
            mounts=mounts or {},
            strict=strict,
            outside=outside,
        )
        super().__init__(("127.0.0.1", port), handling)

    def follow(self, build: Build | None) -> None:
        """Until the build ends, missing pages show what is being built."""
        self.build = build

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        # Closing a tab during a download is not our error.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def port(text: str) -> int:
    """ValueError for what is not the number of a port."""
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise ValueError(text)
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the built site.")
    parser.add_argument("--port", type=port, default=8000, help="0: a free one")
    parser.add_argument("--root", type=Path, default=SITE)
    parser.add_argument(
        "--outside",
        action="store_true",
        help="allow Python in notebooks to request other hosts (https): %%pip install",
    )
    parser.add_argument("--build", metavar="COMMAND", help="builds the site meanwhile")
    args = parser.parse_args()
    if not args.build and not (args.root / "index.html").is_file():
        print(f"There is no site in {args.root}: build it with `make serve`.")
        return 1
    try:
        # Taken before the build begins, which may take minutes.
        server = Server(args.root, args.port, outside=args.outside)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        print(
            f"Port {args.port} is taken, perhaps by another `make serve`: stop that "
            f"one, or run `make serve PORT={args.port + 1}`."
        )
        return 1
    with server:
        return serve(server, args.build, args.root)


def serve(server: Server, command: str | None, root: Path) -> int:
    """Serves until Ctrl+C, or until the command fails."""
    build = Build(command, root) if command else None
    server.follow(build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(
        f"Serving http://localhost:{server.server_port}/ (Ctrl+C stops it)", flush=True
    )

    def wait() -> None:
        if build and build.process.wait() != 0:
            print("The build failed, so there is nothing more to serve.", flush=True)
            server.shutdown()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
        return 0
    finally:
        if build and build.is_running():
            build.process.terminate()
            build.process.wait()
    return 1  # only a build that failed shuts it down


if __name__ == "__main__":
    sys.exit(main())
