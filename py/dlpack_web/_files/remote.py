"""Files at URLs, on the desktop, by the rules of js/src/open (http.ts, request.ts, retries.ts,
joint.ts). Pyodide's wheel lacks this module: JavaScript reads URLs there.

All answers must be of one version of the file, by ETag, date and size. If no strong validator
identifies it, what an interrupted read has is requested again, and compared. The answer of a server
without ranges is kept in a temporary file.
"""

import asyncio
import io
import re
import socket
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar, copy_context
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPException
from itertools import islice
from typing import Any, NamedTuple
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit
from weakref import proxy

from .. import _core
from .._layout.text import bounded
from .headers import Entry, malformed, nbytes_of
from .local import PIECE, Memory, Reading, Stream
from .parts import Block, Part, blocks_of

# As in JavaScript: retries without progress, in all, seconds before the first and at most.
_RETRIES, _IN_ALL, _FIRST, _LONGEST = 4, 64, 0.1, 5.0
_PASSING = 408, 425, 429, 500, 502, 503, 504
_UNCOUNTED = 4 << 20  # bytes of a request whose answers do not say how many they have
_LEAST = 4096  # a server that sends fewer is asked again after a pause
_BEGIN = 1 << 17  # bytes of the first request for a file of which only some are read
_HEAD = 4096  # its first bytes, which are kept
_AHEAD = 1 << 14  # bytes of the first request at another place of an archive
_OVERLAP = 2048  # bytes that are compared where an answer ends, and the next one begins
_OVERHEAD = 1 << 16  # bytes that take as long as one more request
_WASTE = 1 << 20  # bytes read in vain for a small part
_REQUESTS = 128  # for one part
_CHUNK = 1 << 18
_ALL = 1 << 62
_TIMEOUT = 60  # seconds without a byte, after which a connection counts as lost
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")


class _BrokenError(Exception):
    """A lost connection, or a server that is temporarily unavailable."""


# --- waiting --------------------------------------------------------------------------------


class _Work:
    """A call in a thread, and the socket that it waits for."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.socket: Any = None

    def stop(self) -> None:
        self.stopped.set()
        if self.socket is not None:
            with suppress(OSError):  # it ended
                self.socket.shutdown(socket.SHUT_RDWR)


_WORK: ContextVar[_Work | None] = ContextVar("dlpack_web_work", default=None)


async def off(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function that waits for a server, in a thread if other tasks can run
    meanwhile. The thread has ended when this returns: cancelling closes its connection."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return function(*args)
    work, context = _Work(), copy_context()
    context.run(_WORK.set, work)
    done = loop.run_in_executor(None, context.run, function, *args)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            work.stop()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done], timeout=0.1)
        done.exception()
        del done  # its traceback has memory, and the traceback of this has the frame
        raise


class _Handler(request.HTTPSHandler, request.HTTPHandler):
    """Opens connections, of which it knows the socket: urllib leaves it to the answer."""

    socket: Any = None

    def do_open(self, http_class: Any, req: Any, **http_conn_args: Any) -> Any:
        def made(*args: Any, **options: Any) -> Any:
            connection = http_class(*args, **options)
            connect = connection.connect

            def connecting() -> None:
                connect()
                self.socket = connection.sock
                _use(self.socket)

            connection.connect = connecting
            return connection

        return super().do_open(made, req, **http_conn_args)


@cache
def _context() -> ssl.SSLContext:
    """Reads the system's certificates once."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _use(sock: Any) -> None:
    """Lets `stop` end a read of this thread."""
    if work := _WORK.get():
        work.socket = sock
        if work.stopped.is_set():
            raise _BrokenError


# --- answers --------------------------------------------------------------------------------


class _Version(NamedTuple):
    etag: str | None
    modified: str | None
    size: int | None
    strong: str | None  # a validator that no other bytes have (RFC 9110, 8.8)


