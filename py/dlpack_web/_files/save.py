"""Saves tensors to files: .npy and safetensors, piece by piece, also from a GPU."""

import errno
import io
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing, suppress
from functools import partial
from math import prod
from operator import index as as_int
from os import PathLike
from stat import S_ISREG
from typing import Any, Literal

from .. import _core
from .._backends import javascript, owner_of
from .._backends.calls import refuse_recorded
from .._layout.text import shown, type_of
from .._tensor.hints import awaited
from .._tensor.tensor import Tensor, share
from .headers import is_broken, malformed, npy_header, safetensors_header
from .local import PIECE


@awaited("nothing is saved", "dlw.save(…)")
async def save(
    target: Any,
    tensors: Any,
    /,
    *,
    format: Literal["npy", "safetensors"] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> bytes | None:
    """Writes a tensor to a .npy file, or a mapping of names to tensors to a safetensors file.

    A GPU tensor is read back in pieces of at most 8 MiB, never copied as a whole. A regular
    file is replaced as a whole or not at all: a new file is written beside it, with the same
    permissions and, if the process may set it, the same owner, and is renamed at the end.
    Symbolic links are followed; another hard link to the old file keeps the old contents.
    Other files, such as a FIFO or a device, are written as by `open(path, "wb")`.

    Parameters
    ----------
    target : path, file object, JsProxy or None
        A file object has `write`; a JsProxy is a WritableStream or a file handle.
    tensors : Tensor, array, or mapping of str to these
        Any object that shares memory.
    format : str, optional
        "npy" or "safetensors"; default: from the suffix of the path, and without one npy for
        one tensor and safetensors for a mapping.
    metadata : mapping of str to str, optional
        For safetensors files.

    Returns
    -------
    bytes or None
        The file's bytes, if `target` is None.

    Raises
    ------
    BufferError
        A dtype that the format lacks.
    ValueError
        Another suffix; names or metadata with lone surrogates.
    OSError
        As `open` raises it, or a full disk.

    Examples
    --------
    >>> data = await dlw.save(None, np.arange(3, dtype="u1"))
    >>> data[:6], len(data)
    (b'\\x93NUMPY', 131)
    >>> data = await dlw.save(None, {"w": np.zeros(2)}, metadata={"by": "me"})
    >>> list(await dlw.open(data))
    ['w']
    """
    single = not isinstance(tensors, Mapping)
    named = {"": tensors} if single else tensors
    if isinstance(target, PathLike):
        target = os.fsdecode(target)
    wanted = _format_of(target, format, single)
    said = _metadata_of(metadata, wanted)
    held: dict[str, Tensor] = {}
    try:
        for name, tensor in named.items():
            if not isinstance(name, str):
                raise TypeError(f"names of tensors must be str, not {shown(name)}")
            if name in held:
                raise ValueError(f"two tensors have the name {shown(name)}")
            _check_text(name)
            held[name] = share(tensor)
        if javascript.is_js(target):
            await _save_js(target, held, wanted, said)
            return None
        memory = io.BytesIO()
        await _save(memory if target is None else target, held, wanted, said)
        return memory.getvalue() if target is None else None
    finally:
        for tensor in held.values():
            tensor.release()


def _format_of(target: Any, format: str | None, single: bool) -> str:
    if format is None:
        name = target
        if javascript.is_js(target):
            name = getattr(target, "name", None)
        suffix = os.path.splitext(name)[1].lower() if isinstance(name, str) else ""
        if suffix == ".npz":
            raise ValueError(
                ".npz files cannot be written, only read: save as .safetensors"
            )
        known = {".npy": "npy", ".safetensors": "safetensors"}
        if suffix and suffix not in known:
            raise ValueError(
                f"{shown(suffix, 20)} files are not written: name it .npy or .safetensors, or "
                "give format="
            )
        format = known.get(suffix, "npy" if single else "safetensors")
    if format not in ("npy", "safetensors"):
        raise ValueError(f"format must be 'npy' or 'safetensors', not {shown(format)}")
    if (format == "npy") != single:
        raise TypeError(
            "a .npy file has one tensor: pass it alone, or save as safetensors"
            if format == "npy"
            else "a safetensors file has names: pass a mapping of names to tensors"
        )
    return format


def _metadata_of(metadata: Any, format: str) -> dict[str, str]:
    """A copy, which cannot change after the check."""
    if metadata is None:
        return {}
    if format == "npy":
        raise TypeError("a .npy file has no metadata: save as safetensors")
    if not isinstance(metadata, Mapping):
        raise TypeError(
            "metadata must be a mapping of str to str, such as a dict, not a "
            f"{type(metadata).__qualname__}"
        )
    said = dict(metadata)
    for pair in said.items():
        for each in pair:
            if not isinstance(each, str):
                raise TypeError(
                    "metadata must be a mapping of str to str, not of "
                    f"({shown(pair[0])}, {shown(pair[1])}): use str(x)"
                )
            _check_text(each)
    return said


def _check_text(text: str) -> None:
    if is_broken(text):
        raise ValueError(
            f"{text[:100]!a:.100} has a lone surrogate, which UTF-8, and so safetensors, "
            "cannot encode: use another name"
        )


async def _save_js(
    target: Any, tensors: dict[str, Tensor], format: str, metadata: dict[str, str]
) -> None:
    """Lets JavaScript write tensors to one of its streams or files."""
    wanted = javascript.options({"format": format, "metadata": metadata})
    names = javascript.js_list(tensors)
    kept = javascript.Kept(
        javascript.calls().files.save, target, names, wanted, *map(id, tensors.values())
    )
    try:
        await javascript.finish(kept.js.promise)
    finally:
        kept.js.release()


async def _save(
    target: Any, held: dict[str, Tensor], format: str, metadata: Mapping[str, str]
) -> None:
    header = _header_of(held, format, metadata, target)
    file = _target_of(target)
    try:
        file.write(header)
        for tensor in held.values():
            async with aclosing(_pieces(tensor)) as pieces:
                async for piece in pieces:
                    file.write(piece)
        file.end()
    except BaseException:
        file.undo()
        raise


def _header_of(
    held: dict[str, Tensor], format: str, metadata: Mapping[str, str], target: Any
) -> bytes:
    """The header. A tensor whose first index varies fastest becomes its transpose, in
    the order of the file."""
    what = target if isinstance(target, str) else "the file"
    for tensor in held.values():
        if tensor.padded or tensor.dtype.bits % 8:
            malformed(
                what,
                f"no format supports elements of less than a byte: {tensor._facts_alone()}",
            )
    if format == "safetensors":
        facts = [(name, t.dtype, t.shape) for name, t in held.items()]
        return safetensors_header(facts, metadata, what)
    (tensor,) = held.values()
    dtype, shape = tensor.dtype, tensor.shape
    turned = tensor.permute_dims(tuple(reversed(range(tensor.ndim))))
    columns = turned._row_major() and not tensor._row_major()
    if columns:
        held[""], turned = turned, tensor
    turned.release()
    return npy_header(dtype, shape, columns, what)


# --- elements ------------------------------------------------------------------------------


async def _pieces(tensor: Tensor) -> AsyncGenerator[memoryview]:
    """The bytes of all elements in row-major order, in pieces."""
    with closing(_parts(tensor)) as parts:
        for part in parts:
            with part:
                if not part.device.is_host:
                    refuse_recorded(part, False)
                    with _core._empty(part.shape, part._dtype, False) as landing:
                        await owner_of(part).read([part], [landing])
                        yield memoryview(_core._raw(landing)[0])
                else:
                    copy = None if part._row_major() else True
                    with _core.from_dlpack(part, copy=copy) as packed:
                        yield memoryview(_core._raw(packed)[0])


def _parts(tensor: Tensor) -> Generator[Tensor]:
    """Consecutive views of at most PIECE bytes, or one element."""
    if tensor.size == 0:
        return
    if tensor._row_major():
        count = max(PIECE // tensor.itemsize, 1)
        with tensor.reshape(-1) as flat:
            for first in range(0, tensor.size, count):
                yield flat[first : first + count]
        return
    row = prod(tensor.shape[1:]) * tensor.itemsize
    rows = PIECE // row
    if rows:
        for first in range(0, len(tensor), rows):
            yield tensor[first : first + rows]
        return
    for each in tensor:
        with each:
            yield from _parts(each)


# --- targets ---------------------------------------------------------------------------------
#
# Nothing is made before the first write(): undo() finds all of it, wherever an interrupt comes.


def _target_of(target: Any) -> "_Object | _Path":
    if isinstance(target, str):
        return _Path(target)
    if callable(getattr(target, "write", None)):
        return _Object(target)
    raise TypeError(
        "save takes a path, a file object, None or, in the browser, a JavaScript "
        f"WritableStream or file handle, not {type_of(target)}"
    )


class _Object:
    """A file object of the caller, who closes it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, piece: memoryview | bytes) -> None:
        _write_all(self._file, piece)

    def end(self) -> None:
        """Nothing: what was written stays, also after an error."""

    undo = end


class _Path:
    """A path. A new file beside a regular or missing one replaces it at the end; other
    files are written themselves."""

    def __init__(self, path: str) -> None:
        self._path, self._real = path, os.path.realpath(path)
        there, self._old = _state(path), _state(self._real)
        folder, name = os.path.split(path)
        is_one = _is_one_file(there, self._old)
        self._replaces = bool(name) and os.path.isdir(folder or ".") and is_one
        folder, name = os.path.split(self._real)
        # Short enough even if the name is as long as allowed.
        self._part = os.path.join(folder, f"{name[:40]}.{os.urandom(4).hex()}.part")
        self._file: Any = None

    def write(self, piece: memoryview | bytes) -> None:
        if self._file is None:
            self._open()
        _write_all(self._file, piece)

    def _open(self) -> None:
        if not self._replaces:  # raises the error of directories and of missing folders
            self._file = open(self._path, "wb", buffering=0)  # noqa: SIM115
            return
        old = self._old
        if old is not None and not os.access(self._real, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self._real)
        # Grants no more permissions than the old file has.
        mode = 0o666 if old is None else old.st_mode & 0o777
        create = partial(
            os.open, mode=mode
        )  # without a frame that an interrupt can end
        self._file = open(self._part, "xb", opener=create)  # noqa: SIM115

    def end(self) -> None:
        if self._replaces:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        if not self._replaces:
            return
        if self._old is not None:
            _take_after(self._part, self._old)
        real = self._real
        now = os.lstat(real) if os.path.lexists(real) else None
        if now is not None and not S_ISREG(now.st_mode):
            raise FileExistsError(
                errno.EEXIST,
                "the file created there meanwhile is not regular",
                real,
            )
        os.replace(self._part, real)

    def undo(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # of a full disk: the first error says why
                self._file.close()
        if self._replaces:
            with suppress(FileNotFoundError):
                os.unlink(self._part)


def _write_all(file: Any, piece: memoryview | bytes) -> None:
    """Writes all of it: a raw file may accept less at a time."""
    rest = memoryview(piece).cast("B")
    while rest.nbytes:
        count = file.write(rest)
        if count is None and isinstance(file, io.RawIOBase):
            raise BlockingIOError(
                errno.EAGAIN, "the file is non-blocking and accepts no more bytes now"
            )
        if count is None:  # the file wrote everything
            return
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            raise TypeError(
                f"write() of the file must return a number of bytes or None, not "
                f"{type_of(count)}: files whose write() is async are not supported"
            )
        count = as_int(count)
        if not 0 < count <= rest.nbytes:
            raise OSError(f"the file accepted {count} bytes of {rest.nbytes}")
        rest = rest[count:]


def _state(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_one_file(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether both are the same regular file, or both missing. A file in /proc/self/fd
    may have no name any more."""
    if one is None or other is None:
        return one is other
    return S_ISREG(one.st_mode) and os.path.samestat(one, other)


def _take_after(path: str, old: os.stat_result) -> None:
    """Copies owner and permissions."""
    now = os.stat(path)
    if hasattr(os, "chown") and (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, old.st_mode & 0o777)
