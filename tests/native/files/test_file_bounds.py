"""What a file says is bounded before it is read, inflated or shown; and one array of an archive
that cannot be read does not keep the others from being read. Random tensors: what NumPy and
safetensors write is what we read, and what we write is what they read."""

import io
import json
import random
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from conftest import DTYPES, run
from tensor_files import archive_of, npy_of, opened

import dlpack_web as dlw

try:
    import safetensors
    import safetensors.numpy
except ImportError:
    safetensors = None

MB = 1 << 20
LONG = "long " * (MB // 5)


def peak_of(work):
    """Bytes that Python allocated at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
@pytest.mark.parametrize("length", [0, 1, 2, 10_000, 10_001])
@pytest.mark.parametrize("major", [1, 2, 3])
def test_a_header_is_read_and_no_more(major, length, read, tmp_path, monkeypatch):
    from dlpack_web._files import local

    monkeypatch.setattr(local, "IN_BROWSER", read)
    width = 2 if major == 1 else 4
    head = b"\x93NUMPY" + bytes([major, 0]) + length.to_bytes(width, "little")
    data = archive_of(
        {"bomb": head + bytes(16 * MB), "a": np.arange(3)}, zipfile.ZIP_DEFLATED
    )
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


# --- random tensors, byte for byte where the format has one form; headers at their bounds ---------

with_safetensors = pytest.mark.skipif(
    safetensors is None, reason="safetensors has a native part"
)
NUMPYS = [row["name"] for row in DTYPES if row["numpy"] == "numpy"]
SEEDS = range(40)


def random_array(chance, dtypes=NUMPYS):
    """Of any shape, order and strides; often without elements, of one row or one column."""
    shape = [chance.choice([0, 1, 1, 2, 3, 5]) for _ in range(chance.randrange(5))]
    dtype = np.dtype(chance.choice(dtypes))
    size = int(np.prod(shape)) * dtype.itemsize
    data = np.frombuffer(chance.randbytes(size), "u1")
    array = (data & 1 if dtype == bool else data).view(dtype).reshape(shape)
    if array.dtype.kind in "fc":  # no NaN, so that == compares
        array = np.nan_to_num(array)
    array = array.transpose(chance.sample(range(array.ndim), array.ndim))
    for axis in range(array.ndim):
        if chance.random() < 0.2:
            array = np.flip(array, axis)
    return np.asfortranarray(array) if chance.random() < 0.3 else array


def written_npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def is_same(tensor, array):
    assert tensor.shape == array.shape
    assert tensor.dtype == str(array.dtype)
    assert tensor.tobytes() == array.tobytes()


@with_safetensors
@pytest.mark.parametrize("seed", SEEDS)
def test_npy_as_numpy_writes_and_reads_it(seed):
    chance = random.Random(seed)
    for _ in range(25):
        array = random_array(chance)
        with run(dlw.open(written_npy(array))) as tensor:
            is_same(tensor, array)
            if (
                array.size > 1 and 1 not in array.shape
            ):  # the order of such has a meaning
                strides = np.load(io.BytesIO(written_npy(array))).strides
                assert tensor.strides == tuple(x // array.itemsize for x in strides)
        data = run(dlw.save(None, array))
        # NumPy copies what is in no order of its own; both write the same header then.
        assert data == written_npy(array)


@with_safetensors
@pytest.mark.parametrize("seed", SEEDS)
def test_safetensors_as_their_library_writes_and_reads_them(seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 12)
    safe = [name for name in NUMPYS if name != "complex128"]
    arrays = {
        f"{chance.randrange(99)} {i}": random_array(chance, safe) for i in range(count)
    }
    said = {"by": "me"} if seed % 2 else None
    plain = {
        name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()
    }
    with run(dlw.open(safetensors.numpy.save(plain, said))) as file:
        assert set(file) == set(arrays)
        assert file.metadata == (said or {})
        for name, array in arrays.items():
            is_same(file[name], array)
    data = run(dlw.save(None, arrays, metadata=said))
    for name, array in safetensors.numpy.load(data).items():
        assert array.shape == arrays[name].shape
        assert array.dtype == arrays[name].dtype
        assert array.tobytes() == arrays[name].tobytes()
    with run(dlw.open(data)) as file:
        assert list(file) == list(arrays) or 0 in [a.size for a in arrays.values()]
        for name, array in arrays.items():
            is_same(file[name], array)


def fact_of_bytes(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_of(facts, data):
    header = json.dumps(facts).encode()
    return len(header).to_bytes(8, "little") + header + data


@with_safetensors
@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_that_are_moved_are_refused_as_by_its_library(seed):
    chance = random.Random(seed)
    for _ in range(20):
        facts, at = {}, 0
        for i in range(chance.randrange(1, 5)):
            size = chance.choice([0, 1, 3])
            facts[str(i)] = fact_of_bytes("U8", [size], at, at + size)
            at += size
        for _ in range(chance.randrange(1, 3)):
            each = chance.choice(list(facts.values()))["data_offsets"]
            each[chance.randrange(2)] += chance.choice([-1, 1])
        data = safetensors_of(facts, bytes(max(at + chance.choice([-1, 0, 0, 1]), 0)))
        try:
            theirs = {
                name: bytes(f["data"]) for name, f in safetensors.deserialize(data)
            }
        except (safetensors.SafetensorError, OverflowError):
            theirs = None
        try:
            with run(dlw.open(data, format="safetensors")) as file:
                ours = {name: file[name].tobytes() for name in file}
        except BufferError:
            ours = None
        assert ours == theirs


@with_safetensors
@pytest.mark.parametrize(
    "shape", [(7,), (1,), (0,), (), (1, 1), (1, 7), (7, 1), (2, 3)]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_that_is_written_is_the_one_that_numpy_writes(shape, order):
    array = np.zeros(shape, order=order)
    for given in (array, array[::-1] if array.ndim else array, array.T):
        assert run(dlw.save(None, given)) == written_npy(given)
