"""differential.py: files that are valid but for a few changes, against the readers of others: of
what we read, NumPy, zipfile and safetensors must read the same. `make fuzz` runs it under ASan.

  differential.py --seed N --seconds S   files until the time is over
  differential.py --file FILE            one

What fails is printed in hexadecimal. We may refuse what they read; what they refuse and we read
is in LISTED, with the reason.
"""

import argparse
import base64
import faulthandler
import gc
import io
import random
import re
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
from twins import ALL_WORDS

import dlpack_web as dlw
from dlpack_web._files import headers, local

sys.path.append(str(Path(__file__).parents[1] / "files"))
from make_vectors import all_vectors

# (format, what the bytes match, what the other reader says, why it is read all the same)
LISTED = [
    (
        "safetensors",
        rb'"dtype"\s*:\s*"[A-Z][A-Z0-9_]*"',
        "unknown variant",
        "a dtype that this version of safetensors lacks: the other tensors can be loaded",
    ),
]


class Read(NamedTuple):
    """A tensor as somebody reads it."""

    dtype: str
    shape: tuple[int, ...]
    values: bytes


class Different(Exception):  # noqa: N818 - it is what it says
    """We read what they refuse, or something else."""


# --- readers --------------------------------------------------------------------------------


def run(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def read_of(tensor: dlw.Tensor) -> Read:
    with tensor:
        return Read(str(tensor.dtype), tensor.shape, tensor.tobytes())


def ours(source: bytes | Path) -> tuple[str, dict[str, Read]]:
    """The format, and what can be read. Anything but BufferError comes through."""
    try:
        found = run(dlw.open(source))
    except BufferError:
        return "", {}
    if isinstance(found, dlw.Tensor):
        return "npy", {"": read_of(found)}
    tensors = {}
    with found:
        for name in found:
            with suppress(BufferError):
                tensors[name] = read_of(found[name])
    head = source[:2] if isinstance(source, bytes) else source.read_bytes()[:2]
    return "npz" if head == b"PK" else "safetensors", tensors


def by_numpy(data: bytes) -> Read:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python 2
        array: Any = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return Read(str(array.dtype), array.shape, array.tobytes())


def by_zipfile(data: bytes, name: str) -> Read:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return by_numpy(archive.read(f"{name}.npy"))


def by_safetensors(data: bytes, name: str) -> Read:
    facts = dict(safetensors.deserialize(data))[name]
    dtype = headers.SAFETENSORS[facts["dtype"]]
    return Read(dtype, tuple(facts["shape"]), bytes(facts["data"]))


READERS: dict[str, Callable[[bytes, str], Read]] = {
    "npy": lambda data, _: by_numpy(data),
    "npz": by_zipfile,
    "safetensors": by_safetensors,
}


def compare(data: bytes) -> int:
    """How many tensors all read; Different is raised for what only we do."""
    format, tensors = ours(data)
    same = 0
    for name, read in tensors.items():
        try:
            theirs = READERS[format](data, name)
        except Exception as error:
            if not is_listed(format, data, str(error)):
                raise Different(f"{format} {name!r} is refused: {error}") from error
            continue
        if theirs != read:
            raise Different(f"{format} {name!r} is {str(theirs)[:300]}, not {read}")
        same += 1
    return same


def is_listed(format: str, data: bytes, error: str) -> bool:
    return any(
        format == listed and re.search(where, data) and says in error
        for listed, where, says, _ in LISTED
    )


def compare_as_path(data: bytes, path: Path) -> None:
    """A file of Pyodide's file system gives what its bytes give."""
    path.write_bytes(data)
    for in_browser in (False, True):
        local.IN_BROWSER = in_browser
        try:
            found = ours(path)
        finally:
            local.IN_BROWSER = False
        if found != ours(data):
            raise Different(f"as a path ({in_browser=}): {str(found)[:300]}")


# --- files ----------------------------------------------------------------------------------


def seeds() -> list[bytes]:
    """Those of the vectors, but for long ones, and archives of several arrays."""
    # Good ones oftener: a change of those is more likely to be read by somebody.
    files = [
        base64.b64decode(vector["file"])
        for vector in all_vectors()
        for _ in range(4 if "tensors" in vector else 1)
    ]
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, a=np.arange(9.0), b=np.eye(3, dtype="f4"), c=np.zeros((2, 0)))
        files.append(file.getvalue())
    return [file for file in files if 0 < len(file) < 6000]


