# More than 500 lines: one list of cases, each beside what it breaks.
"""Vectors for all parsers: files of tensors, good ones and such as an attacker would make. make writes
build/vectors.json, which tests/js/open/files.test.mjs reads; tests/native/files/test_files.py imports them.

A vector is {name, file (base64), options?, tensors? | error?}: what each tensor is, "" being the
name of the only one, with its elements in row-major order (base64), or a pattern that what is said
about it must match, in both languages, in at most 2000 characters. refused: tensors of the file that cannot be loaded, while the others
can: what is known of each, and a pattern for the error. names: of the tensors, in the order of the file. numpys: NumPy wrote
it, and what we write of its array is the same. stdlib: what Python's zipfile may make of it as well, which
reads more than its directory, or less (true: nothing).

A vector of a model is {name, files, error?}: the files of its folder by name, of which `model.index.json` is opened, and
what is said of them; unlisted: by what is in the folder, and not by the index, which is all that a URL gives.
"""

import base64
import gzip
import io
import json
import math
import struct
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
from views import chains

RNG = np.random.default_rng(17)
VECTORS = []


def coded(data):
    return base64.b64encode(data).decode()


def described(array, dtype=None):
    array = np.asarray(array)
    return {
        "dtype": dtype or str(array.dtype),
        "shape": list(array.shape),
        "values": coded(array.tobytes()),
    }


def good(name, file, tensors, **options):
    vector = {"name": name, "file": coded(file), "options": options}
    VECTORS.append(vector | {"tensors": tensors, "names": [*tensors]})


def numpys(name, array):
    good(name, saved(array), {"": described(array)})
    VECTORS[-1]["numpys"] = True


def bad(name, file, error, **options):
    VECTORS.append(
        {"name": name, "file": coded(file), "options": options, "error": error}
    )


# --- .npy -----------------------------------------------------------------------------------


def npy(header, data=b"", version=(1, 0), length=None, magic=b"\x93NUMPY"):
    text = header if isinstance(header, bytes) else header.encode()
    size = len(text) if length is None else length
    width = 2 if version[0] == 1 else 4
    return magic + bytes(version) + size.to_bytes(width, "little") + text + data


def dict_of(descr="'<f4'", fortran_order="False", shape="(2,)"):
    return (
        f"{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n"
    )


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


TWO = np.array([1.5, -2], "<f4")
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
)
for dtype in [*DTYPES.split(), "complex64", "complex128"]:
    array = RNG.integers(0, 2, (3, 5)).astype(dtype)
    numpys(f"npy of {dtype}", array)
for shape in [(), (0,), (1,), (3, 0, 2), (2, 3), (1, 2, 3, 4), (1,) * 32]:
    numpys(f"npy of shape {len(shape)}: {shape[:4]}", RNG.random(shape).astype("f4"))
for shape in [(2, 3), (2, 3, 4), (1, 5), (0, 3), (7,)]:
    numpys(f"npy by columns {shape}", np.asfortranarray(RNG.random(shape)))
for number in range(60):
    shape = RNG.choice([0, 1, 1, 2, 3, 5], RNG.integers(5))
    array = RNG.integers(0, 2, shape).astype(RNG.choice(DTYPES.split()))
    numpys(f"npy, {number}", np.asfortranarray(array) if number % 2 else array)
for version in [(1, 0), (2, 0), (3, 0)]:
    file = npy(dict_of(), TWO.tobytes(), version)
    good(f"npy of version {version}", file, {"": described(TWO)})
good(
    "npy, double quotes and spaces",
    npy(
        '{ "shape" :( 2 , ) ,"descr": "<f4" , "fortran_order" : False}  \n',
        TWO.tobytes(),
    ),
    {"": described(TWO)},
)
good(
    "npy, long integers of Python 2",
    npy(dict_of(shape="(2L,)"), TWO.tobytes()),
    {"": described(TWO)},
)
bad(
    "npy, long integers of Python 2, which had no version 3",
    npy(dict_of(shape="(2L,)"), TWO.tobytes(), (3, 0)),
    "not NumPy's",
)
good(
    "npy, a byte has no order",
    npy(dict_of("'>u1'"), b"ab"),
    {"": described(np.frombuffer(b"ab", "u1"))},
)
good(
    "npy narrowed",
    saved(np.array([1.5, 2**-30])),
    {"": described(np.array([1.5, 2**-30], "f4"))},
    dtype="float32",
)
good(
    "npy narrowed by columns",
    saved(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    {"": described(np.arange(6, dtype="f4").reshape(2, 3))},
    dtype="float32",
)
good(
    "npy of int64 narrowed",
    saved(np.array([1, -(2**31)])),
    {"": described(np.array([1, -(2**31)], "i4"))},
    dtype="int32",
)

for descr, why in {
    "'>f4'": r"which is big-endian: save x.astype\(x.dtype.newbyteorder\('<'\)\)",
    "'>i2'": "big-endian",
    "'=f4'": "which does not say that it is little-endian",
    "'f4'": "little-endian",
    "'|f4'": "little-endian",
    "'|O'": "are Python objects, which are pickled: loading them runs code that came with",
    "'<U3'": "strings",
    "'|S3'": "byte strings",
    "'<M8[s]'": "times",
    "'<m8'": "time spans",
    "'|V4'": "structures",
    "[('a', '<f4')]": "structures",
    "'<f16'": "DLPack lacks",
    "'<i3'": "DLPack lacks",
    "''": "DLPack lacks",
    "'<f4\\x27'": "not NumPy's",
    "'<g16'": "which DLPack lacks: save it with another one",
    repr("x" * 99): ".x{98}.?, which DLPack lacks: save it with another one",
    "('<f4', (2,))": "not NumPy's",
    "None": "not NumPy's",
    "4": "not NumPy's",
    "True": "lacks descr",
}.items():
    bad(f"npy of dtype {descr}", npy(dict_of(descr), bytes(8)), why)
for shape, why in {
    "(-2,)": "-2",
    "(2, -1)": "-1",
    "(9223372036854775808,)": "shape",
    "(9223372036854775807, 2)": "shape",
    "(4294967296, 4294967296)": "shape",
    "(9007199254740993, 0)": "shape",
    "(3,)": "cut off",
    "(1,)": "follow the elements",
    "()": "follow the elements",
    "(0,)": "follow the elements",
    "(2)": "not NumPy's",
    "[2]": "structures",
    "(2.0,)": "not NumPy's",
    "(1e1,)": "not NumPy's",
    "(0x2,)": "not NumPy's",
    "(True,)": "not NumPy's",
    "(2,,)": "not NumPy's",
    "(,)": "not NumPy's",
    "2": "not NumPy's",
    "'(2,)'": "lacks descr",
    "(1+1,)": "not NumPy's",
    "((2,),)": "not NumPy's",
    "(" + "1, " * 65 + ")": "dimensions",
    "(4611686018427387904, 2, 2)": "shape",
    "(9007199254740991, 9007199254740991, 0)": "too many elements",
    "(0, 9007199254740991, 9007199254740991)": "too many elements",
    "(562949953421311,)": "cut off",
    "(562949953421312,)": "too many elements",
    "(562949953421312, 0)": "too many elements",
    "(" + "9" * 5000 + ",)": "",
}.items():
    bad(f"npy of shape {shape[:60]}", npy(dict_of(shape=shape), TWO.tobytes()), why)
for header, why in {
    "": "not NumPy's",
    "{": "not NumPy's",
    "{}": "not NumPy's",
    "[]": "not NumPy's",
    "__import__('os').abort()": "not NumPy's",
    "{'descr': __import__('os').abort()}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}": "not NumPy's",
    "{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': (2,), 'shape': (2,)}": "lacks descr",
    "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}{}": "not NumPy's",
    "{descr: '<f4', 'fortran_order': False, 'shape': (2,)}": "not NumPy's",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)": "not NumPy's",
    " {'descr': '<f4', 'fortran_order': False, 'shape': (2,)}": "not NumPy's",
    "\x00" * 80: "not NumPy's",
    "\u00e9": "not NumPy's",
}.items():
    bad(f"npy with header {header[:70]!r}", npy(header, TWO.tobytes()), why)
