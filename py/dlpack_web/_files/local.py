"""Files that Python itself can read: bytes, and paths, which are memory-mapped on the
desktop and read piece by piece in the browser."""

import errno
import io
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Buffer, Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from math import prod
from pickle import PickleBuffer
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._backends import IN_BROWSER, owner
from .._layout.dtype import DType
from .._layout.text import bounded
from .._tensor.device import CPU, Device
from .._tensor.making import empty
from .._tensor.tensor import Tensor
from .headers import (
    NPY_MAGIC,
    Entry,
    Unreadable,
    check_shape,
    check_size,
    dtype_of_descr,
    is_raw,
    looks_like_safetensors,
    malformed,
    nbytes_of,
    npy_preamble,
    parse_safetensors,
    read_npy,
    safetensors_length,
)
from .parts import Block, blocks_of, in_javascript, part_of

if TYPE_CHECKING:
    from .archive import Archive
    from .remote import Remote

# Bytes that are read, unpacked or uploaded at once.
PIECE = 8 << 20

# Of deflated data, as the gzip format and HTTP's encoding of that name have it.
GZIP = b"\x1f\x8b\x08"

# A mapping needs no descriptor where Python can do without.
_UNTRACKED: dict[str, Any] = (
    {"trackfd": False} if sys.version_info >= (3, 13) and os.name == "posix" else {}
)

# More bytes than a file has.
_ALL = 1 << 62
# Whole pieces on their way to a GPU, after which an upload waits.
UNDER_WAY = 2

Progress = Callable[[int, int | None], object]


#: A file that Python reads. remote: each read may be a request.
type Local = Memory | Disk | Remote
#: A file, or an archive in it, or parts of these, whose entries are read.
type Source = Local | Archive | _Scattered


class _Host:
    """A file of this computer."""

    name: str
    remote = False

    def stream(self) -> Any:
        raise NotImplementedError

    @contextmanager
    def reading(self, entry: Entry) -> Iterator["Reading"]:
        yield Reading(self.stream(), self.name, entry.start)


class Memory(_Host):
    """A file in memory, or mapped: tensors are views of it."""

    def __init__(self, memory: memoryview, name: str) -> None:
        self.memory, self.name, self.size = memory, name, memory.nbytes

    def read(self, start: int, count: int) -> bytes:
        return bytes(self.memory[start : start + count])

    def stream(self) -> Any:
        return Stream(self.size, lambda at, count: self.memory[at : at + count])

    def close(self) -> None:
        """Unmaps it, unless a tensor has it."""
        mapped = self.memory.obj
        with suppress(BufferError):
            self.memory.release()
            if isinstance(mapped, mmap.mmap):
                mapped.close()


class Disk(_Host):
    """A file in Pyodide's file system, where mapping would copy it."""

    def __init__(self, path: str) -> None:
        self._file = io.FileIO(path)
        self.name = path
        self.size = self._file.seek(0, io.SEEK_END)

    def read(self, start: int, count: int) -> bytes:
        self._file.seek(start)
        return self._file.read(count)

    def stream(self) -> Any:
        return self._file

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        if "_file" in self.__dict__:  # not set if __init__ raised
            self._file.close()


class Reading:
    """Reads the elements of a file. at: their offset, in a file with other readers."""

    def __init__(self, file: Any, name: str, at: int | None = None) -> None:
        self._file, self._name, self._at = file, name, at

    def into(self, memory: memoryview) -> None:
        """Fills `memory`; BufferError if the file ends before."""
        filled = 0
        while filled < memory.nbytes:
            if self._at is not None:
                self._file.seek(self._at)
            count = self._file.readinto(memory[filled : filled + PIECE])
            if not count:
                malformed(self._name, "it was truncated while it was read")
            filled += count
            if self._at is not None:
                self._at += count

    def skip(self, count: int) -> None:
        if self._at is None:
            self._file.seek(count, io.SEEK_CUR)
        else:
            self._at += count


class Again:
    """A file that is opened for each read; tensors share its mapping."""

    def __init__(self, path: str) -> None:
        self.name, self._mark = path, _mark(path)
        self._mapped: Callable[[], Any] = lambda: None

    def open(self) -> Local:
        """BufferError if it is another file than at first."""
        file: Local
        try:
            file = Memory(memoryview(self._mapped()), self.name)
        except (TypeError, ValueError):  # none, or closed
            file = open_path(self.name)
            if isinstance(file, Memory) and isinstance(file.memory.obj, mmap.mmap):
                self._mapped = weakref.ref(file.memory.obj)
        if _mark(self.name) != self._mark:
            file.close()
            malformed(self.name, "it changed since it was opened: open it again")
        return file


