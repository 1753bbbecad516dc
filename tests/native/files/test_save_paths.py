"""What save does with a path, by what is there; and with names, metadata and file objects."""

import errno
import io
import os
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import run

import dlpack_web as dlw

ARRAY = np.arange(3.0)
on_linux = pytest.mark.skipif(
    sys.platform == "emscripten" or not Path("/proc/self/fd").exists(),
    reason="needs Linux",
)
links = pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")


def save(target, tensors=ARRAY, **options):
    return run(dlw.save(target, tensors, **options))


WHOLE = save(None)


def test_the_disk_has_the_whole_file_before_it_gets_its_name(tmp_path, monkeypatch):
    """What a power failure leaves is the old file or the new one."""
    synced = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), sync(fd))
    )
    at_replace = []
    monkeypatch.setattr(
        os, "replace", lambda *paths: (at_replace.extend(synced), replace(*paths))
    )
    save(tmp_path / "a.npy")
    assert at_replace[:1] == [len(WHOLE)]


def test_a_header_that_no_reader_takes_is_not_written(tmp_path, monkeypatch):
    from dlpack_web._files import headers

    path = tmp_path / "a.safetensors"
    save(path, {"name": ARRAY})
    monkeypatch.setattr(headers, "_MAX_SAFETENSORS_HEADER", 71)
    with pytest.raises(BufferError, match="a header of 72 bytes is too large"):
        save(tmp_path / "b.safetensors", {"name of ten more": ARRAY})
    assert os.listdir(tmp_path) == ["a.safetensors"]


class Given:
    """A path that is what it was made of; counts how often it is asked."""

    def __init__(self, path):
        self.path, self.asked = path, 0

    def __fspath__(self):
        self.asked += 1
        return self.path