bad("npy with a header of no text", npy(b"\xff\xfe{}", TWO.tobytes()), "not text")
for version in [(0, 0), (4, 0), (1, 1), (255, 255)]:
    bad(f"npy of version {version}", npy(dict_of(), TWO.tobytes(), version), "version")
bad(
    "npy with a header beyond its end",
    npy(dict_of(), b"", length=6000),
    "(?i)ends after",
)
bad(
    "npy with a header of 4 GiB",
    npy(dict_of(), b"", (2, 0), length=2**32 - 1),
    "no more than 10000",
)
WHOLE = saved(TWO)
for end in [6, 7, 9, 10, 11, 12, 60, 127, 128, 129, 135]:
    bad(
        f"npy cut off after {end} bytes",
        WHOLE[:end],
        "ends after|cut off|is there|are there",
    )
bad("npy with bytes behind it", WHOLE + b"\0", "1 bytes follow")
# Blanks, and ends, as the tokenizer of Python takes them.
TEXT = "{@'descr'@:@'<f4'@,@'fortran_order'@:@False@,@'shape'@:@(@2@,@)@}"
for blank in " \t\f\r\n":
    file = npy(TEXT.replace("@", blank) + "\n", TWO.tobytes())
    good(f"npy with blanks {blank!r}", file, {"": described(TWO)})
# One place for each: tests/fuzz/twins has all others.
for at, blank in enumerate("\v\x1c\x1f\x85\xa0\u1680\u2003\u2028\u3000\ufeff"):
    parts = TEXT.split("@")
    text = "".join(parts[: at + 1]) + blank + "".join(parts[at + 1 :])
    bad(f"npy with a blank {blank!a} at {at}", npy(text), "not NumPy's")
for end in ["", "\n", "\r\n", " \t\n", "   ", "\n\n"]:
    file = npy(TEXT.replace("@", "") + end, TWO.tobytes())
    good(f"npy with the end {end!r}", file, {"": described(TWO)})
for end in ["\0", "\n\0", "\n ", " \n ", "\v\n", "\xa0\n", "\n\u2003", "#\n", ",", "}"]:
    text = TEXT.replace("@", "") + end
    bad(f"npy with the end {end!a}", npy(text, TWO.tobytes()), "not NumPy's")
for shape in [
    "(02,)",
    "(00,)",
    "(-02,)",
    "(2, 01)",
    "(+2,)",
    "(2_0,)",
    "(2l,)",
    "(2 L,)",
]:
    bad(f"npy of shape {shape}", npy(dict_of(shape=shape), bytes(8)), "not NumPy's")
good(
    "npy of shape (-0,)",
    npy(dict_of(shape="(-0,)")),
    {"": described(np.zeros(0, "f4"))},
)
for length in (10_000, 10_001):
    text = dict_of().rstrip("\n")
    file = npy(text + " " * (length - 1 - len(text)) + "\n", TWO.tobytes())
    if length == 10_000:
        good("npy with a header of 10000 bytes", file, {"": described(TWO)})
    else:
        bad("npy with a header of 10001 bytes", file, "no more than 10000")
# What ml_dtypes writes: bits whose dtype is given.
for descr, dtype, bits in [
    ("<V2", "bfloat16", b"\x80\x3f\0\x40"),
    ("|V2", "bfloat16", b"\x80\x3f\0\x40"),
    ("<V1", "float8_e4m3fn", b"\x38\x40"),
    ("<f1", "float8_e5m2", b"\x3c\x40"),
]:
    found = {"dtype": dtype, "shape": [2], "values": coded(bits)}
    file = npy(dict_of(f"'{descr}'"), bits)
    good(f"npy of {descr} as {dtype}", file, {"": found}, dtype=dtype)