def _mark(path: str) -> tuple[int, ...]:
    """Differs when a file was replaced or written."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def open_path(path: str) -> Local:
    """Opens a regular file. Raises OSError as Python's `open` does."""
    mode = os.stat(path).st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):  # `open` raises for directories
        raise OSError(
            errno.EINVAL,
            "it is not a regular file: read it, and open its bytes",
            path,
        )
    if IN_BROWSER:
        return Disk(path)
    with io.FileIO(path) as file:
        # An empty file cannot be mapped; files in /proc have size 0, too.
        if os.fstat(file.fileno()).st_size == 0:
            return Memory(memoryview(file.readall()), path)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_UNTRACKED)
    return Memory(memoryview(mapped), path)


def open_buffer(buffer: Buffer) -> Local:
    """Bytes, or any buffer with contiguous bytes, whatever its elements and shape."""
    _core._check_mask(buffer)
    kind = type(buffer).__name__
    try:
        view = memoryview(buffer)
    except ValueError as error:  # NumPy's, for elements such as times
        raise BufferError(
            f"the {kind} cannot be read as the bytes of a file ({bounded(str(error))}): "
            "open its bytes, x.tobytes()"
        ) from None
    if not view.c_contiguous:
        raise BufferError("the bytes of a file must be contiguous")
    return Memory(PickleBuffer(view).raw(), f"the {kind}")


class Stream(io.RawIOBase):
    """A file object over memory, without a copy, or over another reader of bytes. Each
    thread has its own position: zipfile calls it while other threads read."""

    def __init__(
        self, size: int, read: Callable[[int, int], bytes | memoryview]
    ) -> None:
        self._size, self._read, self._own = size, read, threading.local()

    def readable(self) -> bool:
        return True

    seekable = readable

    def tell(self) -> int:
        at: int = getattr(self._own, "at", 0)
        return at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {
            io.SEEK_SET: 0,
            io.SEEK_CUR: self.tell(),
            io.SEEK_END: self._size,
        }
        at = base[whence] + offset
        if at < 0:  # as for a file: a zip's directory may have such offsets
            raise OSError(errno.EINVAL, "negative seek position")
        self._own.at = at
        return at

    def readinto(self, into: Any) -> int:
        at = self.tell()
        part = self._read(at, len(into))
        into[: len(part)] = part
        self._own.at = at + len(part)
        return len(part)


# --- contents of a file ---------------------------------------------------------------------


def format_of(file: Local, wanted: str | None, has_dtype: bool, has_shape: bool) -> str:
    """ "npy", "npz", "safetensors", "raw", or "index": of a sharded model."""
    if wanted == "raw":
        return wanted
    head = file.read(0, 16)
    if head.startswith(GZIP):
        malformed(
            file.name,
            "it is compressed with gzip: decompress it first (gzip.decompress); if these "
            "are the elements, give format='raw'",
        )
    if wanted is not None:
        return wanted
    if head.startswith(NPY_MAGIC):
        return "npy"
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return "npz"
    if head.startswith(b"{") and file.name.lower().endswith(".json"):
        return "index"
    if looks_like_safetensors(head) and not has_shape:
        return "safetensors"
    suffix = file.name.rpartition(".")[2].lower()
    if suffix in ("npy", "npz", "safetensors"):
        malformed(file.name, f"it does not begin like a .{suffix} file")
    if not has_dtype:
        malformed(
            file.name,
            "it does not begin like a .npy, .npz or safetensors file: raw elements "
            "need dtype",
        )
    return "raw"


def npy_entry(file: Local, raw: DType | None) -> Entry:
    """The tensor of a .npy file. raw: the dtype of elements written without it."""
    stream = file.stream()
    stream.seek(0)
    return as_raw(of_npy("", stream, file.size, file.name), raw, file.size, file.name)


def as_raw(
    found: Entry | Unreadable, dtype: DType | None, size: int, what: str
) -> Entry:
    """The tensor, also one whose elements were written without their dtype, if they may
    be of this one."""
    if isinstance(found, Entry):
        return found
    if dtype is None or not is_raw(found.dtype, dtype):
        malformed(what, f"it {found.why}")
    entry = Entry(found.name, dtype, found.shape, found.columns, found.start, 0)
    return _complete(entry, size, what)


def _complete(entry: Entry, size: int, what: str) -> Entry:
    """With the bytes of its elements, which end a file of that size."""
    dtype, shape = entry.dtype, list(entry.shape)
    nbytes = nbytes_of(dtype, shape)
    check_size(what, size, entry.start, nbytes, f"shape {shape} of {dtype}")
    return entry._replace(nbytes=nbytes)


