"""Headers of .npy and safetensors files, parsed strictly and written. Nothing is
evaluated, and everything is checked before memory is allocated.

js/src/open has the same rules; both are tested with tests/files/make_vectors.py, and compared
by tests/fuzz/twins.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

from .._layout import MAX_NDIM, ML_DTYPES, NPY, SAFETENSORS, SUB_BYTE
from .._layout.dtype import DType
from .._layout.text import bounded, shown

NPY_MAGIC = b"\x93NUMPY"
# The limit of NumPy's reader; a header of 64 dimensions has less than 2000 bytes.
_MAX_NPY_HEADER = 10_000
# The limit of safetensors' own reader.
_MAX_SAFETENSORS_HEADER = 100_000_000
# The limit of JavaScript, exact as a double: for bytes, whatever the element.
_MAX_EXTENT = 2**53 - 1

_NPY_NAMES = {code: name for name, code in NPY.items()}
_TAGS = {name: tag for tag, name in SAFETENSORS.items()}
# Names that newer versions of safetensors may use for other dtypes.
_TAG = re.compile(r"[A-Z][A-Z0-9_]{0,31}")
# Kinds that .npy files have and DLPack lacks.
_KINDS = {
    "O": "Python objects, which are pickled: loading them runs code that came with the "
    "file",
    "S": "byte strings",
    "a": "byte strings",
    "U": "strings",
    "T": "strings",
    "M": "times: save their counts, x.view('int64')",
    "m": "time spans: save their counts, x.view('int64')",
    "V": "structures or raw bytes: save each field, or x.view('uint8')",
}


class Entry(NamedTuple):
    """A tensor in a file. start: offset of its elements in bytes from the start of the
    file (in an archive: of its member). columns: the first index varies fastest."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    columns: bool
    start: int
    nbytes: int


class Unreadable(NamedTuple):
    """A tensor in a file that cannot be loaded. dtype: its name in the file. why: "has
    dtype ..."; the subject is the tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    nbytes: int
    why: str
    columns: bool = False


def malformed(what: str, why: str) -> NoReturn:
    raise BufferError(bounded(f"{what}: {why}"))


def nbytes_of(dtype: DType, shape: Sequence[int]) -> int:
    """Bytes of contiguous elements."""
    return -(-prod(shape) * dtype.bits * dtype.lanes // 8)


def check_shape(given: Sequence[Any], what: str) -> tuple[int, ...]:
    """The shape in a file, validated like all input."""
    if len(given) > MAX_NDIM:
        malformed(what, f"shape has {len(given)} dimensions; the limit is {MAX_NDIM}")
    for extent in given:
        if type(extent) is not int or not 0 <= extent <= _MAX_EXTENT:
            malformed(what, f"shape {_listed(given)}: {shown(extent)} is not a size")
    # As NumPy: an empty array must fit, too, were its axes of length 0 of length 1.
    if prod(extent or 1 for extent in given) > _MAX_EXTENT // 16:
        malformed(what, f"shape {_listed(given)} has too many elements")
    return tuple(given)


def _listed(given: Sequence[Any]) -> str:
    """A shape in a message, which may have anything for extents."""
    return f"[{', '.join(shown(extent, 20) for extent in given)}]"


def check_size(what: str, size: int, header: int, nbytes: int, claim: str) -> None:
    """BufferError unless exactly this many bytes of elements follow the header."""
    there = size - header
    if there < nbytes:
        malformed(
            what,
            f"it is cut off: {claim} takes {nbytes} bytes, and {max(there, 0)} are there",
        )
    if there > nbytes:
        malformed(
            what,
            f"{there - nbytes} bytes follow the elements, which {claim} does not "
            "account for",
        )


# --- .npy ---------------------------------------------------------------------------------


def npy_preamble(head: bytes, what: str) -> tuple[int, int]:
    """The offset and length of the header, from the file's first 12 bytes."""
    if not head.startswith(NPY_MAGIC):
        malformed(what, "it does not begin like a .npy file")
    if len(head) < 12:
        malformed(what, f"it ends after {len(head)} bytes, within its header")
    major, minor = head[6], head[7]
    if not 1 <= major <= 3 or minor != 0:
        malformed(what, f"version {major}.{minor} of .npy is not 1.0, 2.0 or 3.0")
    header = int.from_bytes(head[8 : 10 if major == 1 else 12], "little")
    if header > _MAX_NPY_HEADER:
        malformed(
            what,
            f"a header of {header} bytes; no more than {_MAX_NPY_HEADER} are read",
        )
    return 10 if major == 1 else 12, header


