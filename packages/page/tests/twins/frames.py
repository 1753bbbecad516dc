"""Random frames of the wire, most of them nearly right, and ranges of versions."""

import dataclasses
import json
import random
from typing import Any

from differential import edited
from twins.shaders import pick

from dlpack_web_page._wire.frame import Piece, decode, encode
from dlpack_web_page._wire.spans import Spans

SESSIONS = ["00000000000000aa", "0123456789abcdef", ""]
WRONG_SESSIONS = [
    "00000000000000AA",
    "0123",
    "0" * 17,
    "\u0660" * 16,
    "0123456789abcde\n",
    "constructor",
]
NUMBERS = ["0", "1", "2", "7", "8", "16", "65536", "1048576", "9007199254740991"]
WRONG_NUMBERS = [
    "9007199254740992",
    "-1",
    "01",
    "1.0",
    "1e3",
    "",
    " 1",
    "1\n",
    "\u0662",
    "99999999999999999",
    "0x10",
    "9" * 20,
]
WIDTHS = {"F32": 4, "U8": 1, "I64": 8, "BOOL": 1, "BF16": 2, "C64": 8, "F8_E5M2": 1}
TEXTS = [
    "x",
    "é",
    "😀",
    "\ud800",
    "😀" * 500,
    "😀" * 501,
    "x" * 1000,
    "x" * 1001,
    "",
    "__metadata__",
    "__proto__",
    "constructor",
    "0",
    "\0",
]


def number(chance: random.Random) -> str:
    return chance.choice(NUMBERS if chance.random() < 0.97 else WRONG_NUMBERS)


def text(chance: random.Random) -> str:
    return chance.choice(TEXTS[:3] if chance.random() < 0.9 else TEXTS)


def make_frame(chance: random.Random) -> str:
    right = chance.random() < 0.95
    said = {
        "wire": "1"
        if chance.random() < 0.98
        else pick(chance, "2", "", "01", "constructor"),
        "from": chance.choice(SESSIONS[:2] if right else SESSIONS + WRONG_SESSIONS),
        "to": chance.choice(SESSIONS if right else SESSIONS + WRONG_SESSIONS),
    }
    entries: dict[str, Any] = {}
    payload = b""
    if chance.random() < 0.6:
        tag = chance.choice([*WIDTHS])
        shape = [chance.randrange(4) for _ in range(chance.randrange(3))]
        total = WIDTHS[tag]
        for extent in shape:
            total *= extent
        step = WIDTHS[tag] if chance.random() < 0.95 else 1
        marks = sorted(chance.randrange(total // step + 1) * step for _ in range(4))
        begin, first, last, end = (
            marks if chance.random() < 0.7 else (0, 0, total, total)
        )
        said |= {
            "id": number(chance),
            "version": number(chance),
            "begin": str(begin),
            "end": str(end),
        }
        entries[text(chance)] = {
            "dtype": tag if chance.random() < 0.97 else pick(chance, "F4", "X1", "f32"),
            "shape": shape,
            "data_offsets": [first, last],
        }
        if chance.random() < 0.02:
            entries[text(chance)] = {
                "dtype": tag,
                "shape": shape,
                "data_offsets": [first, last],
            }
        payload = chance.randbytes(max(0, last - first))
        if chance.random() < 0.05:
            said["op"] = pick(chance, "piece", "Piece", "")
    else:
        op = (
            pick(chance, "hello", "ack", "refuse", "free")
            if chance.random() < 0.97
            else pick(chance, "bye", "", "Hello", "constructor", "😀" * 101)
        )
        said |= {
            "op": op,
            "id": number(chance),
            "version": number(chance),
            "first": number(chance),
            "last": number(chance),
        }
        if op == "hello":
            said |= {"window": number(chance), "piece": number(chance)}
        if chance.random() < 0.8:
            said["message"] = text(chance)
    if chance.random() < 0.05:
        said.pop(chance.choice([*said]))
    if chance.random() < 0.03:
        payload += b"x"
    header = json.dumps(
        {"__metadata__": said, **entries},
        ensure_ascii=chance.random() < 0.5,
        separators=(",", ":"),
    )
    coded = header.encode("utf-8", "surrogatepass")
    coded = coded.ljust(-(-len(coded) // 8) * 8)
    if chance.random() < 0.2:
        coded = edited(chance, coded)
    length = (
        len(coded)
        if chance.random() < 0.98
        else chance.choice((0, 1, 2, 65536, 65537, 2**40))
    )
    return (length.to_bytes(8, "little") + coded + payload).hex()


def frame(given: str) -> dict[str, Any]:
    found = decode(bytes.fromhex(given))
    body = found.body
    facts = {
        field.name: getattr(body, field.name) for field in dataclasses.fields(body)
    }
    if isinstance(body, Piece):
        facts |= {"dtype": str(body.dtype), "shape": list(body.shape)}
    again = encode(body, found.from_, found.to).hex()
    route = {
        "from": found.from_,
        "to": found.to,
        "payload": found.payload.hex(),
        "again": again,
    }
    return {**route, "op": type(body).__name__.lower(), **facts}


def make_spans(chance: random.Random) -> list[list[Any]]:
    operations: list[list[Any]] = []
    for _ in range(chance.randrange(12)):
        begin = chance.randrange(20)
        end, version = begin + chance.randrange(8), chance.randrange(6)
        what = pick(chance, "mark", "mark", "below", "reach", "forget")
        args = {"reach": [begin, version], "forget": [version]}.get(
            what, [begin, end, version]
        )
        operations.append([what, *args])
    return operations


def spans(given: list[list[Any]]) -> list[Any]:
    ranges = Spans()
    found: list[Any] = []
    for what, *args in given:
        result = getattr(ranges, what)(*args)
        found.append(
            [[*map(list, result)] if isinstance(result, list) else result, len(ranges)]
        )
    return found


SUBJECTS = {"frame": (3, make_frame, frame), "spans": (1, make_spans, spans)}
