"""Foreign code that runs in the middle of open, load and save, and calls back into them with the
same objects: paths, progress, buffers, mappings, file objects; from other threads, too."""

import asyncio
import collections.abc
import gc
import io
import os
import sys
import zipfile

import numpy as np
import pytest
from conftest import in_threads, run
from tensor_files import archive_of, opened

import dlpack_web as dlw

ARRAYS = {"a": np.arange(5.0), "b": np.ones((2, 3), "f4")}
needs_buffers = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="__buffer__ of Python's own is of 3.12"
)


def save(target, tensors, **options):
    return run(dlw.save(target, tensors, **options))


DATA = save(None, ARRAYS)
FILES = {"safetensors": DATA, "npz": archive_of(ARRAYS, zipfile.ZIP_DEFLATED)}


@pytest.fixture(params=FILES)
def several(request):
    return FILES[request.param]


@pytest.fixture(params=["mapped", "read"])
def path_of(request, several, tmp_path, monkeypatch):
    """A path, as files are read on the desktop and in the browser."""
    from dlpack_web._files import local

    monkeypatch.setattr(local, "IN_BROWSER", request.param == "read")
    path = tmp_path / "file"
    path.write_bytes(several)
    return path


@pytest.fixture
def mapped(host_python, several, tmp_path):
    """A path in a Python that has threads."""
    path = tmp_path / "file"
    path.write_bytes(several)
    return path


def counted(callback):
    """progress that calls that once, for the first tensor, and counts."""
    told = []

    def progress(loaded, total):
        told.append(loaded)
        if len(told) == 1:
            callback()

    return told, progress


# --- progress -------------------------------------------------------------------------------


def test_progress_loads_the_same_tensor(path_of):
    inner = []
    told, progress = counted(lambda: inner.append(file["a"]))
    file = opened(path_of, progress=progress)
    before = dlw.live_tensors()
    assert file["a"] is inner[0] is file["a"]
    assert len(told) == 2
    assert dlw.live_tensors() == before + 1
    assert inner[0].numpy().tolist() == [0, 1, 2, 3, 4]
    file.close()


def test_a_tensor_that_is_there_is_not_read_again(path_of):
    told, progress = counted(lambda: None)
    file = opened(path_of, progress=progress)
    first = file["a"]
    count = len(told)
    assert run(file.load("a"))[0] is first is file["a"]
    assert len(told) == count > 0
    file.close()


def test_progress_loads_another_tensor(path_of):
    inner = []
    _, progress = counted(lambda: inner.extend(run(file.load())))
    file = opened(path_of, progress=progress)
    a, b = run(file.load())
    assert all(x is y for x, y in zip((a, b), inner, strict=True))
    assert (a.tobytes(), b.tobytes()) == tuple(x.tobytes() for x in ARRAYS.values())


@pytest.mark.parametrize("how", ["file[name]", "load"])
def test_progress_closes_the_file(how, path_of):
    _, progress = counted(lambda: file.close())
    file = opened(path_of, progress=progress)
    before = dlw.live_tensors()
    with pytest.raises(dlw.ReleasedError, match="was closed"):
        file["a"] if how == "file[name]" else run(file.load())
    assert dlw.live_tensors() == before
    with pytest.raises(dlw.ReleasedError, match="was closed"):
        file["b"]


def test_progress_releases_what_was_loaded(path_of):
    file = opened(path_of, progress=lambda *_: release())

    def release():
        if "a" in loaded:
            loaded.pop("a").release()

    loaded = {}
    loaded["a"] = file["a"]
    b = file["b"]
    assert b.tobytes() == ARRAYS["b"].tobytes()
    assert file["a"].tobytes() == ARRAYS["a"].tobytes()


def test_what_progress_raises_leaves_nothing(several):
    def stop(*_):
        raise ZeroDivisionError

    file = opened(several, progress=stop)
    before = dlw.live_tensors()
    with pytest.raises(ZeroDivisionError) as kept:
        file["a"]
    assert dlw.live_tensors() == before, "held until the exception is gone"
    del kept


def test_progress_opens_and_saves(several, tmp_path):
    file = opened(several, progress=lambda *_: again.append(opened(several)))
    again = []
    save(tmp_path / "copy.safetensors", file)
    assert len(again) == 2
    copy = opened(tmp_path / "copy.safetensors")
    assert {name: each.tobytes() for name, each in copy.items()} == {
        name: each.tobytes() for name, each in ARRAYS.items()
    }


# --- pieces of one file ---------------------------------------------------------------------


