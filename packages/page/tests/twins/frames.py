"""Random frames of the wire, most of them nearly right, and ranges of versions."""

import dataclasses
import random
import sys
from math import prod
from pathlib import Path
from typing import Any

from differential import edited
from twins.shaders import pick

from dlpack_web_page._wire.frame import Piece, decode, encode
from dlpack_web_page._wire.spans import Spans

sys.path.append(str(Path(__file__).parents[1] / "wire"))
from framing import TABLE, parts_of

NUMBERS = ["0", "1", "2", "7", "8", "16", "65536", "1048576", "9007199254740991"]
WIDTHS = {"F32": 4, "U8": 1, "I64": 8, "BOOL": 1, "BF16": 2, "C64": 8, "F8_E5M2": 1}
TEXTS = ["x", "é", "😀", "\ud800", "😀 * 500", "😀 * 501", "x * 1000", "x * 1001", ""]
TEXTS += ["__metadata__", "__proto__", "constructor", "0", "\0"]
SESSIONS = ["00000000000000aa", "", "00000000000000AA", "0 * 17", "\u0660 * 16"]
SESSIONS += ["0123456789abcde\n", "constructor", None]
NO_NUMBERS = [*TABLE["no_numbers"], "0x10", "1\n", "3"]
#: Values that are mostly wrong.
OTHERS = {
    "wire": ["2", "", "01", "constructor"],
    "op": ["piece", "hello", "free", "Piece", "", "constructor", "😀 * 101"],
    "from": SESSIONS,
    "to": SESSIONS,
    "name": TEXTS,
    "message": TEXTS,
    "dtype": ["F4", "X1", "f32"],
    "payload": [0, 1],
}
for facts in TABLE["metadata"].values():
    OTHERS = {**dict.fromkeys(facts, NO_NUMBERS), **OTHERS}


def make_frame(chance: random.Random) -> str:
    op = chance.choice(["piece", *TABLE["metadata"]])
    given: dict[str, Any] = {key: chance.choice(NUMBERS) for key in ("id", "version")}
    given["to"] = chance.choice(SESSIONS[:2])
    if op == "piece":
        tag = chance.choice([*WIDTHS])
        shape = [chance.randrange(4) for _ in range(chance.randrange(3))]
        step = WIDTHS[tag] if chance.random() < 0.95 else 1
        total = prod(shape) * WIDTHS[tag]
        marks = sorted(chance.randrange(total // step + 1) * step for _ in range(4))
        begin, first, last, end = pick(chance, marks, marks, (0, 0, total, total))
        given |= {
            "begin": f"{begin}",
            "end": f"{end}",
            "name": chance.choice(TEXTS[:3]),
        }
        given |= {"dtype": tag, "shape": shape, "data_offsets": [first, last]}
    else:
        keys = {"hello": ("window", "piece"), "ack": ("first", "last")}.get(op, ())
        given |= {key: chance.choice(NUMBERS) for key in keys}
    while chance.random() < 0.2:
        key = chance.choice([*OTHERS])
        given[key] = chance.choice(OTHERS[key])
    header, payload = parts_of(op, given)
    if chance.random() < 0.2:
        header = header[:8] + edited(chance, header[8:])
    if chance.random() < 0.02:
        wrong = chance.choice((0, 1, 2, 65536, 65537, 2**40))
        header = wrong.to_bytes(8, "little") + header[8:]
    return (header + payload).hex()


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
