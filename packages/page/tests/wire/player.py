"""Plays the steps of rules/*.txt on an end of the wire; player.mjs does the same in JavaScript.

    # A tensor that is freed: its writes fail
    open window=8
    send x uint8[4] → out piece x 1.1 0-4 of 0-4 uint8[4]: 1*4
    free 1 → out free 1.2 | failed 1.1: 'x' was freed
    in ack 1.2 0-0

A line is a step, with its results behind "→" or in lines below; "…" is any text. `wire` makes an
end that says hello, `open` one that has an answer, with options of a Wire. `in` is a frame of the
other side, which is session 1 unless it says `from=`; `out` is one that the end sends. 1.2 is version 2
of tensor 1. `tensor`, `freed`, `session` and `refused` are what the end reports, `done` and `failed` the
ends of writes.

Byte i of version v of a tensor is (v + 31 i) mod 256, so `: 1*4 2*8` are four bytes of
version 1 and eight of version 2, each at its place.
"""

import re
from collections import Counter
from itertools import pairwise
from math import prod

import numpy as np

import dlpack_web as dlw
from dlpack_web._layout.dtype import parse_dtype
from dlpack_web_page._wire.frame import (
    Ack,
    Free,
    Hello,
    Piece,
    Refuse,
    decode,
    encode,
)
from dlpack_web_page.wire import Wire

KINDS = {BufferError: "data", TypeError: "type", ValueError: "value"}
KINDS |= {RuntimeError: "of the listener"}
FRAME = re.compile(
    r"(?:(\D\S*) )?(\d+)\.(\d+)(?: (\d+)-(\d+))?(?: of (\d+)-(\d+))?"
    r"(?: (\w+)\[([\d,]*)\])?(?: (.*))?"
)


def integers(text):
    return tuple(int(each) for each in text.split(",") if each)


def pattern(version, begin, end):
    return ((version + 31 * np.arange(begin, end)) % 256).astype("u1")


def versions(memory, begin):
    """Which version wrote each byte: `: 1*4 2*8`."""
    end = begin + len(memory)
    found = np.frombuffer(memory, "u1") - pattern(0, begin, end)
    cuts = [0, *(np.flatnonzero(np.diff(found)) + 1), len(found)]
    runs = [f"{found[at]}*{end - at}" for at, end in pairwise(cuts) if at < end]
    return " ".join([":", *runs]) if runs else ""


def told(body, payload=b""):
    match body:
        case Hello(window, piece):
            usual = (window, piece) == (2 << 20, 1 << 20)
            return "hello" if usual else f"hello window={window} piece={piece}"
        case Ack(id, version, first, last):
            return f"ack {id}.{version} {first}-{last}"
        case Refuse(id, version, message):
            return f"refuse {id}.{version} {message}"
        case Free(id, version):
            return f"free {id}.{version}"
    at = f"{body.first}-{body.last} of {body.begin}-{body.end}"
    kind = f"{body.dtype}{list(body.shape)}"
    elements = versions(payload, body.first)
    return f"piece {body.name} {body.id}.{body.version} {at} {kind}{elements}"


