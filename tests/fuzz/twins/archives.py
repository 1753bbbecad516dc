"""Random .npz files: right ones of all forms that zip has, and damaged ones."""

import io
import random
import struct
import zipfile
import zlib

from differential import changed

from .files import file, npy
from .shaders import pick

MEMBERS = ["a", "b", "c", "x/y", "é", "constructor", "__proto__", "", "0", "1"]


def more_fields(chance: random.Random, damaged: bool) -> bytes:
    fields = [b"\x55\x54\0\0", b"\x55\x54\5\0abcde", b"\x75\x70\6\0\1abcde"]
    return chance.choice([*fields, b"\1", b"\1\0\4\0abcd"] if damaged else fields)


def member(
    chance: random.Random, name: str, at: int, damaged: bool
) -> tuple[bytes, bytes]:
    """A local record with its data, and its record of the directory."""
    data = npy(chance) if not damaged or chance.random() < 0.9 else chance.randbytes(5)
    raw = name.encode()
    method = (
        pick(chance, 0, 8)
        if not damaged or chance.random() < 0.9
        else pick(chance, 1, 12, 14, 93)
    )
    packed = data
    if method == 8:
        maker = zlib.compressobj(pick(chance, 0, 1, 9), zlib.DEFLATED, -15)
        packed = maker.compress(data) + maker.flush()
    crc = zlib.crc32(data) if not damaged or chance.random() < 0.9 else 7
    described = 8 if chance.random() < 0.1 else 0
    flags = described | (0x800 if not name.isascii() or chance.random() < 0.2 else 0)
    if damaged and chance.random() < 0.1:
        flags ^= pick(chance, 1, 0x40, 0x2000, 0x20)
    sizes = said = len(packed), len(data)
    extra = many = b""
    if chance.random() < 0.2:
        extra = struct.pack("<HHQQ", 1, 16, len(data), len(packed))
        said = (0xFFFFFFFF, 0xFFFFFFFF)
    if chance.random() < 0.2:
        many = struct.pack("<HHQQ", 1, 16, len(data), len(packed))
        sizes = (0xFFFFFFFF, 0xFFFFFFFF)
    extra += more_fields(chance, damaged) if chance.random() < 0.1 else b""
    many += more_fields(chance, damaged) if chance.random() < 0.1 else b""
    comment = pick(chance, b"", b"", b"", b"some")
    local_crc, local_sizes = (0, (0, 0)) if described and said == sizes else (crc, said)
    local = struct.pack(
        "<4s5H3I2H",
        b"PK\3\4",
        20,
        flags,
        method,
        0,
        33,
        local_crc,
        *local_sizes,
        len(raw),
        len(extra),
    )
    tail = b""
    if described:
        tail = pick(chance, b"PK\7\x08", b"") + struct.pack(
            "<III", crc, len(packed), len(data)
        )
    record = struct.pack(
        "<4s6H3I5H2I",
        b"PK\1\2",
        20,
        20,
        flags,
        method,
        0,
        33,
        crc,
        *sizes,
        len(raw),
        len(many),
        len(comment),
        0,
        0,
        0,
        at,
    )
    return local + raw + extra + packed + tail, record + raw + many + comment


def archive(chance: random.Random, damaged: bool) -> bytes:
    body, records = b"", []
    if damaged and chance.random() < 0.1:
        body = b"PK\3\4more"
    for name in chance.sample(MEMBERS, chance.randrange(4)):
        ending = ".npy" if chance.random() < 0.95 else pick(chance, "", ".txt", ".NPY")
        local, record = member(chance, name + ending, len(body), damaged)
        body += local
        records.append(record)
    if chance.random() < 0.1:
        chance.shuffle(records)
    if records and damaged and chance.random() < 0.1:
        records.append(records[0])
    directory, count = b"".join(records), len(records)
    at, said = len(body), (count, len(directory), len(body))
    more = b""
    if chance.random() < 0.2:
        more = struct.pack(
            "<4sQHHIIQQQQ",
            b"PK\6\6",
            44,
            45,
            45,
            0,
            0,
            count,
            count,
            len(directory),
            at,
        )
        more += struct.pack("<4sIQI", b"PK\6\7", 0, at + len(directory), 1)
        said = (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    comment = pick(
        chance,
        b"",
        b"",
        b"",
        b"some comment",
        *([b"PK\5\6" + bytes(18)] if damaged else []),
    )
    end = struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, said[0], said[0], *said[1:], len(comment)
    )
    return body + directory + more + end + comment


def npz(chance: random.Random) -> bytes:
    if chance.random() < 0.8:
        return archive(chance, damaged=False)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", pick(chance, 0, 8)) as made:
        for name in chance.sample(MEMBERS, chance.randrange(3)):
            # Without the time, so that a seed gives the same bytes.
            member = zipfile.ZipInfo(f"{name}.npy")
            made.writestr(member, npy(chance), made.compression)
    return file.getvalue()


def damaged_npz(chance: random.Random) -> bytes:
    return changed(chance, archive(chance, damaged=chance.random() < 0.7))


SUBJECTS = {
    "npz": (1, lambda chance: npz(chance).hex(), file),
    "damaged": (1, lambda chance: damaged_npz(chance).hex(), file),
}