def of_npy(name: str, stream: Any, size: int, what: str) -> Entry | Unreadable:
    """The tensor that the header describes with which a file of that size begins."""
    head = stream.read(12)
    before, length = npy_preamble(head, what)
    start = before + length
    head += stream.read(max(start - len(head), 0))
    if len(head) < start:
        malformed(what, f"it ends after {len(head)} bytes, within its header")
    descr, shape, columns = read_npy(head[before:start], what, head[6])
    dtype, why = dtype_of_descr(descr)
    if dtype is None:
        nbytes = max(size - start, 0)
        return Unreadable(name, descr[:100], shape, start, nbytes, why, columns)
    return _complete(Entry(name, dtype, shape, columns, start, 0), size, what)


def raw_entry(file: Local, dtype: DType, shape: Any) -> Entry:
    """Elements without a header; along one axis, unless `shape` is given."""
    step = dtype.bits * dtype.lanes / 8
    if shape is None:
        if file.size / step % 1:
            malformed(
                file.name,
                f"its {file.size} bytes are not a whole number of elements of {step} bytes",
            )
        shape = (int(file.size / step),)
    dims = check_shape(shape, file.name)
    return _complete(Entry("", dtype, dims, False, 0, 0), file.size, file.name)


def safetensors_entries(file: Local) -> tuple[list[Entry | Unreadable], dict[str, str]]:
    length = safetensors_length(file.read(0, 8), file.size, file.name)
    return parse_safetensors(file.read(8, length), file.size, file.name)


# --- elements -----------------------------------------------------------------------------


class How(NamedTuple):
    """How to load tensors. device None: to the CPU. remote: the module of files at URLs, for
    one of these. at_once: blocks other tasks while it waits for a server."""

    device: Device | None
    dtype: DType | None
    progress: Progress | None
    whole: bool = False
    remote: Any = None
    at_once: bool = False

    @property
    def js_device(self) -> int:
        return -1 if self.device is None else self.device.id

    def in_javascript(self, key: Any) -> tuple[dict[str, Any], Any]:
        """The options for JavaScript, with the part that a key selects, and the index
        that adds new axes to what it loads; None: there are none."""
        options: dict[str, Any] = {
            "dtype": self.dtype and str(self.dtype),
            "whole": self.whole,
        }
        after = None
        if key is not None:
            options["part"], options["ellipsis"], after = in_javascript(key)
        return options, after