for descr, dtype in [
    ("'<V2'", "float16"),
    ("'<V2'", "uint16"),
    ("'<V2'", "float8_e5m2"),
    ("'<V1'", "bfloat16"),
    ("'<V1'", "float4_e2m1fn"),
    ("'<V1'", "int4"),
    ("'<V4'", "float32"),
    ("'>V2'", "bfloat16"),
    ("'V2'", "bfloat16"),
    ("'<f1'", "float8_e4m3fn"),
    ("'>f1'", "float8_e5m2"),
    ("'<U1'", "bfloat16"),
    ("'|O'", "bfloat16"),
    ("[('a', '<V2')]", "bfloat16"),
]:
    file = npy(dict_of(descr), bytes(4))
    bad(f"npy of {descr} as {dtype}", file, "it has elements", dtype=dtype)
for count, why in [(3, "cut off"), (5, "follow the elements")]:
    file = npy(dict_of("'<V2'"), bytes(count))
    bad(f"npy of bfloat16 in {count} bytes", file, why, dtype="bfloat16")
bad(
    "npy that does not fit into int32",
    saved(np.array([0, 2**31])),
    "2147483648",
    dtype="int32",
)
bad("npy of float32 as int32", WHOLE, "(cannot|become)", dtype="int32")

# --- safetensors -------------------------------------------------------------------------------


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else header.encode()
    size = len(text) if length is None else length
    return struct.pack("<Q", size) + text + data


def fact(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def of(facts, data=b""):
    return tensors(json.dumps(facts), data)


a = described(TWO)
good("safetensors", of({"a": fact()}, TWO.tobytes()), {"a": a})
good("safetensors without tensors", of({}), {})
good(
    "safetensors, one without elements",
    of({"a": fact(shape=[3, 0], end=0)}),
    {"a": described(np.zeros((3, 0), "f4"))},
)
good(
    "safetensors, a scalar",
    of({"a": fact("I64", [], 0, 8)}, bytes(8)),
    {"a": described(np.int64(0))},
)
for pad in range(1, 8):
    file = tensors(json.dumps({"a": fact()}) + " " * pad, TWO.tobytes())
    good(f"safetensors at an odd place, {pad}", file, {"a": a})
TAGS = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "C64": "complex64",
}
WIDTHS = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "BOOL": 1}
header, data, expected = {}, b"", {}
for tag, dtype in TAGS.items():
    width = WIDTHS.get(tag) or np.dtype(dtype).itemsize
    raw = RNG.integers(0, 2, 3 * width, "u1").tobytes()
    header[tag] = fact(tag, [3], len(data), len(data) + len(raw))
    expected[tag] = {"dtype": dtype, "shape": [3], "values": coded(raw)}
    data += raw
good("safetensors of every dtype", of(header, data), expected)
good(
    "safetensors of every dtype, the last one first",
    of(dict(reversed(header.items())), data),
    expected,
)
# Tensors without elements are at the places of others.
for number in range(20):
    facts, raw, at = {}, RNG.integers(0, 256, 30, "u1").tobytes(), 0
    for i, count in enumerate(RNG.choice([0, 0, 1, 3], RNG.integers(1, 9)).tolist()):
        facts[f"t{i}"] = fact("U8", [count], at, at + count)
        at += count
    shuffled = {key: facts[key] for key in RNG.permutation([*facts]).tolist()}
    order = sorted(shuffled, key=lambda key: shuffled[key]["data_offsets"])
    found = {
        key: described(np.frombuffer(raw[slice(*facts[key]["data_offsets"])], "u1"))
        for key in order
    }
    good(f"safetensors in any order, {number}", of(shuffled, raw[:at]), found)
odd = {
    "": 0,
    "1": 1,
    "0": 2,
    "__proto__": 3,
    "a.b/c": 4,
    "\u00e9\U0001f600": 5,
    "constructor": 6,
}
good(
    "safetensors with strange names",
    of({n: fact("U8", [1], i, i + 1) for n, i in odd.items()}, bytes(range(7))),
    {n: described(np.array([i], "u1")) for n, i in odd.items()},
)
good(
    "safetensors with metadata that is null",
    of({"__metadata__": None, "a": fact()}, TWO.tobytes()),
    {"a": a},
)
good(
    "safetensors with metadata",
    of({"__metadata__": {"by": "me", "__proto__": "x"}, "a": fact()}, TWO.tobytes()),
    {"a": a},
)
good(
    "safetensors with escapes",
    tensors('{"\\u0061":' + json.dumps(fact()) + "}", TWO.tobytes()),
    {"a": a},
)

FNUZ = {"F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"}
for tag, dtype in FNUZ.items():
    raw = {"dtype": dtype, "shape": [8], "values": coded(TWO.tobytes())}
    good(f"safetensors of {tag}", of({"a": fact(tag, [8])}, TWO.tobytes()), {"a": raw})


def refused(name, facts, data):
    """a can be loaded, and the others cannot."""
    found = {
        key: {
            "dtype": each["dtype"],
            "shape": each["shape"],
            "nbytes": each["data_offsets"][1] - each["data_offsets"][0],
            "error": each["dtype"],
        }
        for key, each in facts.items()
        if key != "a"
    }
    good(name, of(facts, data), {"a": a})
    order = sorted(facts, key=lambda key: facts[key]["data_offsets"])
    VECTORS[-1] |= {"refused": found, "names": order}


