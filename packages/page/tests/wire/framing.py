"""Frames of frames.json in Python; tests/js/wire/frames.test.mjs makes the same ones."""

import json
import re
from pathlib import Path

TABLE = json.loads(Path(__file__).with_name("frames.json").read_text("utf-8"))
SESSIONS = {"wire": "1", "from": "0123456789abcdef", "to": "f" * 16}


def text_of(value):
    repeated = re.fullmatch(r"(.) \* (\d+)", value) if isinstance(value, str) else None
    return repeated[1] * int(repeated[2]) if repeated else value


def header_of(op, changes):
    """Metadata and entries."""
    usual = {"piece": {}}.get(op, {"op": op})
    metadata = {**SESSIONS, **TABLE["metadata"][op], **usual}
    entry, name = dict(TABLE["entry"]), "x"
    for key, value in changes.items():
        if key == "name":
            name = text_of(value)
        elif key in entry:
            entry[key] = value
        elif key not in ("each", "entries", "header", "payload"):
            metadata[key] = text_of(value)
    metadata = {key: value for key, value in metadata.items() if value is not None}
    return metadata, changes.get("entries", {name: entry} if op == "piece" else {})


def parts_of(op, changes):
    """Header and elements of a frame."""
    metadata, entries = header_of(op, changes)
    header = {"__metadata__": metadata, **entries}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    coded = text.encode("utf-8", "surrogatepass")
    coded = coded.ljust(changes.get("header", -(-len(coded) // 8) * 8))
    first, last = [*entries.values(), {}][0].get("data_offsets", (0, 0))
    size = changes.get("payload", max(last - first, 0))
    return len(coded).to_bytes(8, "little") + coded, bytes(i % 256 for i in range(size))
