"""Archives of arrays, .npz, which zipfile reads. An array that cannot be loaded is listed
with the reason; the others can."""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .headers import Entry, Unreadable, malformed
from .local import PIECE, Local, Reading, of_npy

# No deflated data expands to more times its size: 258 bytes of 2 bits.
_MOST_RATIO = 1032
# As in js/src/open/zip.ts: a directory of this size has half a million entries.
_MOST_DIRECTORY = 1 << 26
_LOCAL_BYTES = 30
_HAS_DESCRIPTOR = 8
_SOMEWHERE_ELSE = 0xFFFFFFFF
_METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


class Archive:
    """The directory of an archive, and its arrays, which are stored or deflated."""

    def __init__(self, file: Local) -> None:
        self.file = file
        with _trouble(file.name):
            self._zip = zipfile.ZipFile(_Bounded(file.stream()))
        infos = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        arrays = [info for info in infos if info.filename.endswith(".npy")]
        if infos and not arrays:
            malformed(
                file.name,
                "it is a file of PyTorch: torch.load() it, and save its tensors as safetensors"
                if any(info.filename.endswith("data.pkl") for info in infos)
                else f"it is a zip without a .npy file among its {len(infos)}: save arrays "
                "with np.savez()",
            )
        self._infos = {info.filename[:-4]: info for info in arrays}
        times = Counter(info.filename[:-4] for info in arrays)
        self.entries = [self._described(name, times[name]) for name in self._infos]
        self._starts = {entry.name: entry.start for entry in self.entries}

    def _described(self, name: str, times: int) -> Entry | Unreadable:
        """What is known of an array without its elements."""
        what, size = f'"{name[:100]}.npy"', self._infos[name].file_size
        try:
            if times > 1:
                malformed(what, f"it is in the archive {times} times")
            with self._member(name, what) as member:
                return of_npy(name, member, size, what)
        except BufferError as error:
            why = f"cannot be loaded: {error}"
            return Unreadable(name, "unreadable", (), 0, size, why)

    @contextmanager
    def reading(self, entry: Entry) -> Iterator[Reading]:
        """The elements of an array, and at the end the sum of all of its bytes."""
        what = f'"{entry.name[:100]}.npy" of {self.file.name}'
        start, info = self._starts[entry.name], self._infos[entry.name]
        whole = start, info.file_size - start
        if not self.deflates(entry) and (entry.start, entry.nbytes) != whole:
            # Its CRC is that of all elements: parts are read alone, once zipfile has compared names.
            with self._member(entry.name, what):
                moved = entry._replace(start=self._check(info, what) + entry.start)
                with self.file.reading(moved) as found:
                    yield found
            return
        with self._member(entry.name, what) as member:
            member.read(start)
            if entry.start > start:
                member.seek(entry.start)
            yield Reading(member, what)
            while member.read(PIECE):  # its CRC is compared at its end
                pass

    def deflates(self, entry: Entry) -> bool:
        return self._infos[entry.name].compress_type == zipfile.ZIP_DEFLATED

    @contextmanager
    def _member(self, name: str, what: str) -> Iterator[Any]:
        info = self._infos[name]
        self._check(info, what)
        with _trouble(what), self._zip.open(info) as found:
            yield found

    def _check(self, info: zipfile.ZipInfo, what: str) -> int:
        """BufferError for what zipfile would not compare, before anything is read. Where
        the data begins."""
        method, packed, size = info.compress_type, info.compress_size, info.file_size
        if info.flag_bits & 1:
            malformed(what, "it is encrypted")
        if method not in _METHODS:
            malformed(
                what, f"it is compressed with method {method}: 0 and 8 are supported"
            )
        if method == zipfile.ZIP_STORED and packed != size:  # Python 3.12 accepts it
            malformed(
                what, f"it is stored uncompressed, but has sizes {packed} and {size}"
            )
        if size > _MOST_RATIO * packed:
            malformed(what, f"its {size} bytes cannot be deflated to {packed}")
        if info.header_offset < 0:
            malformed(what, f"it begins {-info.header_offset} bytes before the file")
        if info.header_offset + _LOCAL_BYTES + packed > self.file.size:
            malformed(what, f"its {packed} bytes reach beyond the end of the file")
        head = self.file.read(info.header_offset, _LOCAL_BYTES)
        flags, own = (int.from_bytes(head[at : at + 2], "little") for at in (6, 8))
        sizes = [int.from_bytes(head[at : at + 4], "little") for at in (18, 22)]
        if flags & _HAS_DESCRIPTOR or _SOMEWHERE_ELSE in sizes:
            sizes = [packed, size]
        if own != method or sizes != [packed, size]:
            malformed(what, "its own header differs from the directory")
        names = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        return info.header_offset + _LOCAL_BYTES + sum(names)


class _Bounded:
    """A file for zipfile, which reads the directory at once, of the size that it says."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, count: int = -1) -> bytes:
        if count > _MOST_DIRECTORY:
            raise zipfile.BadZipFile(f"a directory of {count} bytes")
        found: bytes = self._file.read(count)
        return found


@contextmanager
def _trouble(what: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        malformed(what, f"it is damaged or cut off ({error})")
    except (RuntimeError, OSError, ValueError) as error:
        malformed(what, str(error))
