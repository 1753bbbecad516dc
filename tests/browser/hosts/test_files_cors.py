"""Files of another origin, whose server hides headers from pages (CORS): right, or a clear error."""

import gzip
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from browser import open_page
from file_server import npy_header
from playwright.sync_api import Browser
from serve import Server

TESTS = Path(__file__).resolve().parents[2]
COUNT = 100_000
RAW = np.arange(COUNT, dtype="u4").tobytes()
FILES = {"raw": RAW, "npy": npy_header(COUNT) + RAW}

# Chromium refuses an encoding that it did not ask for. Firefox decodes it, and tells its length.
COMPRESSED = r"compresses the file.*open the body of a plain fetch\(\)|Content-Encoding"

OPEN = """
async ([url, options]) => {
  const { open } = await import("/js/open/index.js");
  try {
    const tensor = await open(url, { retries: 0, ...options });
    const has = (first) => tensor.data.every((value, i) => value === first + i);
    const found = ["right", "the second version"].find((_, first) => has(first));
    const whole = tensor.size === 100_000;
    tensor.release();
    return (whole && found) || "wrong elements";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}
"""


class ForeignHandler(BaseHTTPRequestHandler):
    """/HOW/FORMAT: ranges, plain (none), gzip (where none was asked for), parts (at most 10 kB),
    whole (all of it as any range), closed (to other origins), packed (a gzip file, as any other),
    broken (it breaks once), replaced (it breaks, and is another file then)."""

    protocol_version = "HTTP/1.1"
    asked: dict[str, int] = {}  # noqa: RUF012 - of the whole server

    def do_GET(self) -> None:
        how, which = self.path.strip("/").split("/")
        data = FILES[which]
        times = self.asked[self.path] = self.asked.get(self.path, 0) + 1
        if how == "replaced" and times > 1:
            data = data.removesuffix(RAW) + (np.frombuffer(RAW, "u4") + 1).tobytes()
        if how == "packed":
            data = gzip.compress(data)
        asked = self.headers.get("Range", "bytes=0-")
        first, last = asked.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(data)) + 1, len(data))
        if how == "parts":
            end = min(end, start + 10_000)
        ranges = how not in ("plain", "gzip")
        parts = "ranges", "parts", "closed", "packed", "broken", "replaced"
        body = data[start:end] if how in parts else data
        self.send_response(206 if ranges else 200)
        if ranges:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        if how == "gzip":
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        if how != "closed":
            self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        if how in ("broken", "replaced") and times == 1:
            body = body[:200_000]
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


BODY = OPEN.replace("open(url,", "open((await fetch(url)).body,")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A page that may ask other origins; Firefox cannot be told to bypass the usual policy."""
    with Server(mounts={"/tests/": TESTS}, strict=False) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"{running.url}tests/browser/hosts/strict.html"
        running.shutdown()


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ForeignHandler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ranges/npy", "right"),
        ("ranges/raw", "right"),
        ("plain/npy", "right"),
        ("plain/raw", "right"),
        ("gzip/npy", COMPRESSED),
        ("gzip/raw", COMPRESSED),
        ("parts/npy", r"cut off.*Access-Control-Expose-Headers: Content-Range"),
        ("parts/raw", r"sent in parts.*Access-Control-Expose-Headers: Content-Range"),
        ("packed/npy", r"compressed with gzip.*DecompressionStream"),
        ("packed/raw", r"compressed with gzip.*DecompressionStream"),
        ("broken/npy", "right"),
        ("broken/raw", "right"),
        # A browser may drop what came just before the connection broke.
        ("replaced/npy", r"changed while it was read|the second version"),
        ("replaced/raw", r"changed while it was read|the second version"),
        ("closed/npy", r"cannot be reached.*Access-Control-Allow-Origin: http://"),
    ],
)
def test_files_of_another_origin(
    browser: Browser, site: str, foreign: str, path: str, expected: str
) -> None:
    url = f"{foreign}/{path}"
    options = {"dtype": "uint32"} if path.endswith("raw") else {}
    if path.startswith(("broken", "replaced")):
        options["retries"] = 4
    with open_page(browser, site) as (page, _):
        page.goto(site)
        found = page.evaluate(OPEN, [url, options])
    assert re.search(expected, found), found
    if expected != "right" and found != "the second version":
        assert url in found


@pytest.mark.parametrize("path", ["gzip/npy", "plain/raw"])
def test_the_body_of_another_origin(
    browser: Browser, site: str, foreign: str, path: str
) -> None:
    options = {"dtype": "uint32", "shape": [COUNT]} if path.endswith("raw") else {}
    with open_page(browser, site) as (page, _):
        page.goto(site)
        assert page.evaluate(BODY, [f"{foreign}/{path}", options]) == "right"
