"""What was given up is over: wherever an interrupt or an error ends open() or save(), no temporary
file, open file or mapping stays, though the exception is kept, as notebooks keep the last one.

At some places of a call; WHOLE=1 takes all."""

import asyncio
import contextlib
import gc
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import run

import dlpack_web as dlw

if sys.platform == "emscripten":
    pytest.skip("its files are in memory", allow_module_level=True)

OURS = str(Path(dlw.__file__).parent / "_files")
PLACES = (OURS, contextlib.__file__)
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(5, dtype="u1")}


class Interrupt:
    """A with block in which the `at`-th line or return of such code raises; counts them."""

    def __init__(self, at=0):
        self.at, self.count = at, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.called)
        return self

    def __exit__(self, *exception):
        sys.settrace(self.before)

    def called(self, frame, event, arg):
        return self.step if frame.f_code.co_filename.startswith(PLACES) else None

    def step(self, frame, event, arg):
        name = frame.f_code.co_name
        if event in ("line", "return") and name not in ("undo", "close", "__del__"):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self.step


def held_by_process(folder):
    """Files of the folder that are open or mapped."""
    fds = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    found = [os.readlink(each) for each in fds if os.path.lexists(each)]
    maps = Path("/proc/self/maps").read_text().splitlines()
    return [each for each in (*found, *maps) if str(folder) in each]


def some_of(count):
    """Places from 1 to `count`, MOST at most."""
    return range(1, count + 1, -(-count // MOST))


def saved(path, old):
    def work():
        run(dlw.save(path, ARRAYS))

    def check(old_bytes=old):
        there = path.read_bytes() if path.exists() else None
        assert there in (old_bytes, WHOLE)
        assert [each.name for each in path.parent.iterdir()] == [path.name] * (
            there is not None
        )

    return work, check


WHOLE = run(dlw.save(None, ARRAYS))
MOST = 10_000 if os.environ.get("WHOLE") else 100  # places of a call
needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/maps"), reason="needs /proc"
)


@needs_proc
@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "old"])
def test_save_that_is_interrupted_anywhere(old, tmp_path):
    path = tmp_path / "w.safetensors"
    work, check = saved(path, old)

    def reset():
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)

    reset()
    with Interrupt() as places:
        work()
    assert places.count > 100
    before = dlw.live_tensors()
    for at in some_of(places.count):
        reset()
        try:
            with Interrupt(at):
                work()
        except KeyboardInterrupt as error:
            kept = error  # and with it all frames
            check()
            assert held_by_process(tmp_path) == []
            del kept
        gc.collect(0)
        assert (at, dlw.live_tensors()) == (at, before)


def archive(save=np.savez_compressed):
    file = io.BytesIO()
    save(file, **ARRAYS, c=np.array(["ab"]))
    return file.getvalue()


FILES = {
    "npy": run(dlw.save(None, ARRAYS["a"])),
    "safetensors": WHOLE,
    "npz": archive(),
    "stored npz": archive(np.savez),
}


@needs_proc
# Between FileIO and its `with` there is a place; the file is closed there, with a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
@pytest.mark.parametrize("format", FILES)
def test_open_that_is_interrupted_anywhere(format, read, tmp_path, monkeypatch):
    from dlpack_web._files import local

    monkeypatch.setattr(local, "IN_BROWSER", read)
    path = tmp_path / "file"
    path.write_bytes(FILES[format])

    def work():
        found = run(dlw.open(path))
        if format == "npy":
            found.release()
            return
        with found:
            for tensor in run(found.load("a", "b")):
                tensor.release()
            if format != "npz":
                run(found.get_slice("a")[1:, :2].load()).release()

    with Interrupt() as places:
        work()
    assert places.count > 30
    gc.collect(0)
    assert held_by_process(tmp_path) == []
    before = dlw.live_tensors()
    for at in some_of(places.count):
        with contextlib.suppress(KeyboardInterrupt), Interrupt(at):
            work()
        gc.collect(0)
        assert (at, dlw.live_tensors()) == (at, before)
        assert held_by_process(tmp_path) == []


@needs_proc
@pytest.mark.parametrize("read", [False, True], ids=["mapped", "read"])
@pytest.mark.parametrize("what", ["damaged", "progress", "dtype", "shape", "format"])
@pytest.mark.parametrize("format", FILES)
def test_an_error_that_is_kept_keeps_no_file(format, what, read, tmp_path, monkeypatch):
    from dlpack_web._files import local

    monkeypatch.setattr(local, "IN_BROWSER", read)
    path = tmp_path / "file"
    path.write_bytes(FILES[format][: -9 if what == "damaged" else None])

    def stop(loaded, total):
        raise ZeroDivisionError

    options = {
        "damaged": {},
        "progress": {"progress": stop},
        "dtype": {"dtype": "int8"},
        "shape": {"shape": (3,)},
        "format": {"format": "npy" if "npz" in format else "npz"},
    }[what]
    before = dlw.live_tensors()
    file = None
    try:
        file = run(dlw.open(path, **options))
        file["a"]
        raise AssertionError("it was opened")
    except (BufferError, ZeroDivisionError, TypeError) as error:
        kept = error
    if file is not None:
        assert len(file) == 3 - (format == "safetensors")
        file.close()
        file = None
    else:
        assert held_by_process(tmp_path) == []
    assert dlw.live_tensors() == before
    del kept
    gc.collect(0)
    assert held_by_process(tmp_path) == []


def test_an_error_of_elements_that_is_kept_keeps_no_tensor():
    data = bytearray(FILES["npz"])
    data[80] ^= 255  # in the deflated bytes of the first array
    before = dlw.live_tensors()
    with run(dlw.open(data)) as file:
        try:
            file["a"]
            raise AssertionError("it was read")
        except BufferError as error:
            kept = error
        assert kept.__traceback__ is not None
        assert dlw.live_tensors() == before
        assert file["b"].tobytes() == ARRAYS["b"].tobytes()


def test_save_that_is_cancelled_leaves_nothing(tmp_path, monkeypatch, host_python):
    from dlpack_web._files import save as saving

    pieces = saving._pieces

    async def slow(tensor):
        async for piece in pieces(tensor):
            yield piece
            await asyncio.sleep(0)

    monkeypatch.setattr(saving, "_pieces", slow)
    path = tmp_path / "w.safetensors"

    async def main(steps):
        task = asyncio.ensure_future(dlw.save(path, ARRAYS))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = dlw.live_tensors()
    for steps in range(3):
        asyncio.run(main(steps))
        assert os.listdir(tmp_path) == []
        assert dlw.live_tensors() == before
