"""Parts of tensors in files, and models in several files: only their elements are read, and they are what an index of the whole
gives. tests/js/open/file_parts.test.mjs has servers."""

import asyncio
import base64
import io
import json
import math
import os
import random
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import DTYPES, run
from tensor_files import archive_of, npy_of, opened, saved

import dlpack_web as dlw
from dlpack_web._files import local, parts, shards
from dlpack_web._files.headers import Entry

sys.path.append(str(Path(__file__).parents[2] / "files"))
from make_vectors import MODELS, model_of, shard

WHOLE = np.arange(4096 * 64, dtype="f4").reshape(4096, 64)


def loaded(part, **options):
    with run(part.load(**options)) as tensor:
        return tensor.numpy().copy()


def test_a_part_has_its_properties_before_it_is_loaded():
    part = opened(saved({"w": WHOLE})).get_slice("w")
    assert (part.shape, part.dtype, part.nbytes) == ((4096, 64), "float32", 1 << 20)
    rows = part[1000:2000, ::-2, None]
    assert (rows.shape, rows.nbytes) == ((1000, 32, 1), 128_000)
    assert isinstance(rows, dlw.TensorPart)
    assert "[1000, 32, 1] of float32" in repr(rows)
    assert np.array_equal(loaded(rows), WHOLE[1000:2000, ::-2, None])
    assert np.array_equal(loaded(part), WHOLE)
    assert loaded(part[3, 4], dtype="float16").dtype == "f2"


def test_a_part_of_one_array():
    for data in (npy_of(WHOLE), npy_of(np.asfortranarray(WHOLE))):
        with opened(data, part=np.s_[8:10, ..., 3]) as tensor:
            assert np.array_equal(tensor.numpy(), WHOLE[8:10, 3])
    raw = WHOLE.tobytes()
    with opened(raw, dtype="float32", shape=(-1 + 4097, 64), part=-1) as tensor:
        assert np.array_equal(tensor.numpy(), WHOLE[-1])


@pytest.mark.skipif(sys.platform == "emscripten", reason="files are read, not mapped")
def test_a_part_of_a_mapped_file_is_a_view(tmp_path):
    path = tmp_path / "w.npy"
    np.save(path, WHOLE)
    with opened(path, part=np.s_[5:7]) as tensor:
        assert tensor.read_only
        assert np.array_equal(tensor.numpy(), WHOLE[5:7])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (4096, IndexError),
        (-4097, IndexError),
        ((0, 0, 0), IndexError),
        ((..., ...), IndexError),
        (slice(0, 5, 0), ValueError),
        ("w", TypeError),
        ([0, 1], TypeError),
        (True, TypeError),
        (1.0, TypeError),
        (np.array([True]), TypeError),
        (np.True_, TypeError),
        (np.array([1]), TypeError),
        (np.array(1.0), TypeError),
        (np.s_[0:1.5], TypeError),
        ((np.int64(0), np.int64(64)), IndexError),
    ],
)
def test_what_is_not_a_part_is_refused(key, error):
    with pytest.raises(error):
        opened(saved({"w": WHOLE})).get_slice("w")[key]
    with pytest.raises(error):
        opened(npy_of(WHOLE), part=key)


@pytest.mark.parametrize(
    "key",
    [
        np.int64(1),
        np.array(-3),
        (np.int64(1), np.array(2)),
        (np.uint8(200), slice(np.int64(9), np.int16(2), np.int8(-3))),
        (..., np.int32(-1)),
        (None, np.int64(-4096), None, ...),
        (np.s_[::-1], np.s_[: np.array(4) : np.uint8(2)]),
        (),
    ],
)
def test_numbers_of_numpy_are_numbers(key):
    file = opened(saved({"w": WHOLE}))
    part = file.get_slice("w")[key]
    assert part.shape == WHOLE[key].shape
    assert np.array_equal(loaded(part), WHOLE[key])
    with opened(npy_of(WHOLE), part=key) as tensor:
        assert np.array_equal(tensor.numpy(), WHOLE[key])
    if not isinstance(key, tuple) or key:
        with pytest.raises(TypeError, match="all indices at once"):
            part[0]


class Counting(io.FileIO):
    """How much is read of a file, and how often."""

    def readinto(self, memory):
        self.reads.append(super().readinto(memory))
        return self.reads[-1]


