"""What a file says is bounded before it is read, inflated or shown; and one array of an archive
that cannot be read does not keep the others from being read."""

import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from conftest import run

import dlpack_web as dlw

MB = 1 << 20
LONG = "long " * (MB // 5)


def opened(source, **options):
    return run(dlw.open(source, **options))


def peak_of(work):
    """Bytes that Python allocated at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def archive_of(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# --- memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
@pytest.mark.parametrize("length", [0, 1, 2, 10_000, 10_001])
@pytest.mark.parametrize("major", [1, 2, 3])
def test_a_header_is_read_and_no_more(major, length, read, tmp_path, monkeypatch):
    from dlpack_web._files import local

    monkeypatch.setattr(local, "IN_BROWSER", read)
    width = 2 if major == 1 else 4
    head = b"\x93NUMPY" + bytes([major, 0]) + length.to_bytes(width, "little")
    data = archive_of({"bomb": head + bytes(16 * MB), "a": npy_of(np.arange(3))})
    assert len(data) < 30_000
    path = tmp_path / "file"
    path.write_bytes(data)

    def work():
        with opened(path) as file:
            assert list(file) == ["bomb", "a"]
            assert file["a"].numpy().tolist() == [0, 1, 2]
            with pytest.raises(BufferError, match=r"'bomb' cannot be loaded"):
                file["bomb"]

    assert peak_of(work) < MB


def test_elements_are_not_allocated_by_sizes_that_cannot_be_true():
    header = (
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**40},), }}\n".encode()
    )
    npy = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header
    said = len(npy) + 2**40
    wide = struct.pack("<HHQ", 1, 8, said)
    packed = zlib.compress(npy + bytes(MB), wbits=-15)
    fields = (20, 0, 8, 0, 33, 0, len(packed), 2**32 - 1, 5, 12)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", *fields) + b"a.npy" + wide
    central = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, *fields, 0, 0, 0, 0, 0)
    central += b"a.npy" + wide
    at = len(local) + len(packed)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(central), at, 0)

    def work():
        with (
            opened(local + packed + central + end) as file,
            pytest.raises(BufferError, match=f"its {said} bytes cannot be deflated to"),
        ):
            file["a"]

    assert peak_of(work) < MB


# --- messages -----------------------------------------------------------------------------


def tensors_of(facts, data=bytes(8), form=json.dumps):
    header = form(facts).encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + data


def fact(dtype="F32", shape=(2,), begin=0, end=8, **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end], **more}


FILES = {
    "a dtype": {"a": fact(LONG)},
    "a key": {"a": fact(**{LONG: 1})},
    "keys": {"a": fact(**{f"{i} {LONG[:10_000]}": 1 for i in range(100)})},
    "an extent": {"a": fact(shape=[LONG])},
    "extents": {"a": fact(shape=[2**53 - 1] * 64)},
    "a number": {"a": fact(shape=[10**4000])},
    "a shape of a name": {LONG: fact(shape=[3])},
    "a hole": {LONG: fact(begin=8, end=16)},
    "overlaps": {"a": fact(), LONG: fact(begin=4, end=12)},
    "a surrogate": {LONG + "\ud800": fact()},
    "metadata": {"__metadata__": {LONG: 1}},
    "bits": {LONG: fact("F4", [15])},
    "no facts": {LONG: LONG},
}


@pytest.mark.parametrize("facts", FILES.values(), ids=FILES)
def test_a_message_is_short_whatever_the_header_says(facts):
    with pytest.raises(BufferError) as caught:
        opened(tensors_of(facts), format="safetensors")
    assert len(str(caught.value)) <= 2000


def test_a_name_twice_is_cut():
    text = f'{{"{LONG}":{json.dumps(fact())},"{LONG}":0}}'
    with pytest.raises(BufferError, match="twice") as caught:
        opened(tensors_of(text, form=str))
    assert len(str(caught.value)) <= 2000


def test_messages_about_tensors_are_short():
    names = [f"{i} {LONG}" for i in range(30)]
    facts = {
        name: fact("F4", [2], i, i + 1) for i, name in enumerate([*names, "another"])
    }
    file = opened(tensors_of(facts, bytes(31)))
    for ask in (
        lambda: file[names[0]],
        lambda: file["none" + LONG],
        lambda: run(file.load()),
        lambda: file.info(LONG),
    ):
        with pytest.raises((BufferError, KeyError)) as caught:
            ask()
        assert len(str(caught.value)) <= 2000
    assert len(repr(file)) <= 2000
    file.close()
    descr = f"{{'descr': '{'x' * 9900}', 'fortran_order': False, 'shape': (), }}\n"
    npy = b"\x93NUMPY\1\0" + len(descr).to_bytes(2, "little") + descr.encode()
    name = LONG[:60_000]
    with opened(archive_of({name: npy, "b": b"?"})) as file:
        assert file.info(name).dtype == "x" * 100
        for each in file:
            with pytest.raises(BufferError) as caught:
                file[each]
            assert len(str(caught.value)) <= 2000


def test_messages_about_what_is_saved_are_short():
    array = np.zeros(3)
    for tensors, options in [
        ({LONG.encode(): array}, {}),
        ({LONG + "\ud800": array}, {}),
        ({LONG: array * 1j}, {}),
        ({(LONG,) * 3: array}, {}),
        ({"a": array}, {"metadata": {"a": LONG.encode()}}),
        ({"a": array}, {"metadata": {LONG: [LONG]}}),
        ({"a": array}, {"format": LONG}),
    ]:
        with pytest.raises((TypeError, ValueError, BufferError)) as caught:
            run(dlw.save(None, tensors, **options))
        assert len(str(caught.value)) <= 2000
    for options in ({"format": LONG}, {"progress": LONG}):
        with pytest.raises((TypeError, ValueError)) as caught:
            opened(b"", **options)
        assert len(str(caught.value)) <= 2000


# --- buffers that are no bytes ------------------------------------------------------------

DATA = np.frombuffer(npy_of(np.arange(4, dtype="u1")).ljust(144, b"\0"), "u1")[:132]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view("<M8[s]") if len(x) % 8 == 0 else x[:128].view("<M8[s]"),
        lambda x: x[:128].view("m8[ns]").reshape(4, 4),
    ],
)
def test_elements_that_no_buffer_has_are_named(view):
    with pytest.raises(BufferError, match=r"ndarray cannot be read .*x\.tobytes\(\)"):
        opened(view(DATA), dtype="uint8", format="raw")


@pytest.mark.parametrize("code", ["u1", ">i4", "f2", "c16", "?", "S2", "f4,>i2", "g"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 3), (0, 0, 2), ()])
def test_a_buffer_is_its_bytes_whatever_its_elements_and_shape(code, shape):
    array = np.zeros(shape, code)
    array.reshape(-1).view("u1")[:] = 7
    with opened(array, dtype="uint8", format="raw") as tensor:
        assert tensor.shape == (array.nbytes,)
        assert tensor.tobytes() == array.tobytes()
    if array.size > 1:
        with pytest.raises(BufferError, match="must be contiguous"):
            opened(array.T if array.ndim > 1 else array[::2], dtype="uint8")
