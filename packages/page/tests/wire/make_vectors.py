"""Writes vectors.json: frames of WIRE.md, good ones and hostile ones, for both
languages: tests/js/wire/vectors.test.mjs and tests/native/wire/test_vectors.py read
them.

A vector is {name, frame (base64)} with `means`, what the frame says (its header's
numbers as integers), or `error`, a pattern that the message must match in both
languages. Frames with `means` are those that both encoders write, byte for byte.
"""

import base64
import json
from pathlib import Path

HERE = Path(__file__).parent
A, B = "00000000000000aa", "00000000000000bb"
VECTORS = []


def frame(header, payload=b"", length=None):
    text = (
        header
        if isinstance(header, bytes)
        else json.dumps(header, separators=(",", ":")).encode()
    )
    text = text.ljust(-(-len(text) // 8) * 8)
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + payload


def piece(
    name="x", dtype="F32", shape=(2, 2), offsets=(0, 16), payload=None, **metadata
):
    facts = {"id": 1, "version": 1, "begin": 0, "end": 16, **metadata}
    said = {"wire": "1", "from": A, "to": B, **{k: str(v) for k, v in facts.items()}}
    said = {key: value for key, value in said.items() if value != "None"}
    entry = {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}
    data = bytes(range(offsets[1] - offsets[0])) if payload is None else payload
    return frame({"__metadata__": said, name: entry}, data)


def control(op, **metadata):
    said = {"wire": "1", "from": A, "to": B}
    said |= {key: str(value) for key, value in metadata.items()}
    return frame({"__metadata__": {**said, "op": op}})


def add(name, data, **told):
    coded = base64.b64encode(data).decode()
    VECTORS.append({"name": name, "frame": coded, **told})


def good_piece(name, **given):
    facts = {"name": "x", "dtype": "float32", "shape": [2, 2], "id": 1, "version": 1}
    facts |= {"begin": 0, "end": 16, "first": 0, "last": 16}
    tags = {"float32": "F32", "uint8": "U8", "complex64": "C64", "bfloat16": "BF16"}
    facts |= given
    offsets = facts["first"], facts["last"]
    keys = {key: facts[key] for key in ("id", "version", "begin", "end")}
    data = piece(facts["name"], tags[facts["dtype"]], facts["shape"], offsets, **keys)
    add(name, data, means={"op": "piece", **facts})


good_piece("a tensor of one piece is a safetensors file")
good_piece(
    "a piece of a part",
    shape=[4, 2],
    id=7,
    version=3,
    begin=8,
    end=32,
    first=8,
    last=16,
)
good_piece("bytes", dtype="uint8", shape=[5], end=5, last=5)
good_piece("no elements", dtype="complex64", shape=[0, 3], end=0, last=0)
good_piece("one element", dtype="bfloat16", shape=[], end=2, last=2)
good_piece("the largest numbers", id=2**53 - 1, version=2**53 - 1)
for op, facts in {
    "hello": {"window": 2 << 20, "piece": 1 << 20},
    "ack": {"id": 1, "version": 2, "first": 8, "last": 16},
    "refuse": {"id": 1, "version": 2, "message": "no"},
    "free": {"id": 1, "version": 3},
}.items():
    add(op, control(op, **facts), means={"op": op, **facts})

for name, data, error in [
    ("nothing", b"", "0 bytes"),
    ("less than a length", bytes(7), "7 bytes"),
    ("a length of nothing", bytes(8), "header of 0 bytes"),
    ("a header longer than the frame", frame(b"{}", length=9), "header of 9 bytes"),
    (
        "a header of 2^63 bytes",
        frame(b"{}", length=2**63),
        "header of 922337203685477",
    ),
    (
        "a header of 2^16 + 8 bytes",
        frame(b"{}".ljust(2**16 + 8)),
        "header of 65544 bytes",
    ),
    ("no JSON", frame(b"{nonsense"), "not JSON"),
    ("a list", frame(b"[1]"), "begin with"),
    ("a key twice", frame(b'{"a":1,"a":1}'), "twice"),
    ("no metadata", frame({}), "version none"),
    ("another version", piece(wire=2), "version 2 of the wire"),
    ("metadata of numbers", frame(b'{"__metadata__":{"wire":1}}'), "strings"),
    (
        "a session that is none",
        control("free", id=1, version=1, **{"from": "x"}),
        "sessions",
    ),
    ("an unknown op", control("run", id=1, version=1), "op .run. is not"),
    ("a hello of pieces of a byte", control("hello", window=1, piece=1), "piece is"),
    ("an ack without numbers", control("ack", id=1, version=1), "first is missing"),
    ("version 0", control("free", id=1, version=0), "version is"),
    ("2^53", piece(id=2**53), "id is"),
    ("a negative number", piece(id=-1), "id is"),
    ("a number with a sign", piece(id="+1"), "id is"),
    ("a number with zeros", piece(id="01"), "id is"),
    ("a number of other digits", piece(id="\u0663"), "id is"),
    ("a fraction", piece(begin="0.0"), "begin is"),
    ("elements missing", piece(payload=bytes(15)), "15 bytes of elements"),
    ("elements too many", piece(payload=bytes(17)), "17 bytes of elements"),
    (
        "elements after a control",
        control("free", id=1, version=1) + b"x",
        "1 bytes of elements",
    ),
    ("offsets in the wrong order", piece(offsets=(16, 0), payload=b""), "data_offsets"),
    ("offsets after the tensor", piece(offsets=(16, 32), end=32), "not whole elements"),
    ("offsets before the write", piece(begin=8), "not whole elements"),
    ("offsets after the write", piece(end=8), "not whole elements"),
    ("a write after the tensor", piece(end=20), "not whole elements"),
    (
        "a write that ends before it begins",
        piece(begin=16, end=0),
        "not whole elements",
    ),
    ("within an element", piece(offsets=(0, 2)), "not whole elements"),
    ("a piece without elements", piece(offsets=(0, 0)), "without elements"),
    ("a dtype that no library has", piece(dtype="F99"), "F99 is not supported"),
    (
        "a dtype of six bits",
        piece(dtype="F6_E2M3", shape=(16,), offsets=(0, 12), end=12),
        "not supported",
    ),
    ("a shape that overflows", piece(shape=(2**52, 2**52)), "elements"),
    (
        "a negative extent",
        frame(piece().replace(b"[2,2]", b"[-2,2]")[8:-16], bytes(16)),
        "size is needed",
    ),
    ("65 axes", piece(shape=(1,) * 65), "65|64"),
    ("a long name", piece(name="x" * 1001), "1001 characters"),
    (
        "no tensor",
        frame({"__metadata__": {"wire": "1", "from": A, "to": B}}),
        "lists 0",
    ),
]:
    add(name, data, error=error)
two = {"__metadata__": {"wire": "1", "from": A, "to": B}}
two |= {n: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in "xy"}
add("two tensors", frame(two), error="lists 2")

lines = ",\n".join(json.dumps(vector) for vector in VECTORS)
(HERE / "vectors.json").write_text(f"[\n{lines}\n]\n")