def test_near_elements_are_read_at_once_and_distant_ones_alone(tmp_path, monkeypatch):
    path = tmp_path / "w.raw"
    monkeypatch.setattr(local, "IN_BROWSER", True)  # files are read, not mapped
    monkeypatch.setattr(local.io, "FileIO", Counting)
    for width, key, most_bytes, most_reads in [
        (2000, np.s_[:, ::2], 2_000_000, 1),
        (2000, np.s_[:, :1, None], 2_000_000, 1),
        (parts.NEAR, np.s_[3:9, :2], 6 * parts.NEAR, 1),
        (2 * parts.NEAR, np.s_[3:9, ::-80_000], 6, 6),
        (2 * parts.NEAR, np.s_[3:5, 0:4:3], 8, 2),
        (2000, np.s_[::100, 7:], 19_930, 10),
    ]:
        shape = 1000, width
        whole = np.resize(np.arange(251, dtype="u1"), shape)
        whole.tofile(path)
        Counting.reads = []
        with opened(path, dtype="uint8", shape=shape, part=key) as tensor:
            assert np.array_equal(tensor.numpy(), whole[key])
        assert sum(Counting.reads) <= most_bytes
        assert len(Counting.reads) <= most_reads


@pytest.mark.parametrize("most", [1, 100, 5000])
def test_blocks_have_their_most_unless_their_elements_are_contiguous(most):
    entry = Entry("w", dlw.DType("uint8"), (50, 60, 70), False, 10, 210_000)
    (rows,) = parts.blocks_of(parts.part_of(np.s_[2:9], entry.shape), entry, most)
    assert (rows.start, rows.nbytes) == (10 + 2 * 4200, 7 * 4200)
    for key in np.s_[:, :, ::2], np.s_[::2, 1:-1, 3:5], np.s_[:, ::59, ::3]:
        part = parts.part_of(key, entry.shape)
        blocks = [*parts.blocks_of(part, entry, most)]
        assert max(block.nbytes for block in blocks) <= max(most, 2)
        assert sum(math.prod(block.shape) for block in blocks) == math.prod(part.shape)
        assert blocks == sorted(blocks)  # by their places in the file


def test_as_many_axes_as_there_may_be():
    data, shape = bytes(range(12)), [1] * 62 + [3, 4]
    key = np.s_[..., ::2, 1::2]
    for dtype in ("uint8", "int4x2"):  # a view, and what is read
        with opened(data, dtype=dtype, shape=shape, part=key) as tensor:
            assert (tensor.ndim, tensor.tobytes()) == (64, bytes([1, 3, 9, 11]))


def test_a_part_of_a_part_a_missing_tensor_and_a_closed_file():
    file = opened(saved({"w": WHOLE}))
    with pytest.raises(TypeError, match="all indices at once"):
        file.get_slice("w")[1][2]
    with pytest.raises(KeyError, match="no tensor 'v'"):
        file.get_slice("v")
    part = file.get_slice("w")[1:]
    file.close()
    with pytest.raises(dlw.ReleasedError):
        run(part.load())
    with pytest.raises(TypeError, match=r"several tensors.*get_slice"):
        opened(saved({"w": WHOLE}), part=0)
    with pytest.raises(BufferError, match="less than a byte"):
        opened(bytes(8), dtype="int4", shape=16, part=np.s_[2:4])


@pytest.mark.parametrize(
    "key", [np.s_[5:5], np.s_[5:3], np.s_[9999:, :4], np.s_[7, 0:0]]
)
def test_a_part_without_elements(key):
    for data in (saved({"w": WHOLE}), archive_of({"w": WHOLE})):
        assert loaded(opened(data).get_slice("w")[key]).shape == WHOLE[key].shape


def test_huge_numbers_select_what_they_select_in_python():
    part = opened(saved({"w": WHOLE})).get_slice("w")
    for key in (np.s_[-(10**30) : 10**30 : 4000], np.s_[10**30 :], np.s_[:: 10**20]):
        assert np.array_equal(loaded(part[key]), WHOLE[key])