class _Answer:
    """The bytes of a file from `at` up to `end` (None: unknown)."""

    def __init__(self, body: Any, sock: Any, at: int, end: int | None) -> None:
        self.body, self._socket, self.start, self.at, self.end = body, sock, at, at, end
        self.ranges, self.counted = True, True
        self.version = _Version(None, None, None, None)

    def read(self, count: int) -> bytes:
        """At most so many; b"" at the end."""
        _use(self._socket)
        count = min(count, _CHUNK, (self.end or _ALL) - self.at)
        data: bytes = self.body.read1(count) if count else b""
        self.at += len(data)
        if count and not data and self.end is not None:
            raise _BrokenError(f"the answer ended after byte {self.at} of {self.end}")
        return data


def _ask(url: str, name: str, start: int, end: int | None) -> tuple[_Answer, str]:
    """An answer, and its media type."""
    wanted = f"bytes={start}-{'' if end is None else end - 1}"
    opener, handler = request.OpenerDirector(), _Handler(context=_context())
    for each in (
        request.ProxyHandler(),
        handler,
        request.HTTPDefaultErrorHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(each)
    headers = {"Range": wanted, "User-Agent": "dlpack-web"}
    try:
        body = opener.open(request.Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if (
            error.code == 416
            and start == 0
            and error.headers["content-range"] == "bytes */0"
        ):
            nothing = _Answer(io.BytesIO(), None, 0, 0)
            nothing.version = nothing.version._replace(size=0)
            return nothing, ""
        what = f"{name}: {error.code} {error.reason}"
        if error.code in _PASSING:
            raise _BrokenError(what) from None
        raise BufferError(bounded(what)) from None
    try:
        return _described(body, handler.socket, name, start, wanted)
    except BaseException:
        body.close()
        raise


def _described(
    body: Any, sock: Any, name: str, start: int, wanted: str
) -> tuple[_Answer, str]:
    headers, length = body.headers, body.length
    encoding = headers["content-encoding"] or "identity"
    if encoding.lower() != "identity":
        malformed(
            name,
            f"the server sends it compressed (Content-Encoding: {encoding}), which was not "
            "requested: have it send the file as it is",
        )
    if body.status not in (200, 206):
        malformed(name, f"{body.status} {body.reason}")
    if body.status == 206:
        given = headers["content-range"]
        match = _RANGE.fullmatch(given or "")
        first, last, size = map(int, match.groups()) if match else (-1, -1, 0)
        if (
            first != start
            or not first <= last < size
            or length not in (None, last + 1 - first)
        ):
            malformed(
                name,
                f'the server was asked for {wanted} and says that it sends "{given}", '
                f"{length} bytes",
            )
        answer = _Answer(body, sock, start, last + 1)
    else:
        answer, size = _Answer(body, sock, 0, length), length
        answer.ranges = False
    answer.counted = length is not None
    etag, modified = headers["etag"], headers["last-modified"]
    strong = modified if _age(headers) >= 1 else None
    if etag and not etag.startswith("W/"):
        strong = etag
    answer.version = _Version(etag and etag.removeprefix("W/"), modified, size, strong)
    return answer, headers["content-type"] or ""


def _age(headers: Any) -> float:
    """Seconds since a file was modified: within the same second, it may be again."""
    with suppress(TypeError, ValueError):
        date, modified = (
            parsedate_to_datetime(headers[each]) for each in ("date", "last-modified")
        )
        return (date - modified).total_seconds()
    return 0


# --- files ----------------------------------------------------------------------------------


def open_url(url: str, few: bool) -> "Remote | Memory":
    """few: whether only some bytes are read."""
    scheme, to = url.partition(":")[0].lower(), urlsplit(url)
    if scheme == "data":
        with request.urlopen(url) as found:
            return Memory(memoryview(found.read()), "the data: URL")
    if scheme not in ("http", "https") or not to.hostname or to.username is not None:
        raise BufferError(
            f"open() does not read this URL here, which begins with {scheme}: give one of http or "
            "https with a host and no user's name, or a path"
        )
    path, query = (quote(each, "/%:@!$&'()*+,;=?") for each in (to.path, to.query))
    return Remote(to._replace(path=path, query=query, fragment="").geturl(), few)


class Remote:
    """A file at a URL. The first request is made when something is read."""

    remote = True

    def __init__(self, url: str, few: bool) -> None:
        self._url, self._few = url, few
        self.name = url.partition("?")[0][:500]  # a query may have a password
        self._lock, self.closed, self._size = threading.RLock(), False, -1
        self._version: _Version | None = None
        self._front: _Span | None = None  # what comes next of a request that goes on
        self._runs: list[tuple[int, int]] = []
        self._spool: Any = None
        self._head, self.content_type, self.ranges = b"", "", True
        self._small = io.BufferedReader(_View(proxy(self), 0, _AHEAD))

    @property
    def size(self) -> int:
        with self._lock:
            if self._size < 0:
                self._begin()
            return self._size

    @property
    def unversioned(self) -> bool:
        return not (self._version and self._version.strong)

    def _begin(self) -> None:
        self._front = front = _Span(proxy(self), 0, _BEGIN if self._few else None)
        answer = front.retrying(front.asked)
        self.ranges, size = answer.ranges, answer.version.size
        front.end = size
        if not self.ranges:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
            size = self._kept(_ALL) if size is None else size
        elif self._few:
            front.end = min(_BEGIN, size)
        while self.ranges and len(self._head) < _HEAD and (data := front.read(_HEAD)):
            self._head += data
        self._size = size

    def _kept(self, stop: int) -> int:
        """How much of a file without ranges is in the temporary file: at least so much."""
        at: int = self._spool.seek(0, io.SEEK_END)
        while at < stop and (data := self._front and self._front.read(stop - at)):
            at += self._spool.write(data)
        return at

    def read(self, start: int, count: int) -> bytes:
        stop = min(start + count, self.size)
        if start >= stop:
            return b""
        with self._lock:
            self._small.seek(start)
            return self._small.read(stop - start)

    def part(self, at: int, count: int) -> bytes:
        """Bytes that are here, at most so many; b"": none."""
        if self._spool is None:
            return self._head[at : at + count]
        with self._lock:
            self._kept(min(at + count, self._size))
            self._spool.seek(at)
            data: bytes = self._spool.read(count)
            return data

    @contextmanager
    def reading(self, entry: Entry) -> Iterator[Reading]:
        end = entry.start + entry.nbytes
        runs = (
            stop for at, stop in self._runs if at <= entry.start and 0 < end <= stop
        )
        stop = max([end, *runs])
        with closing(_View(self, stop)) as view:
            yield Reading(view, self.name, entry.start)
            if stop > end:
                self._front, view.span = view.span, None

    def expect(self, entries: list[Entry]) -> None:
        """Contiguous tensors that are read one after another take one request."""
        self._runs = []
        for start, stop in sorted(
            {(each.start, each.start + each.nbytes) for each in entries}
        ):
            if self._runs and self._runs[-1][1] == start:
                start, _ = self._runs.pop()
            self._runs.append((start, stop))

    def stream(self) -> Any:
        return Stream(self.size, self.read)

    def span(self, at: int, end: int, some: bool) -> "_Span":
        """The bytes of a range, or some of them, by the request that goes on if it has them."""
        with self._lock:
            front, self._front = self._front, None
        if front is not None:
            if front.at == at and (some or (front.end or 0) >= end):
                return front
            front.close()
        return _Span(proxy(self), at, end)

    def sibling(self, name: str) -> "Remote":
        return Remote(urljoin(self._url, quote(name, "")), True)

    def check(self, is_raw: bool) -> None:
        """BufferError for what servers send in place of a file."""
        text = (
            self.read(0, 64).decode("utf-8", "replace").lstrip("\ufeff \t\r\n").lower()
        )
        if text.startswith("version https://git-lfs"):
            malformed(
                self.name, "it is a pointer of Git LFS: use the URL of the file itself"
            )
        if re.match(r"<(!doctype html|html)\b", text) or (
            is_raw and self.content_type.lower().startswith("text/html")
        ):
            malformed(
                self.name,
                "it is a web page (HTML): servers send one to log in, or where they lack the file; "
                "if these are the elements, give format='raw'",
            )

    def ask(self, start: int, end: int | None) -> _Answer:
        if self.closed:
            raise _core.ReleasedError(f"{self.name} was closed")
        answer, self.content_type = _ask(self._url, self.name, start, end)
        given, known, why = answer.version, self._version or answer.version, ""
        for fact, one, other in zip(given._fields[:3], known, given, strict=False):
            if None not in (one, other) and one != other:
                why = f" changed while it was read ({fact}: {one}, then {other})"
        if self._version and self.ranges and not answer.ranges:
            why = why or ": the server no longer supports ranges"
        if why:
            answer.body.close()
            raise BufferError(bounded(f"{self.name}{why}: open it again"))
        both: Any = [
            a if a is not None else b for a, b in zip(known, given, strict=True)
        ]
        strong = known.strong and given.strong
        self._version = _Version(*both)._replace(strong=strong)
        return answer

    def close(self) -> None:
        """Ends what is being read. Further calls do nothing."""
        self.closed = True
        for each in (self._front, self._spool):
            if each is not None:
                each.close()

    def __del__(self) -> None:
        self.close()


class _View(io.RawIOBase):
    """A file object. A request is for the bytes up to `end`, or those of a read; `ahead`: and for
    so many more, twice as many each time that they were needed."""

    def __init__(self, file: Remote, end: int, ahead: int = 0) -> None:
        self._file, self._end, self._ahead, self._next = file, end, ahead, ahead
        self._at = 0
        self.span: _Span | None = None

    def readable(self) -> bool:
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = self._file.size if whence == io.SEEK_END else self._at * whence
        self._at = base + offset
        return self._at

    def readinto(self, memory: Any) -> int:
        at, count, size = self._at, len(memory), self._file.size
        data = self._file.part(at, count)
        if not data and at < size:
            span = self.span
            if (
                span is None
                or not span.at <= at
                or at > max(span.at + _OVERHEAD, self._end)
            ):
                self._drop()
                self._next, span = self._ahead, None
            elif span.at == span.end:
                self._next, span = min(2 * self._next, PIECE), None
            if span is None:
                end = max(at + count, self._end, at + self._next)
                span = self.span = self._file.span(at, min(end, size), not self._end)
            while span.at < at and span.read(at - span.at):
                pass
            data = span.read(count)
        memory[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _drop(self) -> None:
        if self.span is not None:
            self.span.close()
            self.span = None

    def close(self) -> None:
        self._drop()
        super().close()


class _Span:
    """One read of the bytes from `start` up to `end` (None: the end), in several requests if it
    is interrupted, or if the server sends fewer at a time."""

    def __init__(self, file: Remote, start: int, end: int | None) -> None:
        self._file, self._start, self.at, self.end = file, start, start, end
        self._place = start  # where the next request begins: before `at` to compare
        self._answer: _Answer | None = None
        self._validator: str | None = None
        self._sum, self._tail = 0, b""  # of what came
        self._left = self._found = self._expected = 0  # bytes to compare, their sums
        self._pieces = False
        self._count = self._all = 0  # of retries

    def read(self, count: int) -> bytes:
        """At most so many of the next bytes; b"" at the end."""
        while count > 0 and self.at != self.end:
            data = self.retrying(lambda: self._some(count))
            if data is None:
                break
            if data:
                self._count = 0
                return bytes(data)
        self.close()
        return b""

    def _some(self, count: int) -> bytes | None:
        """The new bytes of one answer, which may be none. None: the file ends."""
        answer = self._answer or self.asked()
        if answer is None:
            return b""
        if answer.at < self._place:
            if not answer.read(self._place - answer.at):
                self._changed()
            return b""
        data = answer.read(min(count, (self.end or _ALL) - self.at, self._left or _ALL))
        self._place += len(data)
        if not data and answer.end is None:
            if self._left:
                self._changed()
            return None
        if self._left:
            self._found = zlib.crc32(data, self._found)
            self._left -= len(data)
            if not self._left and self._found != self._expected:
                self._changed()
            data = b""
        self.at += len(data)
        self._sum = zlib.crc32(data, self._sum)
        self._tail = (self._tail + data[-_OVERLAP:])[-_OVERLAP:]
        if answer.at == answer.end and self.at != self.end:
            self._ended(answer)
        return data

    def _ended(self, answer: _Answer) -> None:
        """An answer ended before the range did."""
        self.close()
        came = answer.at - answer.start
        if came < _LEAST:
            raise _BrokenError(
                f"the answer ended at byte {answer.at}, after {came} of the bytes"
            )
        if self._validator is None and not self._left:
            self._compare(len(self._tail), zlib.crc32(self._tail))

    def asked(self) -> _Answer | None:
        """An answer; None: a request for other bytes is needed."""
        place, end = self._place, self.end
        if self._pieces:
            end = min(end or _ALL, place + _UNCOUNTED)
        answer = self._file.ask(place, end)
        strong = answer.version.strong
        if self.at == self._start:
            self._validator = strong
        elif self._validator not in (None, strong):
            answer.body.close()
            self._validator = None
            self._compare(self.at - self._start, self._sum)
            return None
        if answer.ranges and place and not answer.counted:
            self._pieces = True
            count = (answer.end or 0) - place
            if count > _UNCOUNTED:
                answer.body.close()
                return None
            self._counted(answer, count)
        self._answer = answer
        return answer

    def _counted(self, answer: _Answer, count: int) -> None:
        """Bytes of a wrong place are never used: a server that ignores the range sends more."""
        with closing(answer.body) as body:
            data = body.read(count + 1)
        if len(data) > count:
            malformed(
                self._file.name,
                f"the server sends more than the {count} bytes from byte {answer.start} on that it "
                "was asked for and announced: it ignores the range",
            )
        answer.body = io.BytesIO(data)

    def _compare(self, count: int, expected: int) -> None:
        """Requests the last bytes that came again."""
        self._place, self._left = self.at - count, count
        self._found, self._expected = 0, expected

    def _changed(self) -> None:
        raise BufferError(
            f"{self._file.name} changed while it was read (it has no strong ETag, and other "
            "bytes than before): open it again"
        )

    def retrying(self, function: Callable[[], Any]) -> Any:
        while True:
            try:
                return function()
            except (_BrokenError, OSError, HTTPException) as error:
                self.close()
                if (work := _WORK.get()) and work.stopped.is_set():
                    raise
                self._pause(error, work)
            if self._validator is None:
                self._compare(self.at - self._start, self._sum)
            else:
                self._compare(0, 0)

    def _pause(self, error: Exception, work: _Work | None) -> None:
        self._count += 1
        if self._count > _RETRIES or self._all >= _IN_ALL:
            tries = max(self._count, self._all + 1)
            name = self._file.name
            raise BufferError(
                bounded(f"{name} could not be read, after {tries} tries: {error}")
            ) from error
        seconds = min(_FIRST * 2**self._all, _LONGEST)
        self._all += 1
        (work.stopped.wait if work else time.sleep)(seconds)

    def close(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.body.close()


def blocks(
    source: Any, part: Part, entry: Entry, whole: bool
) -> tuple[Iterator[Block], int]:
    """The blocks of a part, and where one request for all of them ends; 0: each has its own.
    BufferError if more would be read, unless `whole` is set."""
    file: Remote = getattr(source, "file", source)
    nbytes, what = nbytes_of(entry.dtype, part.loaded), entry.name or file.name
    why = "" if file.ranges else f"the server of {file.name} does not support ranges"
    if file is not source and source.deflates(entry):
        why = f"it is compressed in {file.name}"
    if why and not whole and nbytes < entry.nbytes:
        malformed(
            what,
            f"a part of it cannot be read alone, as {why}: give whole=True to read all of it",
        )
    most, near, end = 1 if file.unversioned else _REQUESTS, _OVERHEAD, 0
    some = list(islice(blocks_of(part, entry, _ALL, near), most + 1))
    if len(some) > most:
        near = _ALL
        (one,) = some = list(blocks_of(part, entry, _ALL, near))
        end = one.start + one.nbytes
    read = sum(each.nbytes for each in some)
    if not why and not whole and read - nbytes > max(nbytes, _WASTE):
        how = " with one request, as no strong ETag is visible" if most == 1 else ""
        malformed(
            what,
            f"this part is scattered: for {nbytes} bytes, {read} would be read{how}; load "
            "contiguous rows and index them, or give whole=True to read all of it",
        )
    return blocks_of(part, entry, PIECE, near), end
