# Frames of WIRE.md that both languages share: tests/wire/vectors.json.
import base64
import json
import random
from pathlib import Path

import pytest
from conftest import run

import dlpack_web as dlw
from dlpack_web_page._wire.frame import Ack, Free, Hello, Piece, Refuse, decode, encode
from dlpack_web_page.wire import Wire

FILE = Path(__file__).parents[2] / "wire" / "vectors.json"
VECTORS = json.loads(FILE.read_text())
KINDS = {kind.__name__.lower(): kind for kind in (Ack, Free, Hello, Piece, Refuse)}
GOOD = [vector for vector in VECTORS if "means" in vector]


def told(body):
    facts = {name: getattr(body, name) for name in body.__dataclass_fields__}
    if isinstance(body, Piece):
        facts |= {"dtype": str(body.dtype), "shape": list(body.shape)}
    return {"op": type(body).__name__.lower(), **facts}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_frames_are_read_as_the_vectors_say(vector):
    frame = base64.b64decode(vector["frame"])
    if "error" in vector:
        with pytest.raises(BufferError, match=vector["error"]):
            decode(frame)
        return
    found = decode(frame)
    assert told(found.body) == vector["means"]
    header = encode(found.body, found.from_, found.to)
    assert header + bytes(found.payload) == frame
    assert decode(header, found.payload).body == found.body


def test_open_reads_a_tensor_of_one_piece():
    frame = base64.b64decode(GOOD[0]["frame"])
    means, payload = GOOD[0]["means"], bytes(decode(frame).payload)

    async def opened():
        with await dlw.open(frame) as file:
            assert list(file) == [means["name"]]
            (t,) = await file.load(means["name"])
            with t:
                assert [str(t.dtype), list(t.shape)] == [means["dtype"], means["shape"]]
                assert t.numpy().tobytes() == payload

    run(opened())


def test_damaged_frames_raise_and_allocate_nothing():
    random.seed(5)
    before = dlw.live_tensors()
    wire = Wire(lambda header, payload: None, limit=4096)
    try:
        for _ in range(3000):
            frame = bytearray(base64.b64decode(random.choice(GOOD)["frame"]))
            for _ in range(random.randint(1, 4)):
                frame[random.randrange(len(frame))] = random.choice(
                    b'0123456789"{}[],:\xff'
                )
            try:
                wire.receive(bytes(frame))
            except BufferError:
                continue
    finally:
        wire.close()
    assert dlw.live_tensors() == before
