"""Every source of a file that Python has, with every format, dtypes of every width and sizes
up to a part of the heap: in CPython and, where memory ends with the heap, in Pyodide."""

import array
import io
import json
import mmap
import sys
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from conftest import run

import dlpack_web as dlw

IN_PYODIDE = sys.platform == "emscripten"


class ByBytes:
    """A path that is bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return bytes(self.path)


def mapped(path):
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


SOURCES = {
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "an odd address": lambda path: memoryview(b"x" + path.read_bytes())[1:],
    "array": lambda path: array.array("B", path.read_bytes()),
    "ndarray": lambda path: np.fromfile(path, "u1"),
    "mmap": mapped,
    "Path": lambda path: path,
    "str": str,
    "a path of bytes": ByBytes,
}
FORMATS = {
    "npy": ("uint8", "float32", "float64", "complex128"),
    "npz, stored": ("uint8", "float64"),
    "npz, deflated": ("uint8", "float64"),
    "safetensors": ("uint8", "bfloat16", "float64"),
    "raw": ("uint8", "bfloat16", "complex128"),
}
SIZES = {"tiny": 48, "1 MiB": 1 << 20, "16 MiB": 1 << 24}
WIDTHS = {"uint8": 1, "bfloat16": 2, "float32": 4, "float64": 8, "complex128": 16}


def heap_size():
    """Bytes of all memory that Python has, where it has an end."""
    if not IN_PYODIDE:
        return 1 << 28
    from pyodide_js import _module

    return _module.HEAPU8.length


@lru_cache(2)
def elements(size):
    """Bytes that differ from place to place."""
    words = np.arange(size // 8, dtype="<u8") * np.uint64(0x9E3779B97F4A7C15)
    return (words & np.uint64(0x3F3F3F3F3F3F3F3F)).tobytes()


def safetensors(dtype, data):
    tag = {"uint8": "U8", "bfloat16": "BF16", "float64": "F64"}[dtype]
    shape = [len(data) // WIDTHS[dtype]]
    facts = {"dtype": tag, "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({"a": facts}).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


@lru_cache(1)
def file_of(format, dtype, size):
    data = elements(size)
    if format == "raw":
        return data
    if format == "safetensors":
        return safetensors(dtype, data)
    file = io.BytesIO()
    np.save(file, np.frombuffer(data, dtype))
    if format == "npy":
        return file.getvalue()
    packed = io.BytesIO()
    method = zipfile.ZIP_STORED if "stored" in format else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(packed, "w", method, compresslevel=1) as archive:
        archive.writestr("a.npy", file.getvalue())
    return packed.getvalue()


def check(source, format, dtype, size):
    options = {"dtype": dtype} if format == "raw" else {}
    found = run(dlw.open(source, **options))
    tensor = found if isinstance(found, dlw.Tensor) else found["a"]
    with tensor:
        assert (tensor.dtype, tensor.shape) == (dtype, (size // WIDTHS[dtype],))
        assert tensor.tobytes() == elements(size)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("format", "name"), [(f, d) for f, dtypes in FORMATS.items() for d in dtypes]
)
def test_file(source, size, format, name, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(file_of(format, name, SIZES[size]))
    check(SOURCES[source](path), format, name, SIZES[size])


@pytest.mark.parametrize("format", ["npy", "safetensors", "raw"])
def test_a_quarter_of_the_heap(format):
    name = "bfloat16" if format == "raw" else "float64"
    size = heap_size() // 4 & ~63
    check(file_of(format, name, size), format, name, size)


def test_a_size_that_does_not_fit_its_shape_is_named():
    header = b'{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,4]}}'
    data = len(header).to_bytes(8, "little") + header + bytes(4)
    words = r"tensor 'a': shape \[2, 3\] of F32 takes 24 bytes, data_offsets give it 4$"
    with pytest.raises(BufferError, match=words):
        run(dlw.open(data, format="safetensors"))