def test_a_tensor_in_parts():
    async def shapes(data, **options):
        with await dlw.open(data) as file:
            found = []
            async for rows in file.parts("w", **options):
                with rows:
                    found.append(rows.numpy().copy())
        return found

    found = run(shapes(saved({"w": WHOLE}), nbytes=256 * 1000 + 255))
    assert [len(each) for each in found] == [1000, 1000, 1000, 1000, 96]
    assert np.array_equal(np.concatenate(found), WHOLE)
    assert len(run(shapes(saved({"w": WHOLE})))) == 1
    assert run(shapes(saved({"w": np.float32(3)})))[0] == 3
    assert run(shapes(saved({"w": np.zeros((0, 5))})))[0].shape == (0, 5)
    with pytest.raises(BufferError, match="one row of tensor 'w' has 256 bytes"):
        run(shapes(saved({"w": WHOLE}), nbytes=255))
    with pytest.raises(TypeError, match="'float' object"):
        run(shapes(saved({"w": WHOLE}), nbytes=1e9))
    for tag, shape, asked in (
        ("F99", [0], {"nbytes": 1}),
        ("V2", [32], {"dtype": "bfloat16"}),
    ):
        unknown = {"w": {"dtype": tag, "shape": shape, "data_offsets": [0, 64]}}
        header = json.dumps(unknown).encode()
        data = len(header).to_bytes(8, "little") + header + bytes(64)
        with pytest.raises(BufferError, match=tag):
            run(shapes(data, **asked))


def test_a_compressed_array_is_checked_to_its_end():
    data = archive_of({"w": WHOLE}, zipfile.ZIP_DEFLATED)
    assert np.array_equal(loaded(opened(data).get_slice("w")[7:9]), WHOLE[7:9])
    broken = bytearray(data)
    crc = zipfile.ZipFile(io.BytesIO(data)).infolist()[0].CRC.to_bytes(4, "little")
    at = broken.rindex(crc)
    broken[at] ^= 1
    broken[14] ^= 1
    with pytest.raises(BufferError, match="CRC"):
        run(opened(bytes(broken)).get_slice("w")[7:9].load())


def test_a_part_of_a_stored_array_is_of_that_array():
    """An archive of the same size has taken the place of the one that was opened."""
    a, b = np.zeros(4, "u1"), np.ones(4, "u1")
    first, other = archive_of({"a": a, "b": b}), archive_of({"b": a, "a": b})
    data = bytearray(first)
    file = opened(data)
    data[:] = other
    with pytest.raises(BufferError, match="header b'b"):
        run(file.get_slice("a")[0:2].load())
    data[:] = first
    assert loaded(file.get_slice("a")[0:2]).tolist() == [0, 0]
    data[:4] = b"XXXX"
    with pytest.raises(BufferError, match="magic"):
        run(file.get_slice("a")[0:2].load())


