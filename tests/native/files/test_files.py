"""Files of tensors, as Python reads them: the vectors that all parsers share, random damage,
memory that is mapped, and what is written."""

import asyncio
import base64
import io
import os
import random
import re
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from conftest import run
from tensor_files import opened, saved

import dlpack_web as dlw

sys.path.append(str(Path(__file__).parents[2] / "files"))
from make_vectors import all_vectors

# Shapes of other machines, whose addresses have more bits, are refused here.
VECTORS = [
    vector
    for vector in all_vectors()
    if all(
        max((*each["shape"], 0)) <= sys.maxsize
        for each in vector.get("tensors", {}).values()
    )
]
GOOD = [
    each
    for each in VECTORS
    if "tensors" in each and "stdlib" not in each and "refused" not in each
]
IDS = [vector["name"] for vector in VECTORS]


def facts(tensor):
    return {
        "dtype": str(tensor.dtype),
        "shape": list(tensor.shape),
        "values": base64.b64encode(tensor.tobytes()).decode(),
    }


def contents(source, **options):
    found = opened(source, **options)
    if isinstance(found, dlw.Tensor):
        return {"": facts(found)}
    with found:
        return all_of(found, found)


def all_of(file, names):
    for name in names:
        tensor = file[name]
        assert file.info(name) == (tensor.dtype, tensor.shape, tensor.nbytes)
    return {name: facts(file[name]) for name in names}


@pytest.fixture(params=["bytes", "a path"])
def place(request, tmp_path):
    """Where a file is: what makes bytes a source."""

    def put(data):
        if request.param == "bytes":
            return data
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_vector(vector, place):
    source = place(base64.b64decode(vector["file"]))
    options = vector.get("options", {})
    if "stdlib" in vector:  # whose zipfile reads such archives in a way of its own
        with suppress(BufferError):
            assert contents(source, **options) == vector["stdlib"]
    elif "refused" in vector:
        with opened(source) as file:
            check_refused(source, file, vector["refused"])
            assert all_of(file, vector["tensors"]) == vector["tensors"]
    elif "tensors" in vector:
        found = contents(source, **options)
        assert found == vector["tensors"]
        assert [*found] == vector["names"]
    else:
        error = vector["error"].replace("(?i)", "")
        with pytest.raises(BufferError, match=f"(?i){error}") as told:
            contents(source, **options)
        assert len(str(told.value)) <= 2000


def check_refused(source, file, refused):
    """They are listed as all others, and asking for their elements is an error."""
    for name, facts in refused.items():
        dtype, shape, nbytes = file.info(name)
        assert (dtype, list(shape), nbytes) == (
            facts["dtype"],
            facts["shape"],
            facts["nbytes"],
        )
        assert not isinstance(dtype, dlw.DType)
        message = rf"tensor {name!r} .*({facts['error']})"
        for ask in (lambda: file[name], lambda: run(file.load("a", name))):  # noqa: B023
            with pytest.raises(BufferError, match=message):
                ask()
    assert "0 loaded" in repr(file)
    first = next(name for name in file if name in refused)
    message = rf"tensor {first!r} .*the others can: `await file.load\('a'\)`"
    with pytest.raises(BufferError, match=message):
        run(file.load())
    assert "0 loaded" in repr(file)  # not even those before it
    assert set(file) == {"a", *refused}
    assert len(file) == 1 + len(refused)
    assert all(name in file for name in refused)
    with pytest.raises(BufferError, match=r"cannot|has "):
        dict(file)
    told = []
    tensors = opened(source, progress=lambda *bytes: told.append(bytes))
    run(tensors.load("a"))
    assert told == [(tensors["a"].nbytes,) * 2]
    tensors["a"].release()


