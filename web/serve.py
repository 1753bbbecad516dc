"""Serve build/site on 127.0.0.1, with the headers that the pages rely on.

- COOP and COEP make pages cross-origin isolated, so that performance.now() has 5 us
  resolution. dlpack-web itself does not need them.
- Pages run under a strict content security policy: no `unsafe-eval`, no inline scripts
  or styles. WebAssembly needs `wasm-unsafe-eval`, nothing else does.
- A video that a reader chooses is a blob of the page: media may come from those.
- What has `.eval.` in its name may also use eval, and workers made of text: a worker
  that runs anybody's cells, pages of PyScript, and one that stands for a notebook host,
  where a plain `import dlpack_web` runs the JavaScript inside the wheel.
- The notebook page shows the HTML of cells, cleaned of scripts: styles and images in it
  are allowed.

Usage: python web/serve.py [--port 8000] [--root build/site]
"""

from __future__ import annotations

import argparse
import errno
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
EVAL_MARK = ".eval."
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{eval}; "
    "style-src 'self'{styles}; img-src 'self' data:; media-src 'self' blob:; "
    "worker-src 'self'{workers}; "
    "object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


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
        self, *args: object, mounts: dict[str, Path], strict: bool, **kwargs: object
    ):
        self.mounts = mounts
        self.strict = strict
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        site = self.directory
        for prefix, folder in self.mounts.items():
            if path.startswith(prefix):
                self.directory, path = str(folder), path.removeprefix(prefix[:-1])
                break
        try:
            return super().translate_path(path)
        finally:
            self.directory = site  # this object answers all requests of a connection

    def end_headers(self) -> None:
        if self.strict:
            page = self.page()
            evaluates = EVAL_MARK in page
            allow = {
                "eval": " 'unsafe-eval'" if evaluates else "",
                "workers": " blob:" if evaluates else "",
                "styles": " 'unsafe-inline'" if page.startswith("/notebook/") else "",
            }
            self.send_header("Content-Security-Policy", POLICY.format(**allow))
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def page(self) -> str:
        # A malformed request line is answered before there is a path.
        return urlsplit(getattr(self, "path", "")).path

    def list_directory(self, path: object) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: the browser's own tools show each request."""


class Server(ThreadingHTTPServer):
    """The site, with further folders mounted under URL prefixes such as "/tests/".

    strict: with the headers above, which JupyterLite cannot live with.
    """

    daemon_threads = True

    def __init__(
        self,
        root: Path = SITE,
        port: int = 0,
        mounts: dict[str, Path] | None = None,
        *,
        strict: bool = True,
    ):
        handler = partial(
            Handler, directory=str(root), mounts=mounts or {}, strict=strict
        )
        super().__init__(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        # A tab that is closed half-way through a download is no error of ours.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the built site.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--root", type=Path, default=SITE)
    args = parser.parse_args()
    if not (args.root / "index.html").is_file():
        print(f"There is no site in {args.root}: build it with `make serve`.")
        return 1
    try:
        server = Server(args.root, args.port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        print(
            f"Port {args.port} is taken, perhaps by another `make serve`: stop that "
            f"one, or run `python web/serve.py --port {args.port + 1}`."
        )
        return 1
    with server:
        print(f"Serving http://localhost:{args.port}/ (Ctrl+C stops it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
