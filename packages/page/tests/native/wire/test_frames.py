# Frames at the bounds of what WIRE.md allows: the last value that is taken, and the first
# that is not. tests/wire/vectors.json has frames that both languages share.
import json

import numpy as np
import pytest

from dlpack_web._layout.dtype import parse_dtype
from dlpack_web_page._wire.frame import (
    LEAST_PIECE,
    MOST_PIECE,
    Ack,
    Free,
    Hello,
    Piece,
    Refuse,
    check_name,
    decode,
    encode,
)
from dlpack_web_page.wire import Wire

FROM, TO = "0123456789abcdef", "f" * 16
MOST = 2**53 - 1


def frame(metadata, entries=None, payload=b"", blanks=0):
    """A frame of any header."""
    header = {"__metadata__": metadata, **(entries or {})}
    text = json.dumps(header).encode() + b" " * blanks
    return len(text).to_bytes(8, "little") + text + payload


def of(**more):
    return {"wire": "1", "from": FROM, "to": TO, **more}


def entry(first=0, last=8, shape=(4,), dtype="F16", name="x"):
    facts = {"dtype": dtype, "shape": list(shape), "data_offsets": [first, last]}
    return {name: facts}


def piece(begin=0, end=8, id="1", version="1"):
    return of(id=id, version=version, begin=f"{begin}", end=f"{end}")


def is_taken(*args, **options):
    try:
        decode(frame(*args, **options))
    except BufferError as error:
        assert len(str(error)) < 2000  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize(
    ("key", "op", "least"),
    [
        ("window", "hello", 0),
        ("piece", "hello", LEAST_PIECE),
        ("id", "ack", 0),
        ("version", "ack", 1),
        ("first", "ack", 0),
        ("last", "ack", 0),
        ("id", "refuse", 0),
        ("version", "refuse", 1),
        ("id", "free", 0),
        ("version", "free", 1),
        ("id", "piece", 0),
        ("version", "piece", 1),
    ],
)
def test_each_number_has_its_bounds(key, op, least):
    right = {"hello": of(window="0", piece=f"{LEAST_PIECE}"), "piece": piece()}
    usual = of(id="1", version="1", first="0", last="0")
    base = {**right.get(op, usual), "op": op}
    entries, payload = (entry(), bytes(8)) if op == "piece" else ({}, b"")

    def taken(value):
        given = {k: v for k, v in {**base, key: value}.items() if v is not None}
        return is_taken(given, entries, payload)

    for value in least, least + 1, MOST:
        assert taken(f"{value}"), value
        body = decode(frame({**base, key: f"{value}"}, entries, payload)).body
        assert getattr(body, key) == value
    wrong = [f"{least - 1}", f"{2**53}", "9" * 17, "", " 1", "+1", "01", "1.0", "1e3"]
    for value in [*wrong, "-0", "٣", "x" * 10_000, None]:
        assert not taken(value), value


@pytest.mark.parametrize(
    ("begin", "first", "last", "end", "right"),
    [
        (0, 0, 8, 8, True),
        (2, 2, 6, 8, True),
        (2, 4, 6, 8, True),
        (2, 4, 8, 8, True),
        (8, 8, 8, 8, True),
        (4, 4, 4, 4, True),
        (0, 0, 0, 0, True),
        (2, 0, 8, 8, False),  # before the write
        (0, 0, 8, 6, False),  # after it
        (0, 6, 4, 8, False),
        (0, 4, 4, 8, False),  # nothing of something
        (0, 0, 8, 10, False),  # beyond the tensor
        (10, 10, 10, 10, False),
        (8, 8, 10, 10, False),
        (1, 2, 4, 8, False),  # not whole elements
        (0, 1, 4, 8, False),
        (0, 0, 3, 8, False),
        (0, 0, 4, 7, False),
    ],
)
def test_the_bytes_of_a_piece_are_whole_elements_in_order(
    begin, first, last, end, right
):
    payload = bytes(max(last - first, 0))
    assert is_taken(piece(begin, end), entry(first, last), payload) == right
    if right:
        assert not is_taken(piece(begin, end), entry(first, last), payload + b"x")
        if payload:
            assert not is_taken(piece(begin, end), entry(first, last), payload[1:])