def test_random_damage_is_told_or_changes_elements_alone():
    chance = random.Random(17)
    told = 0
    for _ in range(1500):
        vector = chance.choice(GOOD)
        data = bytearray(base64.b64decode(vector["file"]))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data) + 1) :]
        for _ in range(chance.randrange(4)):
            near = min(len(data), 300)
            if near:
                at = chance.randrange(near)
                at = at if chance.random() < 0.5 else len(data) - 1 - at
                data[at] = chance.randrange(256)
        options = vector.get("options", {})
        if "format" not in options and "shape" not in options:
            options = {}
        try:
            contents(bytes(data), **options)
        except BufferError:
            told += 1
    assert told > 200


def entries(count):
    facts = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return ",".join(f'"{i}":{facts}' for i in range(count))


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ('{"' + '\\"' * 2_000_000, "not JSON"),
        ("{" + '"a' * 1_000_000, "not JSON"),
        ("{" + entries(50_000) + ',"7":0}', '"7" twice'),
        ("{" + "[" * 4_000_000, "nested"),
        ('{"a":' + "9" * 4_000_000 + "}", "9 where a size is needed"),
    ],
    ids=["no end", "quotes", "names", "nested", "digits"],
)
def test_a_long_header_is_read_in_linear_time(header, error):
    # Looked at again from each of its characters, one of these would take hours.
    data = len(header).to_bytes(8, "little") + header.encode()
    with pytest.raises(BufferError, match=error) as told:
        opened(data, format="safetensors")
    assert len(str(told.value)) < 400


@pytest.mark.parametrize("vector", GOOD, ids=[vector["name"] for vector in GOOD])
def test_what_is_saved_is_what_is_opened(vector):
    found = opened(base64.b64decode(vector["file"]), **vector.get("options", {}))
    if isinstance(found, dlw.TensorFile):
        with found:
            run(found.load())
            data = saved(found, metadata=found.metadata)
            with opened(data) as again:
                assert again.metadata == found.metadata
    elif found.dtype.startswith(("bfloat16", "uint4", "float8")):
        with pytest.raises(BufferError, match=r"byte|no \w*float"):
            saved(found)
        return
    else:
        data = saved(found)
        with io.BytesIO(data) as file:  # NumPy itself reads what we wrote
            array = np.load(file)
        if "numpys" in vector:
            assert data == base64.b64decode(vector["file"])
        assert array.tobytes() == found.tobytes()
        assert array.shape == found.shape
    assert contents(data) == vector["tensors"]


# --- memory -------------------------------------------------------------------------------


def test_bytes_are_not_copied():
    array = np.arange(6, dtype="f4").reshape(2, 3)
    data = bytearray(saved(array))
    tensor = opened(data)
    assert not tensor.read_only
    data[128:132] = np.float32(7).tobytes()
    assert tensor.numpy()[0, 0] == 7
    with pytest.raises(BufferError, match=r"[Ee]xist"):
        data.append(0)
    tensor.release()
    assert opened(bytes(data)).read_only


def test_what_is_not_aligned_is_copied():
    data = b"x" + bytes(saved(np.arange(3.0)))
    tensor = opened(memoryview(data)[1:])
    assert tensor.numpy().tolist() == [0, 1, 2]
    assert not tensor.read_only


@pytest.mark.skipif(sys.platform == "emscripten", reason="files are read, not mapped")
def test_a_path_is_mapped_and_arrays_outlive_everything(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6.0).reshape(2, 3))
    tensor = opened(path)
    assert tensor.read_only
    array = tensor.numpy()
    assert not array.flags.writeable
    view = tensor[1]
    tensor.release()
    path.unlink()  # which the mapping outlives
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert view.numpy().tolist() == [3, 4, 5]
    del array
    view.release()
    mapped = Path("/proc/self/maps")
    if mapped.exists():
        assert "a.npy" not in mapped.read_text()


