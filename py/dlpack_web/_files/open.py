"""Files of tensors: .npy, .npz, safetensors and raw elements, to the CPU or to a GPU."""

import asyncio
import os
import re
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from math import prod
from operator import index as as_int
from os import PathLike, fsdecode
from os.path import exists
from typing import Any, NamedTuple, Self, SupportsIndex

from .. import _core
from .._backends import IN_BROWSER, default, javascript, owner
from .._layout import views
from .._layout.dtype import DType, parse_dtype
from .._layout.text import bounded, shown, type_of
from .._tensor.device import CPU, await_default_device, parse_device
from .._tensor.hints import awaited
from .._tensor.tensor import Tensor
from . import local, shards
from .archive import Archive
from .headers import Entry, Unreadable, is_raw, malformed
from .local import How, Progress
from .parts import part_of

# Tensors of a sharded model that are loaded at the same time.
_AT_ONCE = 6
_FORMATS = "npy", "npz", "safetensors", "raw"
# JavaScript's errors for indices that are none of an array, which it raises as others.
_NO_PLACE = re.compile(r"out of bounds|\d ranges for \d")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|data:|blob:")
# URLs of files of which some bytes are read at first.
_SEVERAL = re.compile(r"\.(npz|safetensors|json)([?#]|\Z)", re.IGNORECASE)


class TensorInfo(NamedTuple):
    """The properties of a tensor in a file, before it is loaded.

    Attributes
    ----------
    dtype : DType or str
        A str is the file's name for a dtype that is not supported, such as safetensors'
        "F4" or NumPy's "<U3", or "unreadable" for an array of an archive whose header
        cannot be read. That tensor cannot be loaded; the others can.
    shape : tuple of int
    nbytes : int
        Bytes of the elements in the file.

    Examples
    --------
    >>> dlw.TensorInfo(dlw.DType("float32"), (2, 3), 24).shape
    (2, 3)
    """

    dtype: DType | str
    shape: tuple[int, ...]
    nbytes: int


type _Inside = _LocalInside | _JsInside


class TensorPart:
    """A part of a tensor in a file, which `TensorFile.get_slice` returns: its properties
    are known, and only its elements are loaded.

    `get_slice(name)` is the whole tensor, `get_slice(name)[index]` a part of it. An index
    has ints, slices, `...` and None, as that of a Tensor.

    Attributes
    ----------
    shape : tuple of int
    dtype : DType or str
        As in `TensorInfo`.
    nbytes : int
        Bytes of the elements in the file.

    Examples
    --------
    >>> data = await dlw.save(None, {"w": np.arange(12.0).reshape(4, 3)})
    >>> part = (await dlw.open(data)).get_slice("w")[1:3, ::-1]
    >>> part.shape, part.nbytes
    ((2, 3), 48)
    >>> (await part.load()).numpy()
    array([[5., 4., 3.],
           [8., 7., 6.]])
    """

    def __init__(self, file: "TensorFile", name: str, key: Any = ()) -> None:
        self._file, self._name, self._key = file, name, tuple(views.items_of(key))
        info = file.info(name)
        self.shape, self.dtype = part_of(key, info.shape).shape, info.dtype
        size = prod(info.shape)
        self.nbytes = info.nbytes * prod(self.shape) // size if size else 0

    def __getitem__(self, key: Any) -> "TensorPart":
        if self._key != ():
            raise TypeError(
                "this is a part of a tensor: give all indices at once, get_slice(name)[i, j]"
            )
        return TensorPart(self._file, self._name, key)

    async def load(self, dtype: Any = None) -> Tensor:
        """Loads the elements, and only these, to the device that the file was opened for.

        Parts that are loaded at the same time (`asyncio.gather`) share requests.

        Parameters
        ----------
        dtype : dtype, optional
            Converts the elements; default: as the file was opened with.

        Returns
        -------
        Tensor
            A new one each time.

        Raises
        ------
        BufferError
            It cannot be read, or a server would send more of the file; then open the file
            with ``whole=True``.
        ReleasedError
            The file was closed.

        Examples
        --------
        >>> data = await dlw.save(None, {"w": np.arange(4, dtype="u1")})
        >>> (await (await dlw.open(data)).get_slice("w")[1].load()).numpy()
        array(1, dtype=uint8)
        """
        return await self._file._load_part(self._name, self._key, dtype)

    def __repr__(self) -> str:
        return (
            f"<TensorPart of {self._name!r:.100}: {list(self.shape)} of {self.dtype}>"
        )