for tag, count, nbytes in [
    ("F4", 16, 8),
    ("F6_E2M3", 4, 3),
    ("F6_E3M2", 8, 6),
    ("F8_E3M4", 8, 8),  # of no version yet
    ("F4", 0, 0),
]:
    last = {"a": fact(), "b": fact(tag, [count], 8, 8 + nbytes)}
    data = TWO.tobytes() + bytes(nbytes)
    refused(f"safetensors, {count} of {tag} behind", last, data)
    last = {
        "b": fact(tag, [count], 0, nbytes),
        "a": fact("F32", [2], nbytes, nbytes + 8),
    }
    refused(f"safetensors, {count} of {tag} before", last, data[8:] + data[:8])
refused(
    "safetensors, several that cannot be loaded",
    {
        "c": fact("F4", [2, 2], 0, 2),
        "a": fact("F32", [2], 2, 10),
        "b": fact("F6_E3M2", [4], 10, 13),
    },
    bytes(2) + TWO.tobytes() + bytes(3),
)
for name, facts, why in [
    ("F4 within a byte", {"a": fact("F4", [15])}, "within a byte"),
    ("F6 within a byte", {"a": fact("F6_E2M3", [11])}, "within a byte"),
    ("F4 of too many bytes", {"a": fact("F4", [14])}, "takes 7 bytes"),
    ("F6 of too few bytes", {"a": fact("F6_E3M2", [12])}, "takes 9 bytes"),
    ("F4, overlapping", {"a": fact(), "b": fact("F4", [16], 4, 12)}, "overlaps"),
    ("F4 behind a hole", {"a": fact(), "b": fact("F4", [16], 12, 20)}, "hole"),
    ("F4 beyond the end", {"a": fact("F4", [32], 0, 16)}, "cut off"),
    ("a new dtype beyond the end", {"a": fact("I128", [1], 0, 16)}, "cut off"),
    ("a dtype in small letters", {"a": fact("f32")}, "f32"),
    ("a dtype of 33 letters", {"a": fact("F" * 33)}, "FFF"),
    ("a dtype without letters", {"a": fact("")}, "dtype"),
    ("a dtype with a line", {"a": fact("F4\n", [16])}, "supported"),
]:
    bad(f"safetensors: {name}", of(facts, TWO.tobytes()), why)
lone = "\ud800"
for name, facts in {
    "a name with a lone surrogate": {f"a{lone}": fact()},
    "a name with surrogates in the wrong order": {"\udc00\ud800": fact()},
    "metadata with a lone surrogate": {"__metadata__": {"by": lone}, "a": fact()},
    "a key of metadata with a lone surrogate": {
        "__metadata__": {lone: ""},
        "a": fact(),
    },
    "a dtype with a lone surrogate": {"a": fact(f"F{lone}")},
    "a fact with a lone surrogate": {"a": {**fact(), lone: 1}},
}.items():
    bad(f"safetensors: {name}", of(facts, TWO.tobytes()), "surrogate")

two = {"a": fact(), "b": fact(begin=8, end=16)}
for name, facts, why in [
    ("negative size", {"a": fact(shape=[-2])}, "-2"),
    ("a size of 2**63", {"a": fact(shape=[2**63])}, "shape"),
    ("sizes beyond 2**64", {"a": fact(shape=[2**32, 2**32, 2**32])}, "shape"),
    ("2**53 + 1 by none", {"a": fact(shape=[2**53 + 1, 0], end=0)}, "shape"),
    ("65 dimensions", {"a": fact(shape=[1] * 65)}, "dimensions"),
    ("a fraction", {"a": fact(shape=[1.5])}, "1.5"),
    ("2.0 elements", {"a": fact(shape=[2.0])}, "2.0"),
    ("text for a size", {"a": fact(shape=["2"])}, "shape"),
    ("true for a size", {"a": fact(shape=[True, 2])}, "shape"),
    ("overlapping", {"a": fact(), "b": fact(begin=4, end=12)}, "overlaps"),
    ("the same bytes twice", {"a": fact(), "b": fact()}, "overlaps"),
    ("a hole", {"a": fact(), "b": fact(begin=12, end=20)}, "hole"),
    ("a hole at the start", {"a": fact(begin=4, end=12)}, "hole"),
    ("backwards", {"a": fact(begin=8, end=0)}, "data_offsets"),
    ("negative offsets", {"a": fact(begin=-8, end=0)}, "-8"),
    (
        "offsets of 2**64",
        {"a": fact(begin=2**64, end=2**64 + 8)},
        "size is needed|data_offsets",
    ),
    ("offsets beyond the end", {"a": fact(begin=2**40, end=2**40 + 8)}, "hole"),
    ("too many bytes", {"a": fact(end=12)}, "takes 8 bytes"),
    ("too few bytes", {"a": fact(end=4)}, "takes 8 bytes"),
    ("beyond the end", {"a": fact(shape=[2**40], end=2**42)}, "cut off"),
    ("an unknown dtype", {"a": fact("F33")}, "F33"),
    ("a dtype of less than a byte", {"a": fact("F4", [16])}, "F4"),
    ("a dtype of Object's", {"a": fact("constructor")}, "constructor"),
    ("no dtype", {"a": {"shape": [2], "data_offsets": [0, 8]}}, "needed"),
    ("no shape", {"a": {"dtype": "F32", "data_offsets": [0, 8]}}, "needed"),
    ("no offsets", {"a": {"dtype": "F32", "shape": [2]}}, "needed"),
    ("three offsets", {"a": {**fact(), "data_offsets": [0, 8, 8]}}, "needed"),
    ("more facts", {"a": {**fact(), "more": 1}}, "unknown keys|unknown"),
    ("null", {"a": None}, "needed"),
    ("a list for facts", {"a": [1]}, "needed"),
    ("metadata of numbers", {"__metadata__": {"n": 1}, "a": fact()}, "__metadata__"),
    ("metadata that is text", {"__metadata__": "x", "a": fact()}, "__metadata__"),
]:
    bad(f"safetensors: {name}", of(facts, TWO.tobytes()), why)
