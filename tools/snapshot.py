#!/usr/bin/env python3
"""Keeps the memory of a Python that has started, for web/site/start.mjs.

Usage: snapshot.py FOLDER FILE; FOLDER has Pyodide. Chromium makes it, because the memory
says whether JavaScript can suspend WebAssembly, which Node cannot. Without a Chromium there
is no FILE, and pages start Python from nothing.
"""

from __future__ import annotations

import base64
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "web"))

from browser import BrowserMissingError, open_browser, open_page
from serve import Server

MAKE = """async () => {
  const { loadPyodide } = await import("/pyodide.mjs");
  const pyodide = await loadPyodide({ _makeSnapshot: true });
  const memory = new Blob([pyodide.makeMemorySnapshot()]);
  const packed = memory.stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}"""


def snapshot(folder: Path) -> bytes:
    server = Server(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with open_browser() as browser, open_page(browser, server.url) as (page, _):
            page.goto(f"{server.url}package.json")
            return base64.b64decode(page.evaluate(MAKE))
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    folder, file = map(Path, sys.argv[1:])
    file.unlink(missing_ok=True)
    try:
        file.write_bytes(snapshot(folder))
    except BrowserMissingError as error:
        print(f"No memory of a started Python is kept: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