@pytest.mark.parametrize("seed", range(120))
def test_random_parts_are_what_an_index_of_the_whole_gives(seed, tmp_path, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(local, "PIECE", chance.choice([16, 64, 500, 8 << 20]))
    monkeypatch.setattr(parts, "NEAR", chance.choice([0, 3, 20, 1 << 15]))
    monkeypatch.setattr(local, "IN_BROWSER", seed % 2 == 0)
    shape = [chance.choice([0, 1, 2, 3, 5, 9, 40]) for _ in range(chance.randrange(4))]
    dtype = chance.choice(["f4", "u1", "c8", "i8", "i2", "?"])
    whole = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    if chance.random() < 0.5:
        whole = np.asfortranarray(whole)

    def item(extent):
        def bound():
            return chance.choice([None, chance.randrange(-extent - 2, extent + 3)])

        if extent and chance.random() < 0.3:
            return chance.randrange(-extent, extent)
        return slice(bound(), bound(), chance.choice([None, 1, 2, 3, -1, -2, 50]))

    key = [item(extent) for extent in shape[: chance.randrange(len(shape) + 1)]]
    if len(key) == len(shape) or chance.random() < 0.3:
        key.insert(
            chance.randrange(len(key) + 1) if len(key) == len(shape) else len(key), ...
        )
    if chance.random() < 0.3:
        key.insert(chance.randrange(len(key) + 1), None)
    key = tuple(key)
    expected = whole[key]
    odd = saved({"a": np.zeros(3, "u1"), "w": whole.copy(order="C")})
    files = [
        odd,
        archive_of({"w": whole}),
        archive_of({"w": whole}, zipfile.ZIP_DEFLATED),
    ]
    path = tmp_path / "w.safetensors"
    path.write_bytes(odd)
    before = dlw.live_tensors()
    for source in [*files, path]:
        with opened(source) as file:
            part = file.get_slice("w")[key]
            assert part.shape == expected.shape
            assert part.nbytes == expected.nbytes
            told = []
            assert np.array_equal(loaded(part), expected)
    with opened(npy_of(whole), part=key, progress=lambda *a: told.append(a)) as tensor:
        assert np.array_equal(tensor.numpy(), expected)
        assert told[-1] == (expected.nbytes, expected.nbytes)
    raw = {"dtype": "int4x2" if dtype == "u1" else whole.dtype, "shape": whole.shape}
    with opened(whole.tobytes(), format="raw", part=key, **raw) as tensor:
        assert (tensor.shape, tensor.tobytes()) == (expected.shape, expected.tobytes())
    assert dlw.live_tensors() == before


def test_parts_are_loaded_side_by_side(host_python):
    async def both():
        with await dlw.open(saved_data) as file:
            part = file.get_slice("w")
            found = await asyncio.gather(part[1:3].load(), part[2:4].load())
            return [tensor.numpy().copy() for tensor in found]

    saved_data = saved({"w": WHOLE})
    first, second = asyncio.run(both())
    assert np.array_equal(first[1], second[0])


# --- sharded models ---------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    """The path of an index, beside its shards."""
    for name, data in model_of().items():
        (tmp_path / name).write_bytes(data)
    return tmp_path / "model.index.json"


def test_a_sharded_model_is_one_file(model):
    for source in (model, str(model), model.parent, str(model.parent)):
        with opened(source) as file:
            assert len(file) == 6
            assert file.metadata == {"total_size": "1000.0", "by": "us", "n": "-5"}
            assert file.info("layer.3.w") == ("float32", (3, 4), 48)
            assert len(run(file.load())) == 6
            assert file["layer.2.w"].numpy().tolist() == [[2.0] * 4] * 2
            assert loaded(file.get_slice("layer.3.w")[1, 1:]).tolist() == [3.0] * 3
        with pytest.raises(dlw.ReleasedError):
            file["layer.1.w"]


def descriptors():
    """How many are open."""

    def is_open(fd):
        try:
            return bool(os.fstat(fd))
        except OSError:
            return False

    return sum(map(is_open, range(200)))


@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
def test_a_shard_is_open_only_while_it_is_read(model, read, monkeypatch):
    monkeypatch.setattr(local, "IN_BROWSER", read)
    before, told = descriptors(), []
    monkeypatch.chdir(model.parent)
    with opened(model.name, progress=lambda *args: told.append(args)) as file:
        monkeypatch.chdir("/")
        paths, open_path = [], local.open_path
        monkeypatch.setattr(
            local, "open_path", lambda path: paths.append(path) or open_path(path)
        )
        assert descriptors() == before
        one, other = run(file.load("layer.1.w", "layer.1.b"))
        assert one.read_only is not read
        assert len(paths) == 1 + read  # tensors share a mapping
        kept = sys.version_info < (3, 13) and not read  # for a mapping in use
        assert descriptors() == before + kept
        one.release()
        assert loaded(file.get_slice("layer.3.w")[1, ::2]).tolist() == [3.0, 3.0]
        assert descriptors() == before + kept
        del told[:]
        run(file.load())
        assert told[-1] == (128, 128)
        file["layer.2.b"].release()
        with pytest.raises(BufferError, match="cannot convert") as caught:
            run(file.load("layer.2.b", dtype="int8"))
        assert descriptors() == before + 3 * kept
        assert caught.tb is not None  # which has the frames that read it
        other.release()


@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
def test_a_shard_that_was_replaced_is_noticed(model, read, monkeypatch):
    monkeypatch.setattr(local, "IN_BROWSER", read)
    with opened(model) as file:
        (kept,) = run(file.load("layer.2.w"))
        path = model.with_name(shard(2))
        path.with_suffix(".new").write_bytes(path.read_bytes().replace(b"@", b"A"))
        path.with_suffix(".new").replace(path)
        for ask in (
            lambda: file["layer.2.b"],
            lambda: loaded(file.get_slice("layer.2.w")[1]),
        ):
            with pytest.raises(
                BufferError, match=r"model-00002.*changed since it was opened"
            ):
                ask()
        assert kept.numpy().tolist() == [[2.0] * 4] * 2
        assert file["layer.1.w"].shape == (1, 4)
        path.unlink()
        with pytest.raises(FileNotFoundError):
            file["layer.2.b"]


def test_an_index_is_compared_with_its_shards_once(model, monkeypatch):
    class Index(dict):
        looks = 0

        def items(self):
            Index.looks += 1
            return super().items()

    found = shards.read_index
    monkeypatch.setattr(shards, "read_index", lambda file: (Index(found(file)[0]), {}))
    assert len(opened(model)) == 6
    assert Index.looks == 1


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["name"])
def test_a_model_that_contradicts_itself_is_refused(row, tmp_path, monkeypatch):
    for name, data in row["files"].items():
        (tmp_path / name).write_bytes(base64.b64decode(data))
    before = dlw.live_tensors(), descriptors()
    monkeypatch.setattr(local, "IN_BROWSER", True)
    if "error" not in row:
        assert len(opened(tmp_path)) == 6
        return
    with pytest.raises((BufferError, FileNotFoundError), match=row["error"]) as caught:
        opened(tmp_path / "model.index.json")
    assert (dlw.live_tensors(), descriptors()) == before
    assert caught.tb is not None