def test_pieces_of_two_tensors_in_turn(path_of, monkeypatch):
    """As two tasks read them, each of which waits for the GPU between pieces."""
    from dlpack_web._files import local
    from dlpack_web._files import open as opening

    monkeypatch.setattr(local, "PIECE", 128)
    arrays = {"a": np.arange(1000.0), "b": np.arange(1000.0) + 5000}
    kind = "npz" if path_of.read_bytes()[:2] == b"PK" else "safetensors"
    path_of.write_bytes(
        archive_of(arrays, zipfile.ZIP_DEFLATED)
        if kind == "npz"
        else save(None, arrays)
    )
    inside = opening._LocalInside(local.open_path(str(path_of)), kind)
    turns = {name: local.pieces(*inside._places[name]) for name in arrays}
    found = dict.fromkeys(arrays, b"")
    while turns:
        for name, pieces in list(turns.items()):
            piece = next(pieces, None)
            if piece is None:
                del turns[name]
            else:
                found[name] += piece.tobytes()
    assert found == {name: array.tobytes() for name, array in arrays.items()}


class Turns:
    """Something to await that lets others run first."""

    def __await__(self):
        yield


@pytest.mark.parametrize("what", ["load", "close"])
def test_while_a_load_is_under_way(what, several, monkeypatch):
    """Two tasks, of which one waits where a GPU would be waited for."""
    from dlpack_web._files import open as opening

    load = opening._LocalInside.load

    async def slow(self, name, how):
        tensor = await load(self, name, how)
        await Turns()
        return tensor

    monkeypatch.setattr(opening._LocalInside, "load", slow)
    file = opened(several)
    before = dlw.live_tensors()
    first, second = file.load("a"), file.load("a")
    assert first.send(None) is second.send(None) is None
    if what == "close":
        file.close()
        for task in (first, second):
            with pytest.raises(dlw.ReleasedError, match="was closed") as kept:
                task.send(None)
            error = kept.value  # whose frames have the tensor
        assert dlw.live_tensors() == before
        del error, kept
        return
    with pytest.raises(StopIteration) as one:
        second.send(None)
    with pytest.raises(StopIteration) as two:
        first.send(None)
    assert one.value.value[0] is two.value.value[0] is file["a"]
    assert dlw.live_tensors() == before + 1
    file.close()


def test_a_task_that_is_cancelled(several, monkeypatch):
    from dlpack_web._files import open as opening

    load = opening._LocalInside.load
    file = opened(several)
    before = dlw.live_tensors()

    async def slow(self, name, how):
        await Turns()
        return await load(self, name, how)

    monkeypatch.setattr(opening._LocalInside, "load", slow)
    task = file.load("a", "b")
    task.send(None)
    with pytest.raises(asyncio.CancelledError):
        task.throw(asyncio.CancelledError)
    gc.collect()
    assert dlw.live_tensors() == before
    monkeypatch.undo()
    assert run(file.load("a"))[0].tobytes() == ARRAYS["a"].tobytes()


# --- paths and buffers ----------------------------------------------------------------------


def test_fspath_opens_and_saves_the_same_path(tmp_path):
    class Path:
        depth = 0

        def __fspath__(self):
            self.depth += 1
            if self.depth == 1:
                save(self, ARRAYS)
                assert list(opened(self)) == ["a", "b"]
            return str(tmp_path / "a.safetensors")

    path = Path()
    save(path, {"c": ARRAYS["a"]})
    assert path.depth == 3
    assert list(opened(path)) == ["c"]
    assert os.listdir(tmp_path) == ["a.safetensors"]


@needs_buffers
def test_buffers_of_python_are_opened_again_and_released_once():
    class Buffer:
        given = released = 0

        def __buffer__(self, flags):
            self.given += 1
            if self.given == 1:
                assert opened(self)["b"].shape == (2, 3)
            return memoryview(DATA)

        def __release_buffer__(self, view):
            self.released += 1
            gc.collect()
            if self.released == 1:
                opened(self).close()

    buffer = Buffer()
    file = opened(buffer)
    a = file["a"]
    file.close()
    del file
    gc.collect()
    assert buffer.given == buffer.released + 1, "the tensor holds it"
    assert a.tobytes() == ARRAYS["a"].tobytes()
    a.release()
    del a
    gc.collect()
    assert buffer.given == buffer.released


# --- mappings and file objects --------------------------------------------------------------