one = json.dumps(fact())
for name, text, why in [
    ("a name twice", f'{{"a":{one},"a":{one}}}', "twice"),
    ("a name twice, escaped", f'{{"a":{one},"\\u0061":{one}}}', "twice"),
    (
        "a fact twice",
        '{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        "twice",
    ),
    ("no JSON", "{'a': 1}", "not JSON"),
    ("NaN", '{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}', "JSON|NaN"),
    ("an exponent", '{"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}', "2e0"),
    (
        "a number of 5000 digits",
        '{"a":{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}}' % ("9" * 5000),
        "",
    ),
    ("cut off JSON", '{"a":', "not JSON"),
    ("deep", '{"a":' + "[" * 5000 + "]" * 5000 + "}", ""),
    ("not UTF-8", b'{"\xff":1}', "UTF-8"),
    ("two objects", "{}{}", "not JSON"),
]:
    bad(f"safetensors: {name}", tensors(text, TWO.tobytes()), why)
bad("safetensors: a list", tensors("[]      "), "[Bb]egin", format="safetensors")
bad(
    "safetensors: a header of no bytes",
    tensors("", length=0),
    "0 bytes|begins? like",
    format="safetensors",
)
bad(
    "safetensors: a header of 100 MB and one",
    tensors("{}", length=100_000_001),
    "100000001",
)
bad("safetensors: a header beyond the end", tensors("{}", length=1000), "cut off")
bad(
    "safetensors: a header of 2**63",
    tensors("{}", length=2**63),
    "bytes; safetensors has",
    format="safetensors",
)
bad("safetensors: bytes behind it", of({"a": fact()}, bytes(9)), "1 bytes follow")
bad("safetensors: bytes missing", of({"a": fact()}, bytes(7)), "cut off")
bad(
    "safetensors: seven bytes",
    b"1234567",
    "ends after|begins? like",
    format="safetensors",
)
bad("nothing at all", b"", "begins? like")
bad("a page", b"<!doctype html><title>404</title>", "begins? like")

for length, why in {
    1: "safetensors has 2 to",
    2: "follow the elements",
    99_999_999: "cut off",
    100_000_000: "cut off",
    100_000_001: "safetensors has 2 to",
}.items():
    file = tensors("{}".ljust(64), length=length)
    bad(f"safetensors: {length} bytes said", file, why, format="safetensors")

