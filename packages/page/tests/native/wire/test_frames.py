# The frames of tests/wire/frames.json, which tests/js/wire reads, too; what Python's buffers add.
import numpy as np
import pytest
from conftest import run
from framing import SESSIONS, TABLE, header_of, parts_of, text_of

import dlpack_web as dlw
from dlpack_web_page._wire.frame import Piece, check_name, decode, encode


def facts_of(op, changes):
    """What a frame means."""
    metadata, entries = header_of(op, changes)
    facts = {key: metadata.get(key) for key in TABLE["metadata"][op]}
    facts = {k: v if k == "message" else int(v) for k, v in facts.items()}
    for name, entry in entries.items():
        first, last = entry["data_offsets"]
        dtype = TABLE["dtypes"][entry["dtype"]]
        facts |= {"name": name, "dtype": dtype, "shape": entry["shape"]}
        facts |= {"first": first, "last": last}
    return {"op": op, **facts}


def told(body):
    facts = {name: getattr(body, name) for name in body.__dataclass_fields__}
    if isinstance(body, Piece):
        facts |= {"dtype": str(body.dtype), "shape": list(body.shape)}
    return {"op": type(body).__name__.lower(), **facts}


def check(op, changes, expected):
    header, payload = parts_of(op, changes)
    if isinstance(expected, str):
        check_refused(header + payload, expected)
        return
    found = decode(header + payload)
    means = {} if expected is True else expected
    facts = {key: text_of(value) for key, value in means.items()}
    assert told(found.body) == {**facts_of(op, changes), **facts}
    assert found.payload == payload
    if expected is True:
        assert encode(found.body, found.from_, found.to) == header
    assert decode(header, np.frombuffer(payload, "u1")) == found
    check_refused(header + payload + b"x", "bytes of elements")
    if payload:
        check_refused(header + payload[1:], "bytes of elements")


def check_refused(frame, pattern):
    with pytest.raises(BufferError, match=f"(?s){pattern}") as raised:
        decode(frame)
    assert len(str(raised.value)) <= 2000


@pytest.mark.parametrize(("op", "key", "least"), TABLE["least"])
def test_each_number_has_its_bounds(op, key, least):
    for value in least, least + 1, 2**53 - 1:
        check(op, {key: f"{value}"}, True)
    for wrong in [f"{least - 1}", *TABLE["no_numbers"]]:
        check(op, {key: wrong}, f"{key} is")


@pytest.mark.parametrize(("begin", "first", "last", "end", "expected"), TABLE["pieces"])
def test_the_bytes_of_a_piece_are_whole_elements_in_order(
    begin, first, last, end, expected
):
    changes = {"begin": f"{begin}", "end": f"{end}", "data_offsets": [first, last]}
    check("piece", changes, expected)


@pytest.mark.parametrize("row", TABLE["frames"], ids=lambda row: row[0])
def test_a_frame_means_what_the_table_says(row):
    _, ops, changes, expected = row
    if ops == "raw":
        check_refused(bytes.fromhex(changes), expected)
        return
    key, values = changes.get("each", ["to", [changes.get("to", SESSIONS["to"])]])
    for op in [ops] if isinstance(ops, str) else ops:
        for value in values:
            check(op, {**changes, key: value}, expected)


def test_a_part_of_a_frame_is_refused():
    header, payload = parts_of("piece", {})
    whole = header + payload
    for cut in range(len(whole)):
        check_refused(whole[:cut], "bytes")
    for given in (whole, payload), (header, payload[1:]), (header,):
        with pytest.raises(BufferError):
            decode(*given)
    assert bytes(decode(header, np.frombuffer(payload, "f8")).payload) == payload


@pytest.mark.parametrize("name", ["__metadata__", "\ud800", "x" * 1001, 5])
def test_names_that_no_frame_has(name):
    check_name("x" * 1000)
    with pytest.raises(TypeError, match="a tensor's name is a str"):
        check_name(name)


def test_open_reads_a_tensor_of_one_piece():
    _, op, changes, _ = TABLE["frames"][0]
    header, payload = parts_of(op, changes)

    async def opened():
        with await dlw.open(header + payload) as file:
            assert list(file) == ["x"]
            (t,) = await file.load("x")
            with t:
                assert (str(t.dtype), t.shape) == ("float32", (2, 2))
                assert t.numpy().tobytes() == payload

    run(opened())