def test_a_folder_without_one_index(model):
    model.with_name("other.index.json").write_bytes(model.read_bytes())
    with pytest.raises(BufferError, match=r"several indexes: model\..*, other\."):
        opened(model.parent)
    for index in model.parent.glob("*.json"):
        index.unlink()
    with pytest.raises(IsADirectoryError, match="no index of a sharded model"):
        opened(model.parent)


# --- dtypes that NumPy's files do not say ---------------------------------------------------------

ML_DTYPES = [row["name"] for row in DTYPES if "float8" in row["name"]] + ["bfloat16"]


@pytest.mark.parametrize("name", ML_DTYPES)
def test_what_ml_dtypes_wrote_is_read_with_its_dtype(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([[0.5, 1, 2], [4, 8, 0.25]], getattr(ml_dtypes, name))
    bits = array.view("u1" if array.itemsize == 1 else "u2")
    data = npy_of(array)
    for columns in (False, True):
        source = npy_of(np.asfortranarray(array)) if columns else data
        with opened(source, dtype=name) as tensor:
            assert (tensor.dtype, tensor.shape) == (name, (2, 3))
            assert np.array_equal(tensor.numpy().view(bits.dtype), bits)
    with opened(data, dtype=name, part=np.s_[1, ::-1]) as tensor:
        assert np.array_equal(tensor.numpy().view(bits.dtype), bits[1, ::-1])
    with opened(archive_of({"a": array, "b": np.ones(2, "f4")})) as file:
        with pytest.raises(BufferError, match="give the"):
            file["a"]
        with run(file.load("a", dtype=name))[0] as tensor:
            assert np.array_equal(tensor.numpy().view(bits.dtype), bits)
            assert file["a"] is tensor
            assert run(file.load("a")) == (tensor,)
            assert run(file.load()) == (tensor, file["b"])
            for ask in (
                lambda: run(file.load("a", dtype="float64")),
                lambda: file["c"],
            ):
                with pytest.raises((BufferError, KeyError)):
                    ask()
        with pytest.raises(BufferError, match="give the"):
            file["a"]  # it was released
        assert np.array_equal(
            loaded(file.get_slice("a")[1:], dtype=name).view(bits.dtype), bits[1:]
        )
        with pytest.raises(BufferError):
            run(file.load("a", dtype="float64"))
    with pytest.raises(BufferError, match="give the"):
        opened(data)


def test_a_dtype_that_npy_lacks_is_not_saved_as_another():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(BufferError, match="save it as safetensors"):
        run(dlw.save(None, np.zeros(2, ml_dtypes.bfloat16)))


@pytest.mark.parametrize("name", ["x.pt", "x.npy.gz", "a.txt", "a.NPZ", "model-v1.2"])
def test_another_suffix_is_not_written(name, tmp_path):
    for tensors in (np.ones(3), {"a": np.ones(3)}):
        with pytest.raises(ValueError, match=r"files (are not|cannot be) written"):
            run(dlw.save(tmp_path / name, tensors))
    assert list(tmp_path.iterdir()) == []
    run(dlw.save(tmp_path / name, np.ones(3), format="npy"))
    assert np.load(tmp_path / name).tolist() == [1, 1, 1]
    for good in ("model", ".hidden", "a.NPY"):
        run(dlw.save(tmp_path / good, np.ones(3)))
        assert np.load(tmp_path / good).size == 3