WORDS = [word.encode("latin-1") for word in ALL_WORDS["differential"]["words"]]
NUMBERS = [0, 1, 2, 7, 8, 20, 22, 30, 46, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]


def header_of(data: bytes) -> tuple[int, int, int] | None:
    """Where a header of text begins and ends, and the bytes that its length takes."""
    if data[:6] == b"\x93NUMPY" and len(data) > 12:
        width = 2 if data[6] == 1 else 4
        start = 8 + width
        return start, start + int.from_bytes(data[8:start], "little"), width
    if data[8:9] == b"{":
        return 8, 8 + int.from_bytes(data[:8], "little"), 8
    return None


def changed(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        header = header_of(data)
        if header is not None and chance.random() < 0.8:
            start, end, width = header
            text = edited(chance, data[start:end])
            length = len(text).to_bytes(8, "little")[:width]
            data = data[: start - width] + length + text + data[end:]
        elif data[:2] == b"PK" and chance.random() < 0.8:
            data = patched(chance, data)
        else:
            data = edited(chance, data)
    return data


def edited(chance: random.Random, data: bytes) -> bytes:
    """Something put in, taken out, or in the place of something else."""
    at = chance.randrange(len(data) + 1)
    until = min(len(data), at + chance.choice((0, 0, 0, 1, 1, 2, 4, 16)))
    word = chance.choice(WORDS) if chance.random() < 0.8 else chance.randbytes(1)
    if chance.random() < 0.1:
        word = data[until : until + chance.randrange(40)]
    elif chance.random() < 0.1:
        word = b""
    elif (digits := re.search(rb"[0-9]+", data[at:])) and chance.random() < 0.2:
        at, until = at + digits.start(), at + digits.end()
        word = str(chance.choice((*NUMBERS, int(digits[0][:20]) + 1))).encode()
    return data[:at] + word + data[until:]


def patched(chance: random.Random, data: bytes) -> bytes:
    """A number in one of the records of an archive."""
    places = [found.start() for found in re.finditer(b"PK(\1\2|\3\4|\5\6|\6\6)", data)]
    if not places:
        return edited(chance, data)
    at = min(chance.choice(places) + chance.randrange(4, 46), len(data) - 4)
    code = chance.choice(("<H", "<I"))
    (old,) = struct.unpack_from(code, data, at)
    near = old + chance.choice((-30, -1, 1, 2, 22, 30))
    value = chance.choice((near, near, chance.choice(NUMBERS), len(data)))
    made = bytearray(data)
    struct.pack_into(code, made, at, value & (0xFFFF if code == "<H" else 0xFFFFFFFF))
    return bytes(made)


# --- all of it ------------------------------------------------------------------------------


def check(data: bytes, path: Path | None) -> int:
    try:
        if path is not None:
            compare_as_path(data, path)
        return compare(data)
    except Exception:
        print("found", data.hex(), flush=True)
        raise


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if options.file:
            check(options.file.read_bytes(), path)
            return
        chance, end = random.Random(options.seed), time.monotonic() + options.seconds
        files, count, same = seeds(), 0, 0
        before = dlw.live_tensors()
        for file in dict.fromkeys(files):
            same += check(file, path)
        while time.monotonic() < end:
            data = changed(chance, chance.choice(files))
            same += check(data, path if count % 8 == 0 else None)
            count += 1
        gc.collect()
        assert dlw.live_tensors() == before, "a tensor leaked"
    print(f"done: {count} files, {same} tensors that all read", flush=True)


if __name__ == "__main__":
    sys.exit(main())