def test_a_str_is_a_path(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert opened(str(tmp_path / "a.npy")).numpy().tolist() == [0, 1, 2]
    (tmp_path / "model.safetensors").write_bytes(b"<!doctype html>")
    with pytest.raises(BufferError, match=r"like a \.safetensors"):
        opened(str(tmp_path / "model.safetensors"), dtype="float32")


@pytest.mark.skipif(sys.platform == "emscripten", reason="a page may ask for it")
def test_what_is_no_file():
    with pytest.raises(FileNotFoundError):
        opened("there/is/none.npy")


def test_arguments():
    for source in (None, 3, object(), [1, 2], np):
        with pytest.raises(TypeError, match="open takes"):
            opened(source)
    with pytest.raises(ValueError, match="format must be"):
        opened(b"", format="gguf")
    with pytest.raises(TypeError, match="need their dtype"):
        opened(b"", format="raw")
    with pytest.raises(TypeError, match="its own shape"):
        opened(saved(np.zeros(3)), shape=3)
    with pytest.raises(TypeError, match="progress"):
        opened(b"", progress=3)
    with pytest.raises(TypeError, match="unknown dtype"):
        opened(b"", dtype="flaot32")
    with pytest.raises(BufferError, match="must be contiguous"):
        opened(memoryview(bytes(8))[::2])


def test_progress_is_told_and_may_end_it():
    told = []
    data = saved(np.zeros(1000))
    opened(data, progress=lambda *args: told.append(args)).release()
    assert told[-1] == (8000, 8000)

    def stop(loaded, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opened(data, progress=stop)


# --- several tensors ------------------------------------------------------------------------


def test_a_mapping_of_tensors_that_are_loaded_when_asked_for():
    data = saved({"a": np.arange(3.0), "b": np.zeros((2, 0), "i4")})
    file = opened(data)
    assert (len(file), list(file), "a" in file, "c" in file) == (
        2,
        ["a", "b"],
        True,
        False,
    )
    before = dlw.live_tensors()
    assert file["a"] is file["a"]
    assert dlw.live_tensors() == before + 1
    assert run(file.load("a")) == (file["a"],)
    for way in (lambda: file["c"], lambda: file.info("c"), lambda: run(file.load("c"))):
        with pytest.raises(KeyError, match="has no tensor 'c'; it has a, b"):
            way()
    kept = file["a"]
    file["a"].release()
    assert file["a"] is not kept  # loaded once more
    kept = file["a"]
    file.close()
    file.close()
    assert kept.numpy().tolist() == [0, 1, 2]
    with pytest.raises(dlw.ReleasedError, match="was closed"):
        file["b"]
    assert "closed" in repr(file)


def test_dtypes_on_the_way():
    data = saved({"wide": np.array([1.5, 2]), "narrow": np.zeros(2, "f4")})
    with opened(data, dtype="float32") as file:
        assert [tensor.dtype for tensor in run(file.load())] == ["float32"] * 2
    with opened(data) as file:
        (half,) = run(file.load("narrow", dtype="float16"))
        assert half.dtype == "float16"
        with pytest.raises(BufferError, match="cannot convert"):
            run(file.load("wide", dtype="int8"))
        (again,) = run(file.load("narrow"))
        (single,) = run(file.load("narrow", dtype="float32"))
        assert again is half
        assert (single.dtype, file["narrow"]) == ("float32", single)


# --- saving ---------------------------------------------------------------------------------


def test_what_numpy_reads():
    array = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    for given in (
        array,
        array[:, ::2],
        array.T,
        array[..., :0],
        np.array(3),
        array[::-1],
    ):
        back = np.load(io.BytesIO(saved(given)))
        assert back.tobytes() == given.tobytes()
        assert back.shape == given.shape
    assert np.load(io.BytesIO(saved(array))).flags.f_contiguous


def test_large_strided_tensors_are_written_in_pieces(monkeypatch):
    from dlpack_web._files import save as saving

    monkeypatch.setattr(saving, "PIECE", 64)
    array = np.arange(1000.0).reshape(10, 10, 10)
    for given in (array[:, ::2], array[::3, :, ::-1], array, array.transpose(1, 0, 2)):
        assert np.load(io.BytesIO(saved(given))).tobytes() == given.tobytes()


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.npy"
    assert run(dlw.save(path, np.arange(3))) is None
    path.chmod(0o640)
    run(dlw.save(str(path), np.arange(4)))
    assert np.load(path).tolist() == [0, 1, 2, 3]
    if sys.platform != "emscripten":
        assert path.stat().st_mode & 0o777 == 0o640
    before = path.read_bytes()

    class Sudden:
        """A disk that is full after so many bytes."""

        left = 200

        def write(self, piece):
            if self.left < len(piece):
                raise OSError("no space left")
            self.left -= len(piece)
            return len(piece)

    with pytest.raises(OSError, match="no space"):
        run(dlw.save(Sudden(), np.zeros(1000)))
    with pytest.raises(BufferError, match="no bfloat16"):
        run(dlw.save(path, dlw.empty(3, "bfloat16")))
    with pytest.raises(NotADirectoryError if os.path.isfile(path) else OSError):
        run(dlw.save(path / "b.npy", np.zeros(3)))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("failing", ["write", "replace"])
def test_a_disk_that_fails_leaves_what_was_there(failing, tmp_path, monkeypatch):
    from dlpack_web._files import save as saving

    path = tmp_path / "w.safetensors"
    run(dlw.save(path, {"a": np.zeros(3)}))
    before = path.read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        *((saving, "_pieces") if failing == "write" else (os, "replace")), fails
    )
    with pytest.raises(OSError, match="No space"):
        run(dlw.save(path, {"a": np.ones(30)}))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_an_error_of_a_file_holds_no_tensor():
    """Whoever keeps the error, and with it the frames that it came through."""

    class Full:
        def write(self, piece):
            raise OSError("no space left")

    arrays = {name: np.zeros(3) for name in "abc"}
    before = dlw.live_tensors()
    with pytest.raises(OSError, match="no space") as caught:
        run(dlw.save(Full(), arrays))
    assert caught.value.__traceback__ is not None
    assert dlw.live_tensors() == before


def test_a_raw_file_that_takes_little_at_a_time():
    class Slow(io.RawIOBase):
        data = b""

        def writable(self):
            return True

        def write(self, piece):
            self.data += bytes(piece[:7])
            return min(len(piece), 7)

    file = Slow()
    run(dlw.save(file, np.arange(100)))
    assert np.load(io.BytesIO(file.data)).tolist() == list(range(100))


def test_saving_over_what_is_open(tmp_path):
    path = tmp_path / "a.npy"
    run(dlw.save(path, np.arange(3.0)))
    tensor = opened(path)
    run(dlw.save(path, tensor))  # the old file lives on in the mapping
    run(dlw.save(path, np.zeros(1)))
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_what_cannot_be_saved(tmp_path):
    array = np.zeros(3)
    one = "a .npy file has one tensor: pass it alone, or save as safetensors"
    writable = "JavaScript WritableStream or file handle, not an int"
    cases = [
        (TypeError, "a mapping of names", (None, array), {"format": "safetensors"}),
        (TypeError, one, (None, {"a": array}), {"format": "npy"}),
        (TypeError, one, (tmp_path / "a.npy", {"a": array}), {}),
        (ValueError, "save as .safetensors", (tmp_path / "a.npz", {"a": array}), {}),
        (ValueError, "format must be", (None, array), {"format": "npz"}),
        (TypeError, "no metadata", (None, array), {"metadata": {}}),
        (TypeError, "str to str", (None, {"a": array}), {"metadata": {"n": 1}}),
        (TypeError, "names of tensors must be str", (None, {1: array}), {}),
        (TypeError, writable, (3, array), {}),
        (TypeError, "cannot share", (None, "abc"), {}),
        (BufferError, "__metadata__", (None, {"__metadata__": array}), {}),
        (BufferError, "safetensors has no complex128", (None, {"a": array * 1j}), {}),
    ]
    for error, message, args, options in cases:
        with pytest.raises(error, match=re.escape(message)):
            run(dlw.save(*args, **options))
    assert os.listdir(tmp_path) == []


def test_with_an_event_loop(host_python):
    async def main():
        data = await dlw.save(None, {"a": np.arange(3)})
        with await dlw.open(data) as file:
            return (await file.load("a"))[0].numpy().tolist()

    assert asyncio.run(main()) == [0, 1, 2]