def test_sessions_are_16_hexadecimal_digits():
    ack = {"op": "ack", "id": "1", "version": "1", "first": "0", "last": "0"}
    assert is_taken(of(**ack))
    assert is_taken({**of(**ack), "to": ""})
    for wrong in "", "0" * 15, "0" * 17, "G" * 16, "A" * 16, " " + "0" * 15, "٣" * 16:
        assert not is_taken({**of(**ack), "from": wrong})
        assert not (wrong and is_taken({**of(**ack), "to": wrong}))


def test_headers_and_names_have_their_limits():
    text = len(json.dumps({"__metadata__": piece(), **entry()}))
    assert is_taken(piece(), entry(), bytes(8), 65536 - text)
    assert not is_taken(piece(), entry(), bytes(8), 65537 - text)
    for name, right in ("x" * 1000, True), ("x" * 1001, False), ("", True):
        assert is_taken(piece(), entry(name=name), bytes(8)) == right
        if right:
            check_name(name)
        else:
            with pytest.raises(TypeError, match="1000 characters"):
                check_name(name)
    whole = frame(piece(), entry(), bytes(8))
    for cut in range(len(whole)):
        with pytest.raises(BufferError):
            decode(whole[:cut])
    for length in 0, 1, 2, 2**31, 2**32, 2**63, 2**64 - 1:
        with pytest.raises(BufferError):
            decode(length.to_bytes(8, "little") + whole[8:])


@pytest.mark.parametrize("op", ["hello", "ack", "refuse", "free", "piece", "x" * 5000])
def test_only_a_piece_has_an_entry_and_bytes(op):
    numbers = dict.fromkeys(("id", "version", "first", "last", "window"), "1")
    given = of(op=op, piece=f"{LEAST_PIECE}", begin="0", end="8", **numbers)
    known = op != "x" * 5000
    assert is_taken(given, entry(), bytes(8)) == (op == "piece")
    assert is_taken(given) == (known and op != "piece")
    assert not is_taken(given, {}, b"x")
    assert not is_taken(given, entry(0, 0, (0,)), b"") or op == "piece"
    assert not is_taken(given, {**entry(), **entry(name="y")}, bytes(8))


@pytest.mark.parametrize("version", ["2", "0", "1.0", "", None, "x" * 10_000])
def test_other_versions_say_which_side_to_update(version):
    given = {**piece(), "wire": version}
    if version is None:
        del given["wire"]
    with pytest.raises(BufferError, match="speaks 1: update the older side"):
        decode(frame(given, entry(), bytes(8)))


def test_elements_come_in_the_frame_or_beside_it():
    whole = frame(piece(), entry(), bytes(range(8)))
    header, payload = whole[:-8], whole[-8:]
    for given in (whole,), (header, payload), (header, np.frombuffer(payload, "f8")):
        assert bytes(decode(*given).payload) == payload
    for given in (whole, payload), (header, payload[1:]), (whole, b""), (header,):
        if given == (whole, b""):
            continue
        with pytest.raises(BufferError):
            decode(*given)


def test_what_is_written_is_read():
    bodies = [
        Piece("é" * 500, parse_dtype("complex64"), (2, 3, 4), 7, 9, 0, 192, 64, 128),
        Hello(MOST, MOST_PIECE),
        Ack(0, 1, 5, MOST),
        Refuse(3, 4, 'why "so"\n'),
        Free(MOST, MOST),
    ]
    for body in bodies:
        for to in "", TO:
            payload = bytes(64) if isinstance(body, Piece) else b""
            found = decode(encode(body, FROM, to), payload)
            assert (found.body, found.from_, found.to) == (body, FROM, to)
    refuse = frame(of(op="refuse", id="1", version="1", message="x" * 5000))
    assert decode(refuse).body.message == "x" * 1000
    assert decode(frame(of(op="refuse", id="1", version="1"))).body.message == ""


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({"piece": LEAST_PIECE}, True),
        ({"piece": MOST_PIECE}, True),
        ({"piece": LEAST_PIECE - 1}, False),
        ({"piece": MOST_PIECE + 1}, False),
        ({"window": 0, "limit": 0}, True),
        ({"window": -1}, False),
        ({"limit": -1}, False),
        ({"window": MOST}, True),
        ({"window": MOST + 1}, False),
    ],
)
def test_a_wire_takes_sizes_that_can_be(options, right):
    if right:
        wire = Wire(lambda *_: None, **options)
        piece, window = wire._hello.piece, wire._hello.window
        assert window == options.get("window", 2 * piece)
    else:
        with pytest.raises(ValueError, match="bytes"):
            Wire(lambda *_: None, **options)
