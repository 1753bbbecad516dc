"""Frames as bytes: WIRE.md describes them. Everything foreign is checked here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any, NoReturn

from dlpack_web import DType
from dlpack_web.internal import facts_of, is_broken, read_header, tag_of, write_header

# The version of the wire that this library speaks.
WIRE = "1"
# Bytes of a piece's elements: the least and the most that an endpoint may choose.
LEAST_PIECE, MOST_PIECE = 1 << 16, 4 << 20
# Bytes of a header, and characters of a tensor's name, at most.
_MOST_HEADER, _MOST_NAME = 1 << 16, 1000

_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,15})")
_SESSION = re.compile(r"[0-9a-f]{16}")
_WHAT = "the frame"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `first` to `last`; version `version` writes bytes `begin` to `end`."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    id: int
    version: int
    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Hello:
    window: int
    piece: int


@dataclass(frozen=True, slots=True)
class Ack:
    id: int
    version: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Refuse:
    id: int
    version: int
    message: str


@dataclass(frozen=True, slots=True)
class Free:
    id: int
    version: int


type Body = Piece | Hello | Ack | Refuse | Free


@dataclass(frozen=True, slots=True)
class Frame:
    """from_, to: sessions of the sender and of the receiver ("": not known yet)."""

    body: Body
    from_: str
    to: str
    payload: memoryview


def malformed(what: str, why: str) -> NoReturn:
    """BufferError, of at most 2000 characters."""
    message = f"{what}: {why}"
    raise BufferError(message if len(message) <= 2000 else f"{message[:1999]}…")


def nbytes_of(dtype: DType, shape: Sequence[int]) -> int:
    """Bytes of contiguous elements."""
    return -(-prod(shape) * dtype.bits * dtype.lanes // 8)


def encode(body: Body, from_: str, to: str) -> bytes:
    """The header of a frame; the elements of a piece follow it."""
    metadata = {"wire": WIRE, "from": from_, "to": to}
    if not isinstance(body, Piece):
        for field in fields(body):
            metadata[field.name] = str(getattr(body, field.name))
        metadata["op"] = type(body).__name__.lower()
        return write_header({}, metadata, _WHAT)
    for key in ("id", "version", "begin", "end"):
        metadata[key] = str(getattr(body, key))
    entry = {
        "dtype": tag_of(body.dtype, _WHAT),
        "shape": list(body.shape),
        "data_offsets": [body.first, body.last],
    }
    return write_header({body.name: entry}, metadata, _WHAT)


def decode(frame: Any, payload: Any = None) -> Frame:
    """The frame in these bytes; payload: the elements, if the channel carries them
    beside the header. BufferError: anything else than a whole frame of this version."""
    memory = memoryview(frame).cast("B")
    if len(memory) < 8:
        malformed(_WHAT, f"it has {len(memory)} bytes, less than its length")
    length = int.from_bytes(memory[:8], "little")
    if not 2 <= length <= min(_MOST_HEADER, len(memory) - 8):
        malformed(_WHAT, f"a header of {length} bytes, in a frame of {len(memory)}")
    found, metadata = read_header(bytes(memory[8 : 8 + length]), _WHAT)
    wire = metadata.get("wire", "none")
    if wire != WIRE:
        malformed(
            _WHAT,
            f"version {wire:.100} of the wire, and this library speaks {WIRE}: update "
            "the older side",
        )
    from_, to = metadata.get("from", ""), metadata.get("to", "")
    if not _SESSION.fullmatch(from_) or not (to == "" or _SESSION.fullmatch(to)):
        malformed(_WHAT, "from and to are sessions of 16 hexadecimal digits")
    elements = memory[8 + length :]
    if payload is not None:
        if elements:
            malformed(_WHAT, "elements in the header's buffer and beside it")
        elements = memoryview(payload).cast("B")
    op = metadata.get("op", "piece")
    body = _piece_of(found, metadata) if op == "piece" else _control_of(op, metadata)
    needed = body.last - body.first if isinstance(body, Piece) else 0
    if len(elements) != needed or (op != "piece" and found):
        malformed(_WHAT, f"{op} with {len(elements)} bytes of elements, not {needed}")
    return Frame(body, from_, to, elements)


def check_name(name: Any) -> None:
    """TypeError for a name that no frame can have."""
    if (
        not isinstance(name, str)
        or name == "__metadata__"
        or len(name) > _MOST_NAME
        or is_broken(name)
    ):
        raise TypeError(
            f"a tensor's name is a str of at most {_MOST_NAME} characters, not "
            f"{name!r:.100}"
        )


def _piece_of(found: dict[str, Any], metadata: dict[str, str]) -> Piece:
    if len(found) != 1:
        malformed(_WHAT, f"a piece is of one tensor, and its header lists {len(found)}")
    ((name, entry),) = found.items()
    which = f"{_WHAT}: tensor {name!r:.1000}"
    if len(name) > _MOST_NAME:
        malformed(which, f"its name has {len(name)} characters")
    tag, dtype, shape, (first, last) = facts_of(entry, which)
    if dtype is None:
        malformed(which, f"dtype {tag} is not supported")
    total = nbytes_of(dtype, shape)
    begin, end = _number(metadata, "begin"), _number(metadata, "end")
    if not begin <= first <= last <= end <= total or any(
        each % dtype.itemsize for each in (begin, end, first, last)
    ):
        malformed(
            which,
            f"bytes {first} to {last} of a write of {begin} to {end} are not whole "
            f"elements in order, of {total} bytes",
        )
    if first == last and begin != end:
        malformed(which, "a piece without elements")
    number, version = _number(metadata, "id"), _number(metadata, "version", 1)
    return Piece(name, dtype, shape, number, version, begin, end, first, last)


def _control_of(op: str, metadata: dict[str, str]) -> Hello | Ack | Refuse | Free:
    def number(key: str, least: int = 0) -> int:
        return _number(metadata, key, least)

    if op == "hello":
        return Hello(number("window"), number("piece", LEAST_PIECE))
    if op not in ("ack", "refuse", "free"):
        malformed(_WHAT, f"op {op!r:.100} is not piece, hello, ack, refuse or free")
    id, version = number("id"), number("version", 1)
    if op == "ack":
        return Ack(id, version, number("first"), number("last"))
    if op == "refuse":
        return Refuse(id, version, metadata.get("message", "")[:1000])
    return Free(id, version)


def _number(metadata: dict[str, str], key: str, least: int = 0) -> int:
    text = metadata.get(key)
    if text is None or not _NUMBER.fullmatch(text) or not least <= int(text) < 2**53:
        shown = "missing" if text is None else repr(text[:100])
        malformed(
            _WHAT, f"{key} is {shown}, and not an integer from {least} to 2^53 - 1"
        )
    return int(text)