# Blanks and integers as in Python's tokenizer; the suffix L is of Python 2.
_B = r"[ \t\r\n\f]*"
_INT = rf"{_B}-?(?:0|[1-9][0-9]{{0,99}})L?{_B}"
_PAIR = re.compile(
    rf"""{_B}(?:'(descr|fortran_order|shape)'|"(descr|fortran_order|shape)"){_B}:{_B}"""
    r"""(?:'([^'"\\]*)'|"([^'"\\]*)"|(True|False)|"""
    rf"""(\((?:{_INT},)*(?:{_INT}|{_B})\))|(\[.*\])){_B}""",
    re.DOTALL,
)
# Python allows no blanks at the start of a line after it.
_NPY_END = re.compile(rf"{_B}\}}[ \t]*[\r\n]*")


def read_npy(
    header: bytes, what: str, version: int
) -> tuple[str, tuple[int, ...], bool]:
    """descr, as a literal if it is a list, shape, and whether the first index varies
    fastest. version: the seventh byte of the file; from 3 on there are no integers of
    Python 2."""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError:
        malformed(what, "its header is not text")
    found = _dict_of(text, what, version)
    descr, columns, shape = (found[k] for k in ("descr", "fortran_order", "shape"))
    if not (
        isinstance(columns, bool) and isinstance(descr, str) and isinstance(shape, list)
    ):
        malformed(
            what, f"its header lacks descr, fortran_order or shape: {shown(text, 200)}"
        )
    dims = check_shape(shape, what)
    return descr, dims, columns and len(dims) > 1


def _dict_of(text: str, what: str, version: int) -> dict[str, Any]:
    def wrong() -> NoReturn:
        malformed(what, f"its header is not NumPy's: {shown(text, 200)}")

    found: dict[str, Any] = {}
    if not text.startswith("{"):
        wrong()
    at = 1
    while match := _PAIR.match(text, at):
        one, two, single, double, truth, numbers, structure = match.groups()
        key = one or two
        if key in found:
            wrong()
        if structure is not None and key != "descr":
            malformed(what, f"its {key} is a list, as structures have one for descr")
        if numbers is not None:
            if version > 2 and "L" in numbers:
                wrong()
            found[key] = [int(each) for each in re.findall("-?[0-9]+", numbers)]
            if found[key] and "," not in numbers:
                wrong()  # "(3)" is a number in Python, not a tuple
        elif truth is not None:
            found[key] = truth == "True"
        else:
            found[key] = next(x for x in (single, double, structure) if x is not None)
        at = match.end()
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "}":
            wrong()
    if len(found) != 3 or not _NPY_END.fullmatch(text, at):
        wrong()
    return found


def dtype_of_descr(descr: str) -> tuple[DType | None, str]:
    """The dtype; or None and why DLPack has none: "has elements of ..."."""
    if descr.startswith("["):
        return None, "has elements which are structures: save each field separately"
    order = descr[:1] if descr.startswith(tuple("<>=|")) else ""
    code = descr.removeprefix(order)
    name = _NPY_NAMES.get(code)
    has = f"has elements of dtype {shown(descr)}, which"
    if name is None:
        kind = _KINDS.get(code[:1])
        lacks = f"are {kind}" if kind else "DLPack lacks: save it with another one"
        raw = ML_DTYPES.get(code)
        way = f"; if ml_dtypes made them, give their dtype, such as '{raw}'"
        return None, f"{has} {lacks}{way if raw else ''}"
    dtype = DType(name)
    if dtype.itemsize == 1 or order == "<":
        return dtype, ""
    big = "is big-endian: save x.astype(x.dtype.newbyteorder('<'))"
    vague = "does not say that it is little-endian"
    return None, f"{has} {big if order == '>' else vague}"


def is_raw(descr: str, dtype: DType) -> bool:
    """Whether elements that NumPy wrote without their dtype may be of this one, as those
    of ml_dtypes are: "<V2" of bfloat16, "<V1" and "<f1" of float8."""
    code = descr[1:] if descr.startswith(("<", "|")) else ""
    if code == "f1":
        return dtype == "float8_e5m2"
    return dtype not in NPY and dtype.bits % 8 == 0 and code == f"V{dtype.itemsize}"


