"""Files that are made while they are asked for, so that a test may have one of a gigabyte, and what
servers do with them: the path /made/NAME of the test server.

NAME.npy?count=n is an array of uint32, of which element i is i; NAME.safetensors?count=n&tensors=m
has m of these, "0", "1", …, which go on counting. Further: ranges=0: the server has none; cut=n:
the connection breaks after n bytes of each answer, at most times=n times (default 1); etag=new: another one each
time; length=0: how long it is is not said; keep=1: it is made once and kept, as for measurements.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from itertools import count
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from serve import Handler

MADE = "/made/"
PIECE = 4 << 20


def npy_header(elements: int) -> bytes:
    text = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({elements},), }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()


def safetensors_header(elements: int, tensors: int) -> bytes:
    step = 4 * elements
    facts = {
        str(i): {
            "dtype": "U32",
            "shape": [elements],
            "data_offsets": [i * step, (i + 1) * step],
        }
        for i in range(tensors)
    }
    text = json.dumps(facts).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return len(text).to_bytes(8, "little") + text


class MakingHandler(Handler):
    """The handler of the site's server, and those files."""

    cuts: dict[str, int] = {}  # noqa: RUF012 - of the whole server: how often each was cut
    asked: dict[str, int] = {}  # noqa: RUF012 - and asked for
    sent: dict[str, int] = {}  # noqa: RUF012 - and how many bytes
    kept: dict[str, bytes] = {}  # noqa: RUF012
    versions = count()

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        url = urlsplit(self.path)
        if not url.path.startswith(MADE):
            super().do_GET()
            return
        self.asked[self.path] = self.asked.get(self.path, 0) + 1
        self._give(url.path, dict(parse_qsl(url.query)))

    def _give(self, path: str, options: dict[str, str]) -> None:
        elements, tensors = (
            int(options.get(name, "1")) for name in ("count", "tensors")
        )
        suffix = path[path.rindex(".") :] if "." in path else ""
        counted = {".asked": self.asked, ".sent": self.sent}.get(suffix)
        if counted is not None:
            self._send(str(counted.get(options["of"], 0)).encode())
            return
        header = (
            npy_header(elements)
            if path.endswith(".npy")
            else safetensors_header(elements, tensors)
        )
        size = len(header) + 4 * elements * tensors
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, size
        if wanted and options.get("ranges") != "0":
            start = int(wanted[1])
            end = min(int(wanted[2]) + 1, size) if wanted[2] else size
            self.send_response(HTTPStatus.PARTIAL_CONTENT)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        else:
            self.send_response(HTTPStatus.OK)
        self.sent[self.path] = self.sent.get(self.path, 0) + end - start
        new = options.get("etag") == "new"
        self.send_header("ETag", f'"{next(self.versions) if new else 1}"')
        if options.get("length") == "0":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if options.get("keep") == "1":
            if self.path not in self.kept:
                self.kept[self.path] = self._bytes(header, 0, size)
            self.wfile.write(memoryview(self.kept[self.path])[start:end])
            return
        self._write(header, start, end, self._cut(options))

    def _cut(self, options: dict[str, str]) -> float:
        """After how many bytes the connection breaks."""
        if "cut" not in options:
            return float("inf")
        done = self.cuts.get(self.path, 0)
        self.cuts[self.path] = done + 1
        return int(options["cut"]) if done < int(options.get("times", "1")) else 1e99

    def _write(self, header: bytes, start: int, end: int, cut: float) -> None:
        at = start
        while at < end:
            piece = self._bytes(header, at, min(end, at + PIECE))
            if at + len(piece) - start > cut:
                self.wfile.write(piece[: int(cut) - (at - start)])
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(piece)
            at += len(piece)

    @staticmethod
    def _bytes(header: bytes, start: int, end: int) -> bytes:
        if start < len(header):
            rest = len(header), max(end, len(header))
            return header[start:end] + MakingHandler._bytes(header, *rest)
        first, last = ((at - len(header)) // 4 for at in (start, end + 3))
        numbers = np.arange(first, last, dtype="<u4").tobytes()
        skip = (start - len(header)) % 4
        return numbers[skip : skip + end - start]

    def _send(self, body: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