MOST = (2**53 - 1) // 16  # elements
for shape, why in {
    (MOST,): "cut off",
    (MOST + 1,): "too many elements",
    (MOST, 1): "cut off",
    (MOST, 2): "too many elements",
    (2, (MOST + 1) // 2): "too many elements",
    (2, (MOST - 1) // 2): "cut off",
    (2**53 - 1,): "too many elements",
    (2**53,): "is not a size",
    (MOST, 0): None,
    (0, MOST): None,
    (MOST + 1, 0): "too many elements",
    (2**53, 0): "is not a size",
    (-1,): "is not a size",
    (0, -1): "is not a size",
    (1,) * 64: "cut off",
    (1,) * 65: "dimensions",
    (0,) * 64: None,
    (0,) * 65: "dimensions",
}.items():
    name = f"of {len(shape)} axes: {shape[:2]}"
    found = {"dtype": "uint8", "shape": list(shape), "values": ""}
    size = max(math.prod(shape), 0)
    files = {
        "npy": npy(dict_of("'|u1'", shape=str(shape))),
        "safetensors": of({"a": fact("U8", shape, 0, size)}),
    }
    for format, file in files.items():
        if why is None:
            key = "" if format == "npy" else "a"
            good(f"{format} at its bounds, {name}", file, {key: found})
        else:
            said = f"{why}|data_offsets|size is needed|not a non-negative integer"
            bad(f"{format} at its bounds, {name}", file, said)

# Messages are short, whatever a header says.
LONG = "long " * 4000
many = {f"{i} {LONG[:1000]}": 1 for i in range(100)}
for name, facts in {
    "a dtype": {"a": fact(LONG)},
    "a key": {"a": {**fact(), LONG: 1}},
    "keys": {"a": {**fact(), **many}},
    "an extent": {"a": fact(shape=[LONG])},
    "an extent of extents": {"a": fact(shape=[[[LONG]]])},
    "extents": {"a": fact(shape=[2**53 - 1] * 64)},
    "many extents": {"a": fact(shape=[1] * 10_000)},
    "a number": {"a": fact(shape=[10**4000])},
    "a shape": {LONG: fact(shape=[3])},
    "a hole": {LONG: fact(begin=8, end=16)},
    "overlaps": {"a": fact(), LONG: fact(begin=4, end=12)},
    "a surrogate": {LONG + lone: fact()},
    "metadata": {"__metadata__": {LONG: 1}},
    "bits": {LONG: fact("F4", [15])},
    "no facts": {LONG: LONG},
}.items():
    file = of(facts, bytes(8))
    bad(f"safetensors, long: {name}", file, "", format="safetensors")
for name, text in {
    "a name twice": f'{{"{LONG}":{one},"{LONG}":0}}',
    "a name that is no JSON": f"{{{LONG}",
}.items():
    bad(f"safetensors, long: {name}", tensors(text), "", format="safetensors")

# --- .npz ----------------------------------------------------------------------------------------


def zipped(members, method=zipfile.ZIP_STORED, comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as member:
                member.write(data)
        archive.comment = comment
    return bytearray(file.getvalue())


def written(names, data=WHOLE, method=zipfile.ZIP_STORED, level=None):
    """As ZipFile.writestr writes: sizes are in the headers, and no name is refused."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")  # a name that is there twice
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), data, method, level)
    return file.getvalue()


def npz(compressed, **arrays):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return bytearray(file.getvalue())


grid = RNG.random((3, 4))
ints = np.arange(1000, dtype="i4")
both = {"grid": described(grid), "ints": described(ints)}
for compressed in (False, True):
    which = "deflated" if compressed else "stored"
    good(f"npz, {which}", npz(compressed, grid=grid, ints=ints), both)
    file = npz(compressed, grid=np.asfortranarray(grid))
    good(f"npz by columns, {which}", file, {"grid": described(grid)})
    for end in [4, 100, len(file) // 2, len(file) - 23, len(file) - 1]:
        bad(f"npz, {which}, cut off after {end} bytes", bytes(file[:end]), "")
good("npz with a comment", zipped({"a.npy": WHOLE}, comment=b"hello"), {"a": a})
looks = zipped({"a.npy": WHOLE}, comment=b"PK\5\6 hello, this is no end")
good("npz with a comment that looks like an end", looks, {"a": a})
VECTORS[-1]["stdlib"] = True
good("npz with other files", zipped({"a.npy": WHOLE, "readme.txt": b"hello"}), {"a": a})
good("npz in a folder", zipped({"b/a.npy": WHOLE}), {"b/a": a})
good("npz without anything", zipped({}), {})
files = {"archive/data.pkl": b"hello", "archive/data/0": b"four"}
bad("zip of PyTorch", zipped(files), "a file of PyTorch: torch.load")
bad(
    "zip without arrays",
    zipped({"readme.txt": b"hello"}),
    "a zip without a .npy file among its 1",
)


def patched(file, at, value, size=4):
    made = bytearray(file)
    made[at : at + size] = value.to_bytes(size, "little")
    return bytes(made)


plain = npz(False, a=TWO)
packed = npz(True, a=np.zeros(5000, "f4"))
for which, file in [("stored", plain), ("deflated", packed)]:
    entry = file.index(b"PK\1\2")
    end = file.index(b"PK\5\6")
    start = 30 + 5 + 20  # its header, its name, zip64 sizes
    bad(
        f"npz, {which}: a flipped byte",
        patched(file, start + 20, file[start + 20] ^ 0xFF, 1),
        "",
    )
    bad(f"npz, {which}: another CRC", patched(file, entry + 16, 1), "(?i)crc|damaged")
    bad(
        f"npz, {which}: encrypted", patched(file, entry + 8, 1, 2), "encrypted|password"
    )
    bad(
        f"npz, {which}: packed by another method",
        patched(file, entry + 10, 93, 2),
        "(?i)method|zstd|zstandard|compression",
    )
    bad(f"npz, {which}: larger than it says", patched(file, entry + 24, 130), "")
    bad(f"npz, {which}: smaller than it says", patched(file, entry + 24, 2**31), "")
    bad(f"npz, {which}: more packed bytes", patched(file, entry + 20, 2**30), "")
    bad(f"npz, {which}: a header beyond its end", patched(file, entry + 42, 2**30), "")
    bad(f"npz, {which}: a header in the middle", patched(file, entry + 42, 3), "")
    bad(
        f"npz, {which}: another name in the header",
        patched(file, 30, ord("b"), 1),
        "name|directory",
    )
    whole = {"a": a} if file is plain else {"a": described(np.zeros(5000, "f4"))}
    for what, by in [
        ("far behind", 2**31 - 1),
        ("2**32 - 1 behind", 2**32 - 1),
        ("one byte behind", entry + 1),
        ("one byte before", entry - 1),
    ]:
        made = patched(file, end + 16, by)
        bad(f"npz, {which}: a directory said to be {what} its place", made, "")
    size = int.from_bytes(file[end + 12 : end + 16], "little")
    for what, by in [("than the file", len(file)), ("by a byte", size + 1)]:
        made = patched(file, end + 12, by)
        bad(f"npz, {which}: a directory larger {what}", made, "")
    bad(f"npz, {which}: behind other bytes", file[:4] + file, "does not end at")
    VECTORS[-1]["stdlib"] = whole  # which moves all places
    bad(f"npz, {which}: two entries said", patched(file, end + 10, 2, 2), "")
    VECTORS[-1]["stdlib"] = whole
overlapping = zipped({"a.npy": WHOLE, "b.npy": WHOLE})
second = overlapping.index(b"PK\1\2", overlapping.index(b"PK\1\2") + 1)
bad(
    "npz: the same bytes twice",
    patched(patched(overlapping, second + 42, 0), second + 46, ord("a"), 1),
    "",
)
bad("npz: one within the other", patched(overlapping, second + 42, 10), "")
bad("npz: pickled", npz(False, a=np.array([None])), "pickled")
bad("npz: no array", zipped({"a.npy": b"hello, who is this?"}), "does not begin")
bomb = written(["a.npy"], WHOLE + bytes(4 << 20), zipfile.ZIP_DEFLATED, 9)
for header, crc, size in [(b"PK\3\4", 14, 22), (b"PK\1\2", 16, 24)]:
    at = bomb.index(header)
    bomb = patched(bomb, at + crc, zlib.crc32(WHOLE))
    bomb = patched(bomb, at + size, len(WHOLE))
bad("npz: a bomb that says that it is small", bomb, "unpacks to more")
VECTORS[-1]["stdlib"] = {"a": a}


# One array that cannot be read, beside one that can: its name, what is known of it, and why.
def npz_refused(name, file, **known):
    good(name, file, {"a": a})
    del VECTORS[-1]["names"]
    VECTORS[-1]["refused"] = {
        each: dict(zip(["dtype", "shape", "nbytes", "error"], facts, strict=True))
        for each, facts in known.items()
    }


PICKLED = saved(np.array([None, {}]))  # whose bytes have no size that a shape gives
SCIPY = {"format": saved(np.array(b"csr")), "a": WHOLE}
LACKING = {
    "strings": (saved(np.array(["ab", "c"])), "<U2", [2], 16, "strings"),
    "byte strings": (saved(np.array([[b"abc"]])), "|S3", [1, 1], 3, "byte strings"),
    "objects": (PICKLED, "|O", [2], len(PICKLED) - 128, "pickled"),
    "times": (saved(np.zeros((2, 3), "M8[s]")), "<M8[s]", [2, 3], 48, "times"),
    "spans": (saved(np.zeros(2, "m8[us]")), "<m8[us]", [2], 16, "time spans"),
    "raw bytes": (saved(np.zeros(2, "V5")), "|V5", [2], 10, "raw bytes"),
    "big-endian": (saved(np.zeros((2, 2), ">f4")), ">f4", [2, 2], 16, "big-endian"),
    "long doubles": (
        npy(dict_of("'<f16'"), bytes(32)),
        "<f16",
        [2],
        32,
        "DLPack lacks",
    ),
    "structures": (
        saved(np.zeros(3, [("a", "<f4"), ("b", [("c", "<i2", (2,))])])),
        "[('a', '<f4'), ('b', [('c', '<i2', (2,))])]",
        [3],
        24,
        "structures",
    ),
    "none, of strings": (saved(np.zeros((0, 2), "U3")), "<U3", [0, 2], 0, "strings"),
}
for kind, (data, *facts) in LACKING.items():
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        which = "stored" if method == zipfile.ZIP_STORED else "deflated"
        file = zipped({"b.npy": data, "a.npy": WHOLE}, method)
        npz_refused(f"npz with {kind}, {which}", file, b=facts)
npz_refused(
    "npz as SciPy saves sparse arrays",
    zipped({f"{n}.npy": SCIPY[n] for n in SCIPY}),
    format=["|S3", [], 3, "byte strings"],
)
APPLE = b"\0\5\x16\7\0\2\0\0Mac OS X        "
BAD = {
    "of a Mac": ("__MACOSX/._b", APPLE, "does not begin"),
    "without bytes": ("b", b"", "does not begin"),
    "cut off in its magic": ("b", WHOLE[:9], "header"),
    "cut off in its header": ("b", WHOLE[:60], "header"),
    "cut off in its elements": ("b", WHOLE[:-1], "cut off"),
    "with bytes behind it": ("b", WHOLE + b"x", "follow"),
    "of another version": ("b", npy(dict_of(), bytes(8), (4, 0)), "version"),
    "with a header of 4 GiB": ("b", npy(dict_of(), b"", (2, 0), 2**32 - 1), "no more"),
    "with a header of no text": ("b", npy(b"\xff\xfe{}"), "not text"),
    "with a header of another kind": ("b", npy("[]"), "not NumPy's"),
    "of too many axes": (
        "b",
        npy(dict_of(shape="(1, " * 1 + "1, " * 64 + ")")),
        "dimensions",
    ),
    "of too many elements": (
        "b",
        npy(dict_of(shape="(4294967296, 4294967296)")),
        "shape",
    ),
    **{
        f"with a header of {length} bytes, of version {major}": (
            "b",
            npy(b"", bytes(100), (major, 0), length),
            "not NumPy's",
        )
        for major in (1, 2, 3)
        for length in range(3)
    },
}
for which, (each, data, why) in BAD.items():
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = zipped({f"{each}.npy": data, "a.npy": WHOLE}, method)
        packed = "stored" if method == zipfile.ZIP_STORED else "deflated"
        facts = ["unreadable", [], len(data), why]
        npz_refused(f"npz with an array {which}, {packed}", file, **{each: facts})
for method, number in [(zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)]:
    if method == zipfile.ZIP_LZMA and zipfile.lzma is None:
        continue  # Pyodide 0.29 has it as a package
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.npy"), WHOLE)
        for each in ("b.npy", "readme.txt"):
            archive.writestr(zipfile.ZipInfo(each), WHOLE, method)
    facts = ["unreadable", [], len(WHOLE), f"method {number}"]
    npz_refused(f"npz with an array of method {number}", file.getvalue(), b=facts)
# Those of the second of two entries: what its own header says (l), and its directory (c).
for which, at, value, size, why in [
    ("encrypted", "c8", 1, 2, "encrypted"),
    ("of a method that is not known", "c10", 93, 2, "method 93"),
    ("of two sizes", "c24", 2**31, 4, "sizes"),
    ("that overlaps the directory", "c20", 2**30, 4, "sizes|beyond|overlap"),
    ("whose own header is not there", "l0", 0, 4, "header|damaged"),
    ("whose own header has another method", "l8", 8, 2, "header"),
    ("whose own header has another name", "l30", 0x6162, 2, "name|directory"),
    ("whose own header has another size", "l22", 100, 4, "header"),
    ("whose own header has another packed size", "l18", 100, 4, "header"),
]:
    data = written(["a.npy", "b.npy"])
    begin = data.index(b"PK\3\4", 4)
    directory = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    place = (begin if at[0] == "l" else directory) + int(at[1:])
    there = 2**31 if which == "of two sizes" else len(WHOLE)
    npz_refused(
        f"npz with an array {which}",
        patched(data, place, value, size),
        b=["unreadable", [], there, why],
    )
made = zipped({"a.npy": WHOLE, "b.npy": WHOLE}, zipfile.ZIP_DEFLATED)
second = made.index(b"PK\1\2", made.index(b"PK\1\2") + 1)
npz_refused(
    "npz with an array that no deflated bytes unpack to",
    patched(made, second + 24, 2**31 - 2),
    b=["unreadable", [], 2**31 - 2, "deflated to"],
)
npz_refused(
    "npz with an array twice",
    written(["b.npy", "a.npy", "b.npy", "readme.txt", "readme.txt"]),
    b=["unreadable", [], len(WHOLE), "in the archive 2 times"],
)

# --- raw -----------------------------------------------------------------------------------------

gz = gzip.compress(WHOLE, mtime=0)
for format in ("npy", "npz", "safetensors", None):
    options = {"format": format} if format else {}
    bad(f"gzip, opened as {format}", gz, "compressed with gzip", **options)
bad("gzip, opened as elements", gz, "compressed with gzip.*raw", dtype="uint8")
good(
    "gzip, opened as raw elements",
    gz,
    {"": described(np.frombuffer(gz, "u1"))},
    dtype="uint8",
    format="raw",
)

good("raw", TWO.tobytes(), {"": a}, dtype="float32")
good(
    "raw with a shape",
    TWO.tobytes(),
    {"": described(TWO.reshape(1, 2))},
    dtype="float32",
    shape=[1, 2],
)
good(
    "raw that looks like something else",
    WHOLE,
    {"": described(np.frombuffer(WHOLE, "u1"))},
    dtype="uint8",
    format="raw",
)
good(
    "raw of bfloat16",
    b"\x80\x3f\0\0",
    {"": {"dtype": "bfloat16", "shape": [2], "values": coded(b"\x80\x3f\0\0")}},
    dtype="bfloat16",
)
good(
    "raw of uint4",
    b"\x21\x03",
    {"": {"dtype": "uint4", "shape": [3], "values": coded(b"\x21\x03")}},
    dtype="uint4",
    shape=[3],
)
bad("raw of odd length", b"12345", "not a whole number of elements", dtype="float32")
bad("raw, too short", bytes(8), "cut off", dtype="float32", shape=[3])
bad("raw, too long", bytes(8), "follow", dtype="float32", shape=[1])


# --- sharded models --------------------------------------------------------------------------------


def shard(i, count=3):
    return f"model-{i:05}-of-{count:05}.safetensors"


def model_of(change=lambda weight_map, files: None, text=None):
    """The files of a model of three shards; `text`: its index."""
    files, weight_map = {}, {}
    for i in (1, 2, 3):
        facts = {f"layer.{i}.w": fact("F32", [i, 4], 0, 16 * i)}
        facts[f"layer.{i}.b"] = fact("F32", [4], 16 * i, 16 * i + 16)
        files[shard(i)] = of(facts, np.full(4 * i + 4, i, "<f4").tobytes())
        weight_map |= dict.fromkeys(facts, shard(i))
    change(weight_map, files)
    index = {"metadata": {"total_size": 1e3, "by": "us", "n": -5}}
    text = json.dumps(index | {"weight_map": weight_map}) if text is None else text
    return {**files, "model.index.json": text.encode()}


def moved(weight_map, files):
    weight_map["layer.2.b"] = shard(2, 4)
    files[shard(2, 4)] = files[shard(2)]


def listed(**changed):
    return lambda weight_map, files: weight_map.update(
        {f"layer.{name[1:]}.b": given for name, given in changed.items()}
    )


MODELS = []


def model(name, files, error=None, unlisted=False):
    made = {"name": name, "files": {each: coded(data) for each, data in files.items()}}
    said = {"error": error, "unlisted": unlisted}
    MODELS.append(made | {key: given for key, given in said.items() if given})


def replaced(i, data):
    return model_of(lambda _, files: files.update({shard(i): data(files)}))


model(
    "a shard is missing",
    model_of(lambda _, files: files.pop(shard(2))),
    "model-00002-of-00003",
)
model(
    "a shard is not listed",
    model_of(lambda weights, _: [weights.pop(f"layer.2.{n}") for n in "wb"]),
    "it lacks shard .model-00002-of-00003",
)
model(
    "a tensor is not listed",
    model_of(lambda weights, _: weights.pop("layer.2.b")),
    "model-00002.* has tensor .layer.2.b., .* does not list",
)
model(
    "a tensor is in another shard",
    model_of(listed(_2=shard(1))),
    "model-00002.* has tensor .layer.2.b., .* says is in .model-00001|lacks tensor",
)
model(
    "a tensor is in none",
    model_of(listed(_9=shard(1))),
    "model-00001.* lacks tensor .layer.9.b",
)
model("shards of different counts", model_of(moved), "contradict")
for name, i, data, error in [
    (
        "a shard is a pointer of Git LFS",
        2,
        lambda files: b"version https://git-lfs.github.com/spec/v1",
        "model-00002.*(Git LFS|a header of)",
    ),
    (
        "a shard is cut off",
        3,
        lambda files: files[shard(3)][:-1],
        "model-00003.*cut off",
    ),
    (
        "a shard has a header of nothing",
        3,
        lambda files: b"\x08" + bytes(15),
        "model-00003",
    ),
    ("a shard is compressed", 3, lambda files: b"\x1f\x8b\x08", "gzip"),
]:
    model(name, replaced(i, data), error)
for given in ["../x.safetensors", "/etc/x", "a\\b", "..", "", 5, None, ["x"]]:
    named = model_of(listed(_2=given))
    model(f"a shard is named {given!r}", named, "not the name of a")
for text, error in {
    "{}": "weight_map, an object",
    '{"weight_map": []}': "weight_map, an object",
    '{"weight_map": {"a": "b", "a": "c"}}': "has .a. twice",
    "{'weight_map'": "not JSON",
    '{"weight_map": {}, "metadata": 5}': "metadata is not an object",
    '{"weight_map": {}, "metadata": {"a": NaN}}': "NaN|JSON",
}.items():
    model(f"an index is {text}", model_of(text=text), error)
model(
    "a shard is beside them",
    model_of(lambda _, files: files.update({shard(4): files[shard(3)]})),
    "model-00004-of-00003.safetensors. is beside it",
    unlisted=True,
)
model("a model", model_of())


def all_vectors():
    names = [vector["name"] for vector in VECTORS]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    for vector in VECTORS:
        yield {key: value for key, value in vector.items() if value or key != "options"}


if __name__ == "__main__":
    made = {"files": list(all_vectors()), "models": MODELS, "views": list(chains(80))}
    Path(sys.argv[1]).write_text(json.dumps(made))