def reader(path):
    """Reads a FIFO to its end, in a thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(Path(path).read_bytes()))
    thread.start()
    return thread, found


# --- what is no regular file ----------------------------------------------------------------


@pytest.mark.parametrize("by", ["itself", "a link"])
def test_a_fifo_is_written_to(by, tmp_path, host_python):
    fifo = path = tmp_path / "fifo"
    os.mkfifo(fifo)
    if by != "itself":
        path = tmp_path / "link"
        path.symlink_to("fifo")
    thread, found = reader(fifo)
    save(path)
    thread.join()
    assert found == [WHOLE]
    assert fifo.is_fifo()
    assert sorted(os.listdir(tmp_path)) == sorted({"fifo", path.name})


@on_linux
def test_standard_output_is_written_to(tmp_path):
    one, other = os.pipe()
    try:
        save(f"/proc/self/fd/{other}")
        assert os.read(one, 1000) == WHOLE
        (tmp_path / "out").symlink_to(f"/proc/self/fd/{other}")
        save(tmp_path / "out")
        assert os.read(one, 1000) == WHOLE
    finally:
        os.close(one)
        os.close(other)
    assert (tmp_path / "out").is_symlink()


@on_linux
def test_a_device_is_written_to(tmp_path):
    null, full = tmp_path / "null", tmp_path / "full"
    try:
        for path, minor in ((null, 3), (full, 7)):
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        with null.open("wb"), full.open("wb"):
            pass
    except PermissionError:
        pytest.skip("only root makes devices")
    save(null)
    with pytest.raises(OSError, match="No space"):
        save(full)
    assert null.is_char_device()
    assert full.is_char_device()
    assert sorted(os.listdir(tmp_path)) == ["full", "null"]


@on_linux
def test_a_file_without_a_name_is_written_to(tmp_path):
    with open(tmp_path / "a.npy", "w+b") as file:
        os.unlink(tmp_path / "a.npy")
        save(f"/proc/self/fd/{file.fileno()}")
        assert file.read() == WHOLE
    assert os.listdir(tmp_path) == []


def test_a_directory_is_refused_as_open_does(tmp_path):
    for path in (tmp_path, f"{tmp_path}/", f"{tmp_path}/.", "", f"{tmp_path}/none/"):
        with pytest.raises(OSError, match="Errno") as raised, open(path, "wb"):
            pass
        with pytest.raises(type(raised.value)) as ours:
            save(path)
        assert ours.value.errno == raised.value.errno
    for path in (tmp_path / "none" / "a.npy", tmp_path / "none" / ".." / "a.npy"):
        with pytest.raises(FileNotFoundError):
            save(path)
    assert os.listdir(tmp_path) == []


# --- regular files --------------------------------------------------------------------------


@links
def test_links_are_followed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.npy").write_bytes(b"old")
    (tmp_path / "link").symlink_to("folder/a.npy")
    (tmp_path / "dangling").symlink_to("folder/b.npy")
    for name in ("link", "dangling"):
        save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
    assert (folder / "a.npy").read_bytes() == (folder / "b.npy").read_bytes() == WHOLE
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=rf"Errno {errno.ELOOP}\b"):
        save(tmp_path / "loop")
    assert sorted(os.listdir(folder)) == ["a.npy", "b.npy"]


def test_another_hard_link_keeps_the_old_file(tmp_path, host_python):
    (tmp_path / "a.npy").write_bytes(b"old")
    os.link(tmp_path / "a.npy", tmp_path / "snapshot")
    save(tmp_path / "a.npy")
    assert (tmp_path / "a.npy").read_bytes() == WHOLE
    assert (tmp_path / "snapshot").read_bytes() == b"old"


def test_permissions_are_kept_and_never_wider(tmp_path, host_python, monkeypatch):
    from dlpack_web._files import save as saving

    path, seen = tmp_path / "a.npy", []
    path.write_bytes(b"secret")
    path.chmod(0o600)
    pieces = saving._pieces

    def watched(tensor):
        seen.extend(each.stat().st_mode & 0o777 for each in tmp_path.iterdir())
        return pieces(tensor)

    monkeypatch.setattr(saving, "_pieces", watched)
    save(path)
    assert seen == [0o600, 0o600]
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)  # whatever the umask says
    save(path)
    assert path.stat().st_mode & 0o777 == 0o666
    before = os.umask(0o027)
    try:
        save(tmp_path / "new.npy")
    finally:
        os.umask(before)
    assert (tmp_path / "new.npy").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_the_owner_is_kept_where_that_is_allowed(tmp_path, host_python, monkeypatch):
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
        save(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)
        assert path.read_bytes() == WHOLE

        def refused(*_):
            raise PermissionError

        monkeypatch.setattr(os, "chown", refused)
        save(path)
    else:
        save(path)
    assert path.stat().st_uid == os.geteuid()


def test_a_file_that_may_not_be_written_is_left(tmp_path, host_python, monkeypatch):
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.geteuid() == 0:  # who may write it
        monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError) as raised:
        save(path)
    assert raised.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.npy"]


def test_long_names(tmp_path):
    path = tmp_path / ("é" * 125 + ".npy")
    save(path)
    assert path.read_bytes() == WHOLE
    assert os.listdir(tmp_path) == [path.name]


@links
@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
@pytest.mark.parametrize("what", ["a directory", "a link", "nothing", "a file"])
def test_what_comes_to_the_path_meanwhile(what, there, tmp_path, monkeypatch):
    from dlpack_web._files import save as saving

    path = tmp_path / "a.npy"
    if there:
        path.write_bytes(b"old")
    pieces = saving._pieces

    def change(tensor):
        path.unlink(missing_ok=True)
        if what == "a directory":
            path.mkdir()
        elif what == "a link":
            path.symlink_to("elsewhere")
        elif what == "a file":
            path.write_bytes(b"of another")
        return pieces(tensor)

    monkeypatch.setattr(saving, "_pieces", change)
    if what in ("a directory", "a link"):
        with pytest.raises(FileExistsError, match="is not regular"):
            save(path)
        assert path.is_dir() or path.is_symlink()
    else:
        save(path)
        assert path.read_bytes() == WHOLE
    assert os.listdir(tmp_path) == ["a.npy"]


# --- paths, names and metadata --------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, os.fsencode])
@pytest.mark.parametrize("name", ["a", "a.NPY", "a.safetensors"])
def test_what_fspath_returns(kind, name, tmp_path):
    tensors = {"w": ARRAY} if name == "a.safetensors" else ARRAY
    path = Given(kind(tmp_path / name))
    save(path, tensors)
    assert path.asked == 1
    found = run(dlw.open(path))
    assert path.asked == 2
    with found:
        tensor = found["w"] if isinstance(found, dlw.TensorFile) else found
        assert tensor.tobytes() == ARRAY.tobytes()
        tensor.release()
    with pytest.raises(ValueError, match=r"save as \.safetensors"):
        save(Given(kind(tmp_path / "a.npz")))
    bad = tmp_path / "b.npy"
    bad.write_bytes(b"123")
    with pytest.raises(BufferError, match=r"does not begin like a \.npy"):
        run(dlw.open(Given(kind(bad))))


def test_a_header_that_is_not_text(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    damaged = (tmp_path / "a.npy").read_bytes().replace(b"descr", b"desc\xff")
    with pytest.raises(BufferError) as caught:
        run(dlw.open(damaged))
    assert str(caught.value) == "the bytes: its header is not text"


def test_fspath_of_anything_else(tmp_path):
    for wrong in (3, None, bytearray(b"a")):
        with pytest.raises(TypeError, match=r"__fspath__|str, bytes"):
            save(Given(wrong))
        with pytest.raises(TypeError, match=r"__fspath__|str, bytes"):
            run(dlw.open(Given(wrong)))
    with pytest.raises(TypeError) as refused:
        save(b"a.npy")
    assert str(refused.value) == (
        "save takes a path, a file object, None or, in the browser, a JavaScript "
        "WritableStream or file handle, not a bytes"
    )
    with pytest.raises(ValueError, match="null"):
        save(f"{tmp_path}/a\0.npy")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([("by", "me")], "must be a mapping of str to str, such as a dict, not a list"),
        ("by me", "not a str"),
        (3, "not a int"),
        ({"by": None}, r"str to str, not of \('by', None\)"),
        ({3: "me"}, r"str to str, not of \(3, 'me'\)"),
        ({b"by": "me"}, "str to str"),
    ],
)
def test_what_is_no_metadata(metadata, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(tmp_path / "a.safetensors", {"a": ARRAY}, metadata=metadata)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("lone", ["\ud800", "a\udfff", "\udc00\ud800"])
def test_lone_surrogates_are_refused(lone, tmp_path):
    path = tmp_path / "a.safetensors"
    for tensors, metadata in [
        ({lone: ARRAY}, None),
        ({"a": ARRAY, "b" + lone: ARRAY}, None),
        ({"a": ARRAY}, {lone: "x"}),
        ({"a": ARRAY}, {"x": lone}),
    ]:
        with pytest.raises(ValueError, match="has a lone surrogate"):
            save(path, tensors, metadata=metadata)
    assert os.listdir(tmp_path) == []
    name = "\U0001f600é"
    with run(dlw.open(save(None, {name: ARRAY}, metadata={name: name}))) as file:
        assert (list(file), file.metadata) == ([name], {name: name})


# --- file objects ---------------------------------------------------------------------------


class Returns(io.RawIOBase):
    def __init__(self, count):
        self.count = count

    def writable(self):
        return True

    def write(self, piece):
        return self.count


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (None, BlockingIOError, "is non-blocking"),
        (0, OSError, "accepted 0 bytes of 128"),
        (-1, OSError, "accepted -1 bytes of 128"),
        (129, OSError, "accepted 129 bytes of 128"),
        (True, TypeError, "number of bytes or None, not a bool"),
    ],
)
def test_a_raw_file_that_takes_nothing(count, error, message):
    with pytest.raises(error, match=message):
        save(Returns(count))


def test_a_file_object_that_returns_nothing():
    class Collects:
        data = b""

        def write(self, piece):
            self.data += bytes(piece)

    file = Collects()
    save(file)
    assert file.data == WHOLE


def test_a_file_object_whose_write_is_async():
    class Async:
        def write(self, piece):
            return self  # what one awaits

    with pytest.raises(TypeError, match=r"Async: files whose write\(\) is async"):
        save(Async())


# --- what open refuses ----------------------------------------------------------------------


def test_what_is_no_regular_file_is_not_mapped(tmp_path, host_python):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/null"):
        with pytest.raises(OSError, match="not a regular file: read it"):
            run(dlw.open(path, dtype="uint8"))
    with pytest.raises(IsADirectoryError):
        run(dlw.open(tmp_path))


@on_linux
def test_a_file_that_says_that_it_is_empty():
    with run(dlw.open("/proc/self/status", dtype="uint8")) as tensor:
        assert tensor.tobytes().startswith(b"Name:")