def npy_header(dtype: DType, shape: tuple[int, ...], columns: bool, what: str) -> bytes:
    """A header as NumPy writes it: the elements after it start at a multiple of 64."""
    code = NPY.get(dtype)
    if code is None:
        malformed(
            what,
            f".npy files have no {dtype}; save it as safetensors, if that has it",
        )
    order = "<" if dtype.itemsize > 1 else "|"
    text = (
        f"{{'descr': '{order}{code}', 'fortran_order': {columns}, 'shape': {shape}, }}"
    )
    padding = 63 - (10 + len(text)) % 64
    length = len(text) + padding + 1
    version = NPY_MAGIC + b"\x01\x00" + length.to_bytes(2, "little")
    return version + text.encode() + b" " * padding + b"\n"


# --- safetensors --------------------------------------------------------------------------


def looks_like_safetensors(head: bytes) -> bool:
    """Whether a file may be one, by its header's length and opening brace."""
    return len(head) > 8 and head[8:9] == b"{" and head[4:8] == bytes(4)


def safetensors_length(head: bytes, size: int, what: str) -> int:
    """Bytes of the header, read from the first 8 of the file."""
    if len(head) < 8:
        malformed(what, f"it ends after {len(head)} bytes, within its header")
    length = int.from_bytes(head[:8], "little")
    if not 2 <= length <= _MAX_SAFETENSORS_HEADER:
        malformed(
            what,
            f"a header of {length} bytes; safetensors has 2 to {_MAX_SAFETENSORS_HEADER}",
        )
    if 8 + length > size:
        malformed(
            what, f"it is cut off: its header has {length} bytes, the file {size}"
        )
    return length


def parse_safetensors(
    header: bytes, size: int, what: str
) -> tuple[list[Entry | Unreadable], dict[str, str]]:
    """The tensors, in their order in a file of that size, and its metadata. The tensors
    are contiguous and fill the file to its end."""
    origin = 8 + len(header)
    found, metadata = read_header(header, what)
    entries = [_entry_of(name, facts, origin, what) for name, facts in found.items()]
    entries.sort(key=lambda entry: (entry.start, entry.nbytes))
    end = origin
    for entry in entries:
        if entry.start != end:
            how = "overlaps the tensor" if entry.start < end else "leaves a hole"
            malformed(
                what,
                f"tensor {shown(entry.name)} {how} before it, at byte {entry.start - origin}",
            )
        end = entry.start + entry.nbytes
    check_size(what, size, origin, end - origin, "its list of tensors")
    return entries, metadata


