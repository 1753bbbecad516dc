"""A server of this process for files at URLs: each test says how it answers."""

import re
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STRONG = {"ETag": '"1"'}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site = self.server.site
        name = self.path.partition("?")[0][1:]
        asked = site.asked.setdefault(name, [])
        asked.append(self.headers["Range"])
        self.name, self.time = name, len(asked)
        with suppress(ConnectionError):
            site.answers[name](self)

    def log_message(self, *args):
        pass

    def wanted(self, data):
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers["Range"]).groups()
        return int(first), min(int(last) + 1 if last else len(data), len(data))

    def give(self, data, headers=STRONG, *, ranges=True, cut=None, most=None, **more):
        """Answers as a good server does; cut: breaks off after so many bytes; most: sends at
        most so many. body, status: others. Headers of None are left out."""
        start, end = self.wanted(data) if ranges else (0, len(data))
        end = min(end, start + most) if most else end
        body = more.get("body", data[start:end])
        self.send_response_only(more.get("status", 206 if ranges else 200))
        facts = {"Content-Length": str(end - start)}
        if ranges:
            facts["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        facts |= headers
        for name, value in facts.items():
            if value is not None:
                self.send_header(name, value)
        if facts["Content-Length"] is None:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        self.close_connection = True


class Site:
    def __init__(self):
        self.answers, self.asked = {}, {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.site, self.server.daemon_threads = self, True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(
            target=self.server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def __call__(self, name, answer, *args, **options):
        """A URL that a function answers, or such bytes."""
        if isinstance(answer, bytes):
            data, answer = answer, lambda h: h.give(data, *args, **options)
        self.answers[name], self.asked[name] = answer, []
        return f"{self.origin}/{name}"
