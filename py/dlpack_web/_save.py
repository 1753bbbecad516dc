"""Tensors into files: .npy and safetensors, piece by piece, also from a GPU."""

import io
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager, suppress
from math import prod
from os import PathLike
from stat import S_IMODE
from typing import Any, Literal

from . import _browser, _core
from ._file_headers import malformed, npy_header, safetensors_header
from ._file_local import PIECE
from ._home import home
from ._tensor import Tensor, from_dlpack, made, share
from ._words import type_of

Write = Callable[[memoryview | bytes], Any]


async def save(
    target: Any,
    tensors: Any,
    /,
    *,
    format: Literal["npy", "safetensors"] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> bytes | None:
    """Writes a tensor to a .npy file, or a mapping of names to tensors to a safetensors file.

    target: a path, a file object with `write`, in the browser a WritableStream or a file
    handle of JavaScript's; None: the bytes are returned. tensors: a Tensor, an array, or
    whatever shares memory, or a mapping of names to such. format: default: what the suffix
    of the path says, else npy for one and safetensors for a mapping. metadata: what a
    safetensors file says of itself.

    A GPU tensor is read back in pieces of at most 8 MiB: there is never a copy of all of it.
    A file at a path is there whole or not at all: it is written beside it and moved there
    at the end. BufferError: a dtype that the format lacks; OSError: a full disk.

    >>> data = await dlw.save(None, np.arange(3, dtype="u1"))
    >>> data[:6], len(data)
    (b'\\x93NUMPY', 131)
    >>> data = await dlw.save(None, {"w": np.zeros(2)}, metadata={"by": "me"})
    >>> list(await dlw.open(data))
    ['w']
    """
    named = tensors if isinstance(tensors, Mapping) else {"": tensors}
    single = not isinstance(tensors, Mapping)
    wanted = _format_of(target, format, single)
    _check_metadata(metadata, wanted)
    held: dict[str, Tensor] = {}
    try:
        for name, tensor in named.items():
            if not isinstance(name, str):
                raise TypeError(f"names of tensors are str, not {name!r}")
            held[name] = share(tensor)
        if _browser.is_js(target):
            await _browser.save(target, held, wanted, dict(metadata or {}))
            return None
        return await _save(target, held, wanted, metadata or {})
    finally:
        for tensor in held.values():
            tensor.release()


def _format_of(target: Any, format: str | None, single: bool) -> str:
    if format is None:
        is_path = isinstance(target, str | PathLike)
        suffix = os.path.splitext(os.fspath(target))[1].lower() if is_path else ""
        if suffix == ".npz":
            raise ValueError(
                ".npz files are read and not written: save as .safetensors"
            )
        known = {".npy": "npy", ".safetensors": "safetensors"}
        format = known.get(suffix, "npy" if single else "safetensors")
    if format not in ("npy", "safetensors"):
        raise ValueError(f"format must be 'npy' or 'safetensors', not {format!r}")
    if (format == "npy") != single:
        raise TypeError(
            "a .npy file has one tensor: give it alone, or save as safetensors"
            if format == "npy"
            else "a safetensors file has names: give a mapping of names to tensors"
        )
    return format


def _check_metadata(metadata: Any, format: str) -> None:
    if metadata is None:
        return
    if format == "npy":
        raise TypeError("a .npy file has no metadata; a safetensors file has")
    for pair in metadata.items():
        if not all(isinstance(each, str) for each in pair):
            raise TypeError(f"metadata is of str to str, not {pair!r}")


async def _save(
    target: Any, held: Mapping[str, Tensor], format: str, metadata: Mapping[str, str]
) -> bytes | None:
    what = str(target) if isinstance(target, str | PathLike) else "the file"
    header, order = _laid_out(held, format, metadata, what)
    with _opened(target) as (write, result):
        try:
            write(header)
            for tensor in order:
                async with aclosing(_pieces(tensor)) as pieces:
                    async for piece in pieces:
                        write(piece)
        finally:
            for tensor in order:
                tensor.release()
        return result() if result is not None else None


def _laid_out(
    held: Mapping[str, Tensor], format: str, metadata: Mapping[str, str], what: str
) -> tuple[bytes, list[Tensor]]:
    """The header, and the tensors as their elements are to be written: holds of our own."""
    for tensor in held.values():
        if tensor.padded or tensor.dtype.bits % 8:
            malformed(
                what,
                f"no format has elements of less than a byte: {tensor._facts_alone()}",
            )
    if format == "safetensors":
        facts = [(name, t.dtype, t.shape) for name, t in held.items()]
        header = safetensors_header(facts, metadata, what)
        return header, [from_dlpack(tensor) for tensor in held.values()]
    (tensor,) = held.values()
    turned = tensor.permute_dims(tuple(reversed(range(tensor.ndim))))
    columns = turned._row_major() and not tensor._row_major()
    header = npy_header(tensor.dtype, tensor.shape, columns, what)
    if columns:
        return header, [turned]
    turned.release()
    return header, [from_dlpack(tensor)]


# --- elements ------------------------------------------------------------------------------


async def _pieces(tensor: Tensor) -> AsyncGenerator[memoryview]:
    """The bytes of all elements in row-major order, a piece at a time."""
    with closing(_parts(tensor)) as parts:
        for part in parts:
            with part:
                if not part.device.is_host:
                    with made(_core._empty(part.shape, part._dtype, False)) as landing:
                        await home().read([part], [landing])
                        yield memoryview(_core._raw(landing)[0])
                elif part._row_major():
                    yield memoryview(_core._raw(part)[0])
                else:
                    with made(_core.from_dlpack(part, copy=True)) as packed:
                        yield memoryview(_core._raw(packed)[0])


def _parts(tensor: Tensor) -> Generator[Tensor]:
    """Views of at most so many bytes, one behind the other."""
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


# --- where they go ---------------------------------------------------------------------------


@contextmanager
def _opened(target: Any) -> Iterator[tuple[Write, Callable[[], bytes] | None]]:
    if target is None:
        memory = io.BytesIO()
        yield memory.write, memory.getvalue
    elif isinstance(target, str | PathLike):
        with _beside(os.fspath(target)) as file:
            yield file.write, None
    elif callable(getattr(target, "write", None)):
        yield lambda piece: _write_all(target, piece), None
    else:
        raise TypeError(
            "save takes a path, a file object, None, or in the browser a WritableStream or "
            f"file handle of JavaScript's, not {type_of(target)}"
        )


def _write_all(file: Any, piece: memoryview | bytes) -> None:
    """A raw file may take less than it is given."""
    rest = memoryview(piece).cast("B")
    while rest.nbytes:
        count = file.write(rest)
        if not isinstance(count, int):  # as of files that take all
            return
        if count <= 0:
            raise OSError("the file takes no more bytes")
        rest = rest[count:]


@contextmanager
def _beside(path: str) -> Iterator[Any]:
    """A new file beside that one, which takes its place at the end; or is removed."""
    path = os.path.realpath(path)
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(temporary, S_IMODE(os.stat(path).st_mode))
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