def read_header(header: bytes, what: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What a header says of each name, not yet checked, and the metadata."""
    found = strict_json(header, what)
    metadata = found.pop("__metadata__", None)
    if metadata is None:  # absent, or null, as safetensors' own reader allows
        metadata = {}
    if not isinstance(metadata, dict) or any(
        not isinstance(value, str) for value in metadata.values()
    ):
        malformed(what, "__metadata__ must be an object of strings, or null")
    return found, metadata


# Includes unterminated strings, otherwise every quote in one would be tried as a start.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NESTED = re.compile(r"\[[^\]]*[\[{]|\{[^{}]*\{[^{}]*\{")


def strict_json(
    header: bytes, what: str, numbers: str = "[0-9]{1,19}"
) -> dict[str, Any]:
    """Parses unambiguous JSON. numbers: the form of those that are allowed."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        for pair in pairs:
            for each in pair:
                if isinstance(each, str) and is_broken(each):
                    malformed(
                        what, f"its header has a lone surrogate, in {each[:100]!a:.100}"
                    )
        if len(made) < len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            malformed(what, f"its header has {json.dumps(twice[:100]):.100} twice")
        return made

    def plain(number: str) -> float:
        if not re.fullmatch(numbers, number):
            malformed(what, f"its header has {number:.100} where a size is needed")
        return int(number) if number.lstrip("-").isdecimal() else float(number)

    try:
        text = header.decode("utf-8")
        if not text.startswith("{"):
            malformed(what, 'its header does not begin with "{"')
        # A deeply recursive parser crashes Pyodide.
        if _NESTED.search(_STRING.sub("", text)):
            malformed(
                what, "its header has nested values, which safetensors does not allow"
            )
        found: dict[str, Any] = json.loads(
            text,
            object_pairs_hook=unique,
            parse_int=plain,
            parse_float=plain,
            parse_constant=plain,
        )
    except UnicodeDecodeError:
        malformed(what, "its header is not UTF-8")
    except (ValueError, RecursionError) as error:
        malformed(what, f"its header is not JSON ({error})")
    return found


def is_broken(text: str) -> bool:
    """Whether it has lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _entry_of(name: str, facts: Any, origin: int, what: str) -> Entry | Unreadable:
    which = f"{what}: tensor {shown(name)}"
    tag, dtype, dims, (begin, end) = facts_of(facts, which)
    bits = SUB_BYTE.get(tag) if dtype is None else dtype.bits
    nbytes = end - begin
    if bits is not None:
        needed, rest = divmod(prod(dims) * bits, 8)
        if rest:
            malformed(which, f"shape {_listed(dims)} of {tag} ends within a byte")
        if nbytes != needed:
            malformed(
                which,
                f"shape {_listed(dims)} of {tag} takes {needed} bytes, data_offsets give it "
                f"{nbytes}",
            )
    if dtype is None:
        why = f"has dtype {tag}, which is not supported and cannot be loaded"
        return Unreadable(name, tag, dims, origin + begin, nbytes, why)
    return Entry(name, dtype, dims, False, origin + begin, nbytes)


def facts_of(
    facts: Any, which: str
) -> tuple[str, DType | None, tuple[int, ...], tuple[int, int]]:
    """What a header says of one tensor: the name of its dtype, the dtype (None if this
    library lacks it), shape, data_offsets, which may not fit the shape."""
    keys = {"dtype", "shape", "data_offsets"}
    if not isinstance(facts, dict) or not keys <= facts.keys():
        malformed(which, "dtype, shape and data_offsets [begin, end] are needed")
    if strange := facts.keys() - keys:
        named = ", ".join(key[:50] for key in sorted(strange)[:4])
        malformed(which, f"unknown keys: {named}")
    tag, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not (isinstance(tag, str) and isinstance(shape, list) and _is_pair(offsets)):
        malformed(which, "dtype, shape and data_offsets [begin, end] are needed")
    dtype = DType(SAFETENSORS[tag]) if tag in SAFETENSORS else None
    if dtype is None and tag not in SUB_BYTE and not _TAG.fullmatch(tag):
        malformed(which, f"dtype {shown(tag)}: {', '.join(SAFETENSORS)} are supported")
    begin, end = offsets
    return tag, dtype, check_shape(shape, which), (begin, end)


def _is_pair(given: Any) -> bool:
    if not isinstance(given, list) or len(given) != 2:
        return False
    begin, end = given
    return type(begin) is type(end) is int and 0 <= begin <= end <= 2**52


def safetensors_header(
    tensors: Sequence[tuple[str, DType, tuple[int, ...]]],
    metadata: Mapping[str, str],
    what: str,
) -> bytes:
    """A header for tensors in that order; they start at a multiple of 8."""
    facts: dict[str, Any] = {}
    at = 0
    for name, dtype, shape in tensors:
        if name == "__metadata__":
            malformed(what, "a tensor cannot be called __metadata__")
        tag = tag_of(dtype, f"{what}: tensor {shown(name)}")
        end = at + nbytes_of(dtype, shape)
        offsets = [at, end]
        facts[name] = {
            "dtype": tag,
            "shape": list(shape),
            "data_offsets": offsets,
        }
        at = end
    return write_header(facts, metadata, what)


def tag_of(dtype: DType, which: str) -> str:
    """Safetensors' name of a dtype; BufferError if it has none."""
    if dtype not in _TAGS:
        malformed(which, f"safetensors has no {dtype}; it has {', '.join(_TAGS)}")
    return _TAGS[dtype]


def write_header(
    entries: Mapping[str, Any], metadata: Mapping[str, str], what: str
) -> bytes:
    """The length and the JSON of a header, padded to a multiple of 8."""
    facts = {"__metadata__": dict(metadata), **entries} if metadata else dict(entries)
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode()
    padded = text.ljust(-(-len(text) // 8) * 8)
    if len(padded) > _MAX_SAFETENSORS_HEADER:
        malformed(what, f"a header of {len(padded)} bytes is too large")
    return len(padded).to_bytes(8, "little") + padded