class Player:
    """One end of the wire."""

    def __init__(self):
        self.lines, self.fails, self.now = [], (), 0
        self.taken = 0
        # By id; by id and version; frames that the other side may answer.
        self.remotes, self.writes, self.posted = {}, {}, {}
        self.live = dlw.live_tensors()

    def play(self, step):
        """The lines that a step gives."""
        self._run(step)
        for key, write in [*self.writes.items()]:
            if write.done():
                del self.writes[key]
                error = write.exception()
                self.lines.append(f"failed {key}: {error}" if error else f"done {key}")
        if step.startswith("repeat"):
            kinds = [re.match(r"(out |error )?\w+", line)[0] for line in self.lines]
            counts = Counter(kinds).items()
            self.lines = [f"{count} times {kind}" for kind, count in counts]
        lines, self.lines = self.lines, []
        return [re.sub(r", (?=\d)", ",", line.replace('"', "'")) for line in lines]

    def _run(self, step):
        verb, *words = step.split()
        options = dict(word.split("=") for word in words if "=" in word)
        try:
            given = [word for word in words if "=" not in word]
            if verb in ("connect", "tick", "close"):
                getattr(self.wire, verb)()
            else:
                getattr(self, f"do_{verb}")(*given, **options)
        except tuple(KINDS) as error:
            self.lines.append(f"error {KINDS[type(error)]}: {error}")

    # --- what the application does --------------------------------------------------------

    def do_wire(self, **options):
        self.remotes, self.writes, self.posted = {}, {}, {}
        self.wire = Wire(
            self._post,
            on_tensor=self._arrived,
            on_free=lambda name: self._report("freed", name),
            on_session=lambda: self._report("session"),
            on_refuse=lambda error: self._report("refused", error),
            now=lambda: self.now,
            **{name: int(value) for name, value in options.items()},
        )
        self.wire.connect()

    def do_open(self, **options):
        """A wire after both sides said hello, which is not shown."""
        self.do_wire(**options)
        self.do_in("hello")
        self.lines.clear()

    def do_now(self, now):
        self.now = int(now)

    def do_fail(self, *names):
        """What fails when it is called from now on: listeners, `out` and so on."""
        self.fails = names

    def do_send(self, name, kind):
        remote = self.wire.send(name, self._source(1, 0, kind))
        self.remotes[f"{remote._id}"] = remote
        self.writes[f"{remote._id}.1"] = remote.ready

    def do_write(self, id, rows=None, kind=None):
        if id not in self.remotes:
            self.lines.append(f"no tensor {id}")
            return
        remote = self.remotes[id]
        length, *others = remote.shape or (1,)
        start, stop = (0, length) if rows is None else map(int, rows.split(":"))
        target = remote if rows is None else remote[start:stop]
        shape = [stop - start, *others] if remote.shape else []
        version = remote._version + 1
        begin = start * prod(others) * remote.dtype.itemsize
        source = self._source(version, begin, kind or f"{remote.dtype}{shape}")
        self.writes[f"{id}.{version}"] = target.write(source)

    def do_free(self, id):
        if id in self.remotes:
            self.remotes[id].free()

    def do_has(self):
        has = [
            f"{name} {'released' if t.released else f'{t.dtype}{list(t.shape)}'}"
            for name, t in self.wire.tensors.items()
        ]
        self.lines.append(f"has {', '.join(sorted(has)) or 'nothing'}")

    def do_state(self):
        """How many tensors live, too: two of what has arrived, one of a write."""
        self.do_has()
        self.lines[-1] += f"; {dlw.live_tensors() - self.live} live"

    def _source(self, version, begin, kind):
        dtype, shape = re.fullmatch(r"(\w+)\[(.*)\]", kind.replace(" ", "")).groups()
        shape = integers(shape)
        end = begin + prod(shape) * np.dtype(dtype).itemsize
        return pattern(version, begin, end).view(dtype).reshape(shape)

    # --- frames ---------------------------------------------------------------------------

    def do_in(self, kind, *words, to="own", window=2**20, piece=2**16, **options):
        if kind == "hello":
            body, payload = Hello(int(window), int(piece)), b""
        else:
            body, payload = self._frame(kind, " ".join(words))
        if body is not None:
            own = {"own": self.wire._own, "": ""}
            sender, to = [
                own.get(each, each.rjust(16, "0"))
                for each in (options.get("from", "1"), to)
            ]
            header = encode(body, sender, to)
            # Every second one in two buffers.
            self.taken += 1
            parts = [header + payload] if self.taken % 2 else [header, payload]
            self.wire.receive(*parts)

    def _frame(self, kind, text):
        if text[0] == "?":  # an answer to one of the frames that were sent, by number
            if not self.posted:
                return None, b""
            number, *message = text[1:].split(" ", 1)
            key = [*self.posted][int(number) % len(self.posted)]
            text = " ".join([self.posted.pop(key), *message])
        name, id, version, *at, dtype, shape, message = FRAME.fullmatch(text).groups()
        id, version = int(id), int(version)
        first, last, begin, end = [each and int(each) for each in at]
        if kind == "free":
            return Free(id, version), b""
        if kind == "refuse":
            return Refuse(id, version, message), b""
        if kind == "ack":
            return Ack(id, version, first, last), b""
        dtype = parse_dtype(dtype or "uint8")
        shape = integers("4" if shape is None else shape)
        if first is None:
            first, last = 0, prod(shape) * dtype.itemsize
        if begin is None:
            begin, end = first, last
        body = Piece(name, dtype, shape, id, version, begin, end, first, last)
        return body, pattern(version, first, last).tobytes()

    # --- what it does ---------------------------------------------------------------------

    def _report(self, what, more=None):
        self.lines.append(what if more is None else f"{what} {more}")
        if what in self.fails:
            raise RuntimeError(what)

    def _post(self, header, payload):
        frame = decode(header, payload)
        assert frame.from_ == self.wire._own
        body = frame.body
        if isinstance(body, Piece | Free):
            first, last = getattr(body, "first", 0), getattr(body, "last", 0)
            key = f"{body.id}.{body.version} {first}-{last}"
            self.posted[key] = key
        to = frame.to.lstrip("0")
        self.lines.append(
            f"out {'' if to == '1' else f'to={to} '}{told(body, payload)}"
        )
        if "out" in self.fails:
            raise RuntimeError("out")

    def _arrived(self, received):
        name, id, version, begin, end, tensor = received
        elements = versions(tensor.tobytes(), 0)
        self._report("tensor", f"{name} {id}.{version} {begin}-{end}{elements}")

    # --- many steps -----------------------------------------------------------------------

    def do_until(self, end, *step, **options):
        """A step at each time from now on: what it gives, and when."""
        lines, found = self.lines, {}
        step = " ".join([*step, *(f"{k}={v}" for k, v in options.items())])
        while self.now < int(end):
            self.lines = []
            self._run(step)
            for line in self.lines:
                found.setdefault(line, []).append(self.now)
            self.now += 1
        self.lines = lines
        for line, times in found.items():
            self.lines.append(f"at {' '.join(map(str, times))}: {line}")

    def do_repeat(self, numbers, *step, **options):
        """A step with many numbers in place of {}; `play` counts what it gives."""
        step = " ".join([*step, *(f"{k}={v}" for k, v in options.items())])
        for i in range(*map(int, numbers.split(":"))):
            self._run(step.replace("{}", f"{i}").replace("{+1}", f"{i + 1}"))