class TensorFile(Mapping[str, Tensor]):
    """A file of several tensors (safetensors, npz), or a model of several files: a
    mapping of their names to Tensors, each loaded when it is first requested.

    `await file.load("a", "b")` loads some, `await file.load()` all; then `file["a"]`
    returns one. On the desktop, and where Python may block (JSPI), `file["a"]` loads it
    if needed. Tensors stay valid when the file is closed.

    >>> data = await dlw.save(None, {"w": dlw.from_buffer(b"abc")})
    >>> with await dlw.open(data) as weights:
    ...     list(weights), weights.info("w").shape
    ...     await weights.load()
    ...     weights["w"].tobytes()
    (['w'], (3,))
    (Tensor([97, 98, 99], shape=(3,), dtype='uint8', device='cpu', read_only),)
    b'abc'
    """

    def __init__(self, inside: _Inside, name: str, how: How) -> None:
        self._inside: _Inside | None = inside
        self._infos, self._metadata = inside.infos, inside.metadata
        self._refused = inside.refused
        self._name, self._how = name, how
        self._loaded: dict[str, Tensor] = {}

    @property
    def metadata(self) -> dict[str, str]:
        """The file's own metadata: `__metadata__` of safetensors.

        >>> data = await dlw.save(None, {"w": dlw.empty(3)}, metadata={"by": "me"})
        >>> (await dlw.open(data)).metadata
        {'by': 'me'}
        """
        return dict(self._metadata)

    def info(self, name: str) -> TensorInfo:
        """dtype, shape and bytes of a tensor, without reading its elements.

        Parameters
        ----------
        name : str
            One of the file's names.

        Raises
        ------
        KeyError
            No tensor has that name.

        Examples
        --------
        >>> data = await dlw.save(None, {"w": dlw.empty((2, 3))})
        >>> (await dlw.open(data)).info("w")
        TensorInfo(dtype='float32', shape=(2, 3), nbytes=24)
        """
        try:
            return self._infos[name]
        except KeyError:
            names = ", ".join(each[:80] for each in islice(self._infos, 20))
            raise KeyError(
                bounded(
                    f"{self._name} has no tensor {shown(name)}; it has {names or 'none'}"
                )
            ) from None

    async def load(self, *names: str, dtype: Any = None) -> tuple[Tensor, ...]:
        """Loads tensors, except those that are already loaded, with that dtype.

        After an error, or if the task is cancelled, earlier tensors stay loaded.

        Parameters
        ----------
        *names : str
            Default: all.
        dtype : dtype, optional
            Converts the elements; default: as they are loaded, or as the file was opened with.

        Returns
        -------
        tuple of Tensor
            In the order of `names`. The file holds them, too, the last ones of each name.

        Raises
        ------
        BufferError
            One of them cannot be read, for example because of its dtype. Then nothing is
            loaded; load the others by name.
        ReleasedError
            The file was closed, even during the load.

        Examples
        --------
        >>> data = await dlw.save(None, {"w": dlw.empty((2, 3)), "b": dlw.empty(3)})
        >>> b, w = await (await dlw.open(data)).load("b", "w")
        >>> b.shape, w.shape
        ((3,), (2, 3))
        """
        asked = None if dtype is None else parse_dtype(dtype)
        how = self._how._replace(dtype=asked or self._how.dtype)
        wanted = names or tuple(self._infos)
        for name in wanted:
            if self._there(name, asked) is None:
                self._check(name, how)
        inside = self._open()
        if isinstance(inside, _LocalInside) and how.remote is not None:
            inside.expect([name for name in wanted if self._there(name, asked) is None])
        if inside.shards > 1:
            return await self._side_by_side(wanted, how, asked)
        return tuple([await self._load(name, how, asked) for name in wanted])

    async def _side_by_side(
        self, names: tuple[str, ...], how: How, asked: DType | None
    ) -> tuple[Tensor, ...]:
        """From JavaScript some at a time; the progress is that of all of them."""
        limit = asyncio.Semaphore(_AT_ONCE)
        done = dict.fromkeys(names, 0)
        missing = (name for name in done if self._there(name, asked) is None)
        total = sum(self._infos[name].nbytes for name in missing)

        async def one(name: str) -> Tensor:
            def report(loaded: int, _: int | None) -> None:
                assert how.progress is not None
                done[name] = loaded
                how.progress(sum(done.values()), total)

            async with limit:
                own = how._replace(progress=how.progress and report)
                return await self._load(name, own, asked)

        if not isinstance(self._inside, _JsInside):
            return tuple([await one(name) for name in names])
        tasks = [asyncio.ensure_future(one(name)) for name in done]
        try:
            found = dict(zip(done, await asyncio.gather(*tasks), strict=True))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return tuple(found[name] for name in names)

    def get_slice(self, name: str) -> TensorPart:
        """A tensor of which parts are loaded.

        ``await file.get_slice("w")[1000:2000].load()`` reads the bytes of these rows alone.

        Parameters
        ----------
        name : str
            One of the file's names.

        Returns
        -------
        TensorPart
            Index it, then ``await part.load()``.

        Raises
        ------
        KeyError
            No tensor has that name.

        Examples
        --------
        >>> data = await dlw.save(None, {"w": np.arange(9)})
        >>> (await (await dlw.open(data)).get_slice("w")[2:4].load()).numpy()
        array([2, 3])
        """
        return TensorPart(self, name)

    async def parts(
        self, name: str, *, nbytes: int = 1 << 27, dtype: Any = None
    ) -> AsyncGenerator[Tensor]:
        """Loads a tensor in parts, for one that is larger than the memory or than a
        buffer of the GPU.

        Parameters
        ----------
        name : str
            One of the file's names.
        nbytes : int
            Bytes in the file that a part has at most; default: 128 MiB, which every
            device can bind.
        dtype : dtype, optional
            As in `load`.

        Yields
        ------
        Tensor
            Consecutive rows: release each when you no longer need it.

        Raises
        ------
        BufferError
            One row has more bytes.

        Examples
        --------
        >>> data = await dlw.save(None, {"w": np.ones((5, 2), "f4")})
        >>> async for rows in (await dlw.open(data)).parts("w", nbytes=16):
        ...     print(rows.shape)
        (2, 2)
        (2, 2)
        (1, 2)
        """
        info, nbytes = self.info(name), as_int(nbytes)
        whole = self.get_slice(name)
        if info.nbytes <= max(nbytes, 0) or 0 in info.shape:
            yield await whole.load(dtype)
            return
        rows = info.shape[0] if info.shape else 1
        count = nbytes * rows // info.nbytes
        if count < 1:
            malformed(
                self._name,
                f"one row of tensor {shown(name)} has {info.nbytes // rows} bytes, more "
                f"than {nbytes}: use get_slice() with an index for each axis",
            )
        for first in range(0, rows, count):
            yield await whole[first : first + count].load(dtype)

    async def _load_part(self, name: str, key: Any, dtype: Any) -> Tensor:
        how = self._how
        if dtype is not None:
            how = how._replace(dtype=parse_dtype(dtype))
        self._check(name, how)
        return await self._fresh(name, how, key)

    async def _fresh(self, name: str, how: How, *key: Any) -> Tensor:
        tensor = await self._open().load(name, how, *key)
        if self._inside is None:  # another task closed the file
            tensor.release()
        self._open()
        return tensor

    def _check(self, name: str, how: How) -> None:
        """BufferError if that tensor cannot be loaded, KeyError if there is none."""
        dtype = self.info(name).dtype
        why = self._refused.get(name)
        if why is None or (how.dtype is not None and is_raw(dtype, how.dtype)):
            return
        others = (each for each in self._infos if each not in self._refused)
        named = [shown(each) for each in islice(others, 5)]
        some = ", ".join(named[:4] + ["..."] * (len(named) > 4))
        helps = f"the others can: `await file.load({some})`" if named else ""
        malformed(
            self._name,
            f"tensor {shown(name)} {why}; {helps or 'the file has no others'}",
        )

    def _there(self, name: str, asked: DType | None = None) -> Tensor | None:
        found = self._loaded.get(name)
        if found is None or found.released or asked not in (None, found.dtype):
            return None
        return found

    async def _load(self, name: str, how: How, asked: DType | None = None) -> Tensor:
        found = self._there(name, asked)
        if found is not None:
            return found
        tensor = await self._fresh(name, how)
        found = self._there(name, asked)
        if found is not None:  # another task has loaded it
            tensor.release()
            return found
        self._loaded[name] = tensor
        return tensor

    def __getitem__(self, name: str) -> Tensor:
        found = self._there(name)
        if found is not None:
            return found
        self._check(name, self._how)
        load = partial(self._load, name, self._how._replace(at_once=True))
        is_js = isinstance(self._open(), _JsInside)
        if not is_js and not _waits(self._infos[name], self._how):
            return _at_once(load())
        device = self._how.device
        backend = default() if device is None else owner(device.id)
        if not backend.can_block():
            raise BufferError(
                f"tensor {shown(name)} is not loaded yet, and Python cannot wait for it "
                f"here: `await file.load({shown(name)})` first"
            )
        return _blocking(backend, load)

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the file. Tensors that you still have stay valid.

        >>> weights = await dlw.open(await dlw.save(None, {"w": dlw.empty(3)}))
        >>> weights.close()
        """
        inside, self._inside = self._inside, None
        self._loaded.clear()
        if inside is not None:
            inside.close()

    def _open(self) -> _Inside:
        if self._inside is None:
            raise _core.ReleasedError(f"{self._name} was closed")
        return self._inside

    def __repr__(self) -> str:
        state = f"{len(self._loaded)} loaded" if self._inside else "closed"
        return f"<TensorFile {self._name}: {len(self)} tensors, {state}>"


@awaited("nothing is opened", "dlw.open(…)")
async def open(
    source: Any,
    *,
    device: str | tuple[int, int] = "cpu",
    dtype: Any = None,
    shape: SupportsIndex | Iterable[int] | None = None,
    format: str | None = None,
    part: Any = None,
    progress: Progress | None = None,
    whole: bool = False,
) -> Tensor | TensorFile:
    """Opens a file of tensors: .npy, .npz, safetensors, or raw elements; and a model of
    several safetensors files by its index, model.safetensors.index.json.

    A file may be larger than Python's memory: elements are uploaded piece by piece, at most
    32 MiB at a time. On the CPU, bytes in memory and paths on the desktop, which are mapped,
    are not copied; such a Tensor is read-only, and must not be used after the file has been
    truncated. Cancelling the task leaves nothing behind.

    Parameters
    ----------
    source : str, path, bytes, buffer or JsProxy
        A str with "://" is a URL, requested in ranges if the server has them, and resumed if
        the connection breaks; another one is a path if that file exists, else, in the
        browser, a URL relative to the page. A JsProxy is a File, Blob, Response, stream or
        file handle. Of a sharded model: the index, beside which the shards are, the path or
        directory handle of their folder, or a JavaScript array of the Files in it.
    device : str or Device
        Where the elements go.
    dtype : dtype, optional
        Converts the elements, as in `to_device`. Of raw elements, and of those that NumPy
        wrote without their dtype ("<V2" of ml_dtypes.bfloat16, "<f1"), their own dtype.
    shape : int or tuple of int, optional
        Of raw elements; default: one axis.
    format : str, optional
        "npy", "npz", "safetensors" or "raw"; default: detected from the first bytes, and raw
        if these show nothing and `dtype` is given.
    part : index, optional
        Of a file with one array, such as np.s_[1000:2000]: only these elements are read. For
        several tensors, see `TensorFile.get_slice`.
    progress : callable, optional
        Called with the number of bytes of a tensor loaded so far, and their total (None if
        unknown). An exception in it ends the load.
    whole : bool
        Whether more may be read from a server than a part, where that is needed: the whole
        file if the server lacks ranges, a compressed array from its start, the gaps
        between scattered elements. By default these are errors. Local files need no `whole`.

    Returns
    -------
    Tensor or TensorFile
        A Tensor for you to release; for npz and safetensors a `TensorFile`, a mapping of
        names to Tensors.

    Raises
    ------
    BufferError
        A file that is truncated, damaged or of another format, a dtype that DLPack lacks
        (pickled objects included), a tensor too large for one GPUBuffer, an error of the
        server.
    OSError
        The path cannot be read.

    Examples
    --------
    >>> data = await dlw.save(None, dlw.from_buffer(b"abc"), format="npy")
    >>> (await dlw.open(data)).numpy()
    array([97, 98, 99], dtype=uint8)
    >>> (await dlw.open(bytes(8), dtype="float32", shape=(1, 2))).numpy()
    array([[0., 0.]], dtype=float32)
    """
    if format is not None and format not in _FORMATS:
        raise ValueError(
            f"format must be one of {', '.join(_FORMATS)}, not {shown(format)}"
        )
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function, not {shown(progress)}")
    target = parse_device(device) or await await_default_device()
    how = How(
        None if target is CPU else target,
        None if dtype is None else parse_dtype(dtype),
        progress,
        bool(whole),
    )
    if part is not None:
        views.items_of(part)
    sizes = None if shape is None else views.extents(shape)
    file = _local(source, format, part)
    if file is None:
        return await _open_js(source, format, sizes, part, how)
    if file.remote:
        from . import remote

        how = how._replace(remote=remote)
    try:
        found = await local.off(how, _contents, file, format, sizes, part, how)
        if isinstance(found, TensorFile):
            return found
        tensor = await local.load(file, found, how, part)
    except BaseException:
        file.close()  # the traceback keeps it
        raise
    if file.remote:
        file.close()
    return tensor


def _local(source: Any, format: str | None, part: Any) -> local.Local | None:
    """The file, if Python itself can read it; None: JavaScript opens it."""
    if isinstance(source, str):
        if _URL.match(source) or (IN_BROWSER and not exists(source)):
            if IN_BROWSER:
                return None
            from .remote import open_url

            several = _SEVERAL.search(source) if format is None else format[0] in "ns"
            few = part is not None or (bool(several) and format != "npy")
            return open_url(source, few)
        return local.open_path(shards.index_of(source))
    if isinstance(source, PathLike):
        return local.open_path(shards.index_of(fsdecode(source)))
    if javascript.is_js(source):
        return None
    try:
        return local.open_buffer(source)
    except TypeError:
        raise TypeError(
            "open takes a URL, a path, bytes or, in the browser, a JavaScript File, "
            f"Blob, Response or stream, not {type_of(source)}"
        ) from None


# --- files that Python reads -----------------------------------------------------------------


def _contents(
    file: Any, wanted: str | None, shape: Any, part: Any, how: How
) -> Entry | TensorFile:
    """The one tensor of a file, or all of its tensors."""
    if file.remote and wanted != "raw":
        file.check(False)
    format = local.format_of(file, wanted, how.dtype is not None, shape is not None)
    if file.remote and format == "raw" != wanted:
        file.check(True)
    if format != "raw" and shape is not None:
        raise TypeError(
            f"{file.name} is a file of format {format}, which has its own shape; for "
            "its bytes as they are, use format='raw'"
        )
    if format == "raw":
        if how.dtype is None:
            raise TypeError("raw elements need their dtype")
        return local.raw_entry(file, how.dtype, shape)
    if format == "npy":
        return local.npy_entry(file, how.dtype)
    if part is not None:
        raise TypeError(
            f"{file.name} has several tensors: open it without part, then "
            "file.get_slice(name)[...]"
        )
    return TensorFile(_LocalInside(file, format), file.name, how)


class _LocalInside:
    """The tensors of a file, or of a model in several files, that Python reads."""

    def __init__(self, file: local.Local, format: str) -> None:
        self.infos: dict[str, TensorInfo] = {}
        # Why some cannot be loaded: "has dtype ...", of the tensor.
        self.refused: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.shards = 1
        self._places: dict[str, tuple[Any, Entry | Unreadable]] = {}
        if format == "npz":
            archive = Archive(file)
            self._add(archive, archive.entries)
        elif format == "index":
            self._add_shards(file)
        else:
            self._add_safetensors(file)

    def _add_shards(self, index: Any) -> None:
        found, metadata = shards.read_index(index)
        folder = os.path.abspath(os.path.dirname(index.name))
        names = dict.fromkeys(found.values())
        self.shards = len(names)
        for shard in names:
            path = os.path.join(folder, shard)
            file = index.sibling(shard) if index.remote else local.Again(path)
            inside = self._add_safetensors(file)
            shards.check_names(shard, inside, found, index.name)
        shards.check_all(self.infos, found, index.name)
        self.metadata = metadata
        if index.remote:
            index.close()

    def _add_safetensors(self, file: Any) -> list[str]:
        """The names of its tensors."""
        with _reading(file) as there:
            local.format_of(there, "safetensors", False, False)
            entries, self.metadata = local.safetensors_entries(there)
        self._add(file, entries)
        return [entry.name for entry in entries]

    def _add(self, source: Any, entries: list[Entry | Unreadable]) -> None:
        for entry in entries:
            name = entry.name
            self._places[name] = source, entry
            self.infos[name] = TensorInfo(entry.dtype, entry.shape, entry.nbytes)
            if isinstance(entry, Unreadable):
                self.refused[name] = entry.why

    async def load(self, name: str, how: How, key: Any = None) -> Tensor:
        if not self._places:
            raise _core.ReleasedError("the file was closed")
        source, entry = self._places[name]
        entry = local.as_raw(entry, how.dtype, entry.start + entry.nbytes, name)
        with _reading(source) as there:
            return await local.load(there, entry, how, key)

    def expect(self, names: list[str]) -> None:
        # tensors of files at URLs that are loaded next
        wanted = [self._places[name] for name in names]
        for source in self._sources():
            if not isinstance(source, Archive):
                entries = [entry for file, entry in wanted if file is source]
                source.expect([each for each in entries if isinstance(each, Entry)])

    def _sources(self) -> list[Any]:
        return [*{id(source): source for source, _ in self._places.values()}.values()]

    def close(self) -> None:
        sources, self._places = self._sources(), {}
        for source in sources:
            file = getattr(source, "file", source)
            if getattr(file, "remote", False):
                file.close()


@contextmanager
def _reading(source: Any) -> Iterator[Any]:
    """The source; one that is opened for each read is closed afterwards."""
    if isinstance(source, local.Again):
        with closing(source.open()) as file:
            yield file
    else:
        yield source


def _waits(info: TensorInfo, how: How) -> bool:
    """Whether loading a tensor may wait for the GPU."""
    return how.device is not None and (
        IN_BROWSER or info.nbytes > local.UNDER_WAY * local.PIECE
    )


def _at_once(coroutine: Coroutine[Any, Any, Tensor]) -> Tensor:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: Tensor = done.value
        return found
    raise AssertionError("a coroutine that never waits has waited")


def _blocking(
    backend: Any, function: Callable[[], Coroutine[Any, Any, Tensor]]
) -> Tensor:
    """The result of a coroutine function, where Python may block."""
    found: list[Tensor] = []

    async def keep() -> None:
        """Returns nothing: a result would pass through JavaScript."""
        found.append(await function())

    if IN_BROWSER:
        # An interrupt would leave a coroutine that never started.
        javascript.hold_interrupts()
        javascript.block_on(asyncio.ensure_future(keep()))
    else:
        backend.block_on(keep())
    return found[0]


# --- files that JavaScript opens --------------------------------------------------------------


async def _open_js(
    source: Any, format: str | None, shape: Any, part: Any, how: How
) -> Tensor | TensorFile:
    wanted, after = how.in_javascript(part)
    wanted |= {"format": format, "shape": shape}
    args = source, how.js_device, javascript.options(wanted)
    try:
        kept, found = await _loaded(how.progress, javascript.calls().files.open, *args)
    except ValueError as error:  # JavaScript has one class for both
        if part is not None and _NO_PLACE.search(str(error)):
            raise IndexError(str(error)) from None
        raise
    if hasattr(found, "names"):
        inside = _JsInside(kept, found)
        return TensorFile(inside, inside.name, how)
    return _received(found, after)


def _received(found: Any, key: Any) -> Tensor:
    """A Tensor of JavaScript's; a view of it, if there is a key."""
    tensor = javascript.receive(javascript.calls().tensors.fromJs, found)
    if key is None:
        return tensor
    with tensor:
        return tensor[key]