class Mapping(dict):
    """Calls a function whenever it is looked into."""

    def __init__(self, content, call):
        super().__init__(content)
        self.call = call

    def items(self):
        for pair in super().items():
            self.call(*pair)
            yield pair

    def __getitem__(self, key):
        self.call(key, None)
        return super().__getitem__(key)

    def keys(self):
        self.call(None, None)
        return super().keys()


def test_a_mapping_that_saves_itself_and_releases_its_tensors():
    held = {name: dlw.from_dlpack(array) for name, array in ARRAYS.items()}
    calls = []

    def call(name, _):
        calls.append(name)
        if len(calls) == 1:
            assert save(None, mapping) == DATA
        elif calls == ["a", "a", "b", "b"]:
            held["a"].release()  # which was taken already

    mapping = Mapping(held, call)
    assert save(None, mapping) == DATA
    for tensor in held.values():
        tensor.release()


def test_a_mapping_that_raises_or_grows_leaves_nothing():
    before = dlw.live_tensors()

    def stop(name, _):
        if name == "b":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        save(None, Mapping(ARRAYS, stop))
    growing = dict(ARRAYS)
    with pytest.raises(RuntimeError, match="changed size"):
        save(None, Mapping(growing, lambda *_: mapping_grows(growing)))
    assert dlw.live_tensors() == before


def mapping_grows(mapping):
    mapping[str(len(mapping))] = np.zeros(1)
    raise RuntimeError("dictionary changed size during iteration")


def test_a_mapping_with_a_name_twice():
    class Twice(dict):
        def items(self):
            return [("a", ARRAYS["a"]), ("a", ARRAYS["b"])]

    before = dlw.live_tensors()
    with pytest.raises(ValueError, match="two tensors have the name 'a'"):
        save(None, Twice())
    assert dlw.live_tensors() == before


def test_metadata_is_read_once():
    class Changing(collections.abc.Mapping):
        reads = 0

        def __len__(self):
            return 1

        def __iter__(self):
            return iter(["by"])

        def __getitem__(self, key):
            self.reads += 1
            return "me" if self.reads == 1 else b"\xff"

    metadata = Changing()
    with opened(save(None, ARRAYS, metadata=metadata)) as file:
        assert file.metadata == {"by": "me"}
    assert metadata.reads == 1


def test_write_releases_closes_and_saves_again():
    held = {name: dlw.from_dlpack(array) for name, array in ARRAYS.items()}
    kept = []

    class File(io.RawIOBase):
        data = b""

        def writable(self):
            return True

        def write(self, piece):
            if not self.data:
                for tensor in held.values():
                    tensor.release()
                assert save(None, ARRAYS) == DATA
            kept.append(piece)
            self.data += bytes(piece)
            return len(piece)

    before = dlw.live_tensors() - 2
    file = File()
    save(file, held)
    assert file.data == DATA
    assert b"".join(kept) == DATA, "a piece that is kept stays good"
    kept.clear()
    assert dlw.live_tensors() == before


def test_write_saves_to_the_same_path(tmp_path, monkeypatch):
    """The one that ends last is there, whole."""
    from dlpack_web._files import save as saving

    path, pieces, depth = tmp_path / "a.npy", saving._pieces, [0]

    def again(tensor):
        depth[0] += 1
        if depth[0] == 1:
            save(path, np.zeros(100))
            assert np.load(path).shape == (100,)
        return pieces(tensor)

    monkeypatch.setattr(saving, "_pieces", again)
    save(path, np.arange(3))
    assert np.load(path).tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["a.npy"]


# --- threads --------------------------------------------------------------------------------


@pytest.fixture
def often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_load_from_one_file(mapped, often):
    for _ in range(20):
        file = opened(mapped)

        def load(number):
            for name in ("ab", "ba")[number % 2]:
                assert file[name].tobytes() == ARRAYS[name].tobytes()  # noqa: B023

        in_threads(load, range(8))
        file.close()


def test_threads_load_and_close(mapped, often):
    for _ in range(20):
        file = opened(mapped)

        def load_or_close(number):
            try:
                for name in "ab":
                    data = file[name].tobytes()  # noqa: B023
                    assert data == ARRAYS[name].tobytes()
            except dlw.ReleasedError:
                pass
            if number == 0:
                file.close()  # noqa: B023

        in_threads(load_or_close, range(8))
        file.close()


def test_threads_save_to_one_path(tmp_path, often, host_python):
    path = tmp_path / "a.npy"
    for _ in range(10):
        in_threads(lambda number: save(path, np.full(50, number)), range(8))
        assert len(set(np.load(path).tolist())) == 1
    assert os.listdir(tmp_path) == ["a.npy"]