async def off(how: How, function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function that reads a file."""
    if how.remote is None or how.at_once:
        return function(*args)
    return await how.remote.off(function, *args)


async def elements(source: Source, entry: Entry, how: How) -> Tensor:
    """The elements along one axis, on the CPU: a view if possible, else a copy."""
    view = _view_of(source, entry)
    if view is not None:
        return view
    tensor = _core._empty((prod(entry.shape),), entry.dtype._packed, False)
    try:
        with closing(_filling(source, entry, tensor)) as filling:
            while loaded := await off(how, next, filling, 0):
                if loaded < entry.nbytes:
                    _tell(how, loaded, entry.nbytes)
    except BaseException:
        tensor.release()
        raise
    return tensor


def _filling(source: Source, entry: Entry, tensor: Tensor) -> Generator[int]:
    """Reads the elements; yields how many bytes are there."""
    with source.reading(entry) as found:
        for first in range(0, entry.nbytes, PIECE):
            memory = memoryview(_core._raw(tensor)[0])[first : first + PIECE]
            found.into(memory)
            yield first + memory.nbytes


def _view_of(source: Source, entry: Entry) -> Tensor | None:
    """A view of the elements; None if they are not in memory, or misaligned."""
    if not isinstance(source, Memory) or entry.nbytes == 0 or entry.dtype.bits % 8:
        return None
    found = source.memory[entry.start : entry.start + entry.nbytes]
    return _core._typed(found, entry.dtype._packed, False)


def pieces(source: Source, entry: Entry) -> Generator[Tensor]:
    """The elements along one axis in pieces; all but the last are whole words of 4
    bytes. Each is valid until the next, and none is as large as the file."""
    count = max(PIECE // entry.dtype.itemsize & ~15, 1)
    size = prod(entry.shape)
    view = _view_of(source, entry)
    if view is not None:
        with view:
            for first in range(0, size, count):
                with view[first : first + count] as part:
                    yield part
        return
    packed = entry.dtype._packed
    with (
        _core._empty((min(count, size),), packed, False) as block,
        source.reading(entry) as found,
    ):
        for first in range(0, size, count):
            with block[: min(count, size - first)] as part:
                found.into(memoryview(_core._raw(part)[0]))
                yield part


def shaped(flat: Tensor, entry: Entry) -> Tensor:
    """A view with the shape in the file; releases the flat one."""
    with flat:
        if not entry.columns:
            return flat.reshape(entry.shape)
        with flat.reshape(entry.shape[::-1]) as turned:
            return turned.permute_dims(tuple(reversed(range(len(entry.shape)))))


async def load(source: Source, entry: Entry, how: How, key: Any = None) -> Tensor:
    """A tensor, or the part of it that a key selects."""
    if key is not None:
        return await _load_part(source, entry, key, how)
    if how.device is None or entry.dtype.bits % 8:
        flat = _finished(await elements(source, entry, how), entry.nbytes, how)
    else:
        flat = await _to_gpu(source, entry, how)
    return shaped(flat, entry)


def _finished(tensor: Tensor, nbytes: int, how: How) -> Tensor:
    """Of elements on the CPU, which it releases unless it returns them."""
    if how.device is not None or how.dtype not in (None, tensor.dtype):
        with tensor:
            tensor = tensor.to_device(how.device or CPU, dtype=how.dtype)
    try:
        _tell(how, nbytes, nbytes)
    except BaseException:
        tensor.release()
        raise
    return tensor


async def _load_part(source: Source, entry: Entry, key: Any, how: How) -> Tensor:
    """Some of the elements: a view if possible; otherwise only these are read."""
    part = part_of(key, entry.shape)
    if entry.dtype.bits * entry.dtype.lanes % 8:
        malformed(
            entry.name or "the file",
            f"parts of {entry.dtype}, whose elements have less than a byte, are not "
            "supported: load all of it, and index the tensor",
        )
    nbytes = nbytes_of(entry.dtype, part.loaded)
    view = None if how.device is not None else _view_of(source, entry)
    if view is not None:
        with shaped(view, entry) as whole:
            return _finished(whole[key], nbytes, how)
    cut = entry._replace(shape=part.loaded, nbytes=nbytes)
    if nbytes:
        blocks, end = blocks_of(part, entry, PIECE), _ALL
        if how.remote is not None:
            blocks, end = how.remote.blocks(source, part, entry, how.whole)
        first = next(blocks)
        cut = cut._replace(start=first.start)
        if (first.nbytes, prod(first.shape)) != (nbytes, prod(part.loaded)):
            source = _Scattered(source, chain([first], blocks), end)
    with await load(source, cut, how) as tensor:
        return tensor[part.key]


class _Scattered:
    """A source whose elements are in blocks, before `end`."""

    def __init__(self, source: Source, blocks: Iterator[Block], end: int) -> None:
        self._source, self._blocks, self._end = source, blocks, end

    @contextmanager
    def reading(self, entry: Entry) -> Iterator[Reading]:
        some = entry._replace(nbytes=self._end - entry.start)
        with self._source.reading(some) as found:
            yield _Gathering(found, entry, self._blocks)


class _Gathering(Reading):
    """Reads blocks, and of each the selected elements."""

    def __init__(self, found: Reading, entry: Entry, blocks: Iterator[Block]) -> None:
        self._found, self._place = found, entry.start
        self._dtype, self._blocks = entry.dtype, blocks
        self._left = 0  # selected bytes of this block
        self._packed: memoryview | None = None  # these; None: all that follow

    def into(self, memory: memoryview) -> None:
        while memory.nbytes:
            if self._left == 0:
                self._begin(next(self._blocks))
            count = min(self._left, memory.nbytes)
            if self._packed is None:
                self._found.into(memory[:count])
            else:
                memory[:count] = self._packed[:count]
                self._packed = self._packed[count:]
            self._left -= count
            memory = memory[count:]

    def _begin(self, block: Block) -> None:
        self._found.skip(block.start - self._place)
        self._place = block.start + block.nbytes
        self._left, self._packed = prod(block.shape) * self._dtype.itemsize, None
        if self._left == block.nbytes:
            return
        size = block.nbytes // self._dtype.itemsize
        with _core._empty((size,), self._dtype._packed, False) as read:
            self._found.into(memoryview(_core._raw(read)[0]))
            with _core._view(read, block.shape, block.strides, 0) as selected:
                packed = _core.from_dlpack(selected, copy=True)
        self._packed = memoryview(_core._raw(packed)[0])


async def _to_gpu(source: Source, entry: Entry, how: How) -> Tensor:
    """The elements along one axis on a GPU, uploaded piece by piece."""
    assert how.device is not None
    size = prod(entry.shape)
    target = empty(size, how.dtype or entry.dtype, device=how.device)
    try:
        first = under_way = 0
        with closing(pieces(source, entry)) as parts:
            while (piece := await off(how, next, parts, None)) is not None:
                if under_way >= UNDER_WAY * PIECE:
                    await owner(how.device.id).settle(how.device.id)
                    under_way = 0
                under_way += piece.nbytes
                with target[first : first + len(piece)] as part:
                    part.write(piece, convert=True)
                first += len(piece)
                _tell(how, first * entry.dtype.itemsize, entry.nbytes)
    except BaseException:
        target.release()
        raise
    if size == 0:
        _tell(how, 0, 0)
    return target


def _tell(how: How, loaded: int, total: int | None) -> None:
    if how.progress is not None:
        how.progress(loaded, total)