async def _loaded(
    progress: Progress | None, function: Any, *args: Any
) -> "tuple[javascript.Kept[Any], Any]":
    """What JavaScript loads, and what keeps it. Cancelling the wait aborts it."""
    raised: list[BaseException] = []

    def report(loaded: int, total: int | None) -> None:
        assert progress is not None
        try:
            progress(loaded, total)
        except BaseException as error:
            raised.append(error)
            raise

    reporter = None if progress is None else javascript.callback(report)
    try:
        kept = javascript.Kept(function, *args, reporter)
        try:
            return kept, await javascript.finish(kept.js.promise)
        except BaseException:
            kept.js.release()  # aborts the load of a cancelled task
            if raised:
                raise raised[0] from None
            raise
    finally:
        if reporter is not None:
            reporter.destroy()


class _JsInside:
    """The tensors of a file that JavaScript has open; closed when this is collected."""

    def __init__(self, kept: "javascript.Kept[Any]", file: Any) -> None:
        self._kept, self._file = kept, file
        facts = javascript.invoke(javascript.calls().files.factsOf, file)
        self.name, infos = str(facts.name), facts.infos.to_py()
        self.shards = int(facts.shards)
        self.metadata: dict[str, str] = dict(facts.metadata.to_py())
        self.refused = {name: why for name, _, _, _, why in infos if why}
        self.infos = {
            name: TensorInfo(
                dtype if name in self.refused else parse_dtype(dtype),
                tuple(shape),
                nbytes,
            )
            for name, dtype, shape, nbytes, _ in infos
        }

    async def load(self, name: str, how: How, key: Any = None) -> Tensor:
        wanted, after = how.in_javascript(key)
        args = self._file, name, how.js_device, javascript.options(wanted)
        _, found = await _loaded(how.progress, javascript.calls().files.load, *args)
        return _received(found, after)

    def close(self) -> None:
        self._file.close()
