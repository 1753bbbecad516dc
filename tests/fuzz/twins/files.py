"""Random .npy, safetensors and .npz files, most of them nearly right."""

import random
import re
from collections.abc import Callable
from contextlib import suppress
from math import prod
from typing import Any

from differential import changed

import dlpack_web as dlw
from dlpack_web._files import shards

from . import ALL_WORDS
from .devices import make_dtype
from .shaders import STRANGE, pick

LISTS = ALL_WORDS["files"]
CODES = LISTS["codes"]
OTHERS = LISTS["others"]
BLANKS = LISTS["blanks"]


# --- .npy -----------------------------------------------------------------------------------


def blank(chance: random.Random) -> str:
    return chance.choice(BLANKS[:5] if chance.random() < 0.95 else BLANKS)


def integer(chance: random.Random) -> str:
    usual = [str(chance.randrange(4)), "0", "1", "2", "3"]
    odd = [*LISTS["odd_integers"], "9" * 30, "9" * 101]
    return chance.choice(usual if chance.random() < 0.95 else odd)


def shape(chance: random.Random) -> str:
    numbers = [
        blank(chance) + integer(chance) + blank(chance)
        for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4)))
    ]
    if chance.random() < 0.01:
        numbers = ["1"] * chance.choice((64, 65))
    comma = "," if len(numbers) == 1 or chance.random() < 0.2 else ""
    if chance.random() < 0.03:
        comma = pick(chance, "", ",,", ",")
    opens, closes = "()" if chance.random() < 0.98 else pick(chance, "[]", "{}", "((")
    return f"{opens}{','.join(numbers)}{comma}{blank(chance)}{closes}"


def quoted(chance: random.Random, text: str) -> str:
    quote = "'" if chance.random() < 0.8 else '"'
    prefix = "" if chance.random() < 0.99 else pick(chance, *"ubr", "rb", "f")
    return f"{prefix}{quote}{text}{quote if chance.random() < 0.995 else ''}"


def literal(chance: random.Random, code: str) -> str:
    columns = pick(chance, "False", "False", "True")
    if chance.random() < 0.02:
        columns = pick(
            chance, "0", "1", "None", "false", "()", "'True'", "False or True"
        )
    pairs = [
        ("descr", quoted(chance, code)),
        ("fortran_order", columns),
        ("shape", shape(chance)),
    ]
    if chance.random() < 0.02:
        pairs[0] = (
            "descr",
            pick(
                chance, "[('a', '<f4')]", "('<f4', (2,))", "None", "[]", "'<f4' '<f4'"
            ),
        )
    if chance.random() < 0.3:
        chance.shuffle(pairs)
    if chance.random() < 0.02:
        pairs.append(pick(chance, ("more", "1"), pairs[0], ("shape", "(2,)")))
    if chance.random() < 0.01:
        pairs.pop()
    said = [
        f"{blank(chance)}{quoted(chance, key)}{blank(chance)}:{blank(chance)}{value}{blank(chance)}"
        for key, value in pairs
    ]
    comma = "," if chance.random() < 0.8 else ""
    before, after = (
        pick(chance, " ", "\n", "\ufeff", "(") if chance.random() < 0.01 else "",
        blank(chance),
    )
    return f"{before}{{{','.join(said)}{comma}{blank(chance)}}}{after}" + pick(
        chance, "\n", "\n", "", "   \n", "\n\n", " \n "
    )


def npy(chance: random.Random) -> bytes:
    code = chance.choice(CODES if chance.random() < 0.95 else OTHERS)
    text = literal(chance, code)
    version = (
        pick(chance, 1, 1, 2, 3) if chance.random() < 0.98 else chance.randrange(256)
    )
    header = text.encode(
        "utf-8" if version > 2 else pick(chance, "latin-1", "utf-8"), "replace"
    )
    width = 2 if version == 1 else 4
    length = (
        len(header)
        if chance.random() < 0.99
        else chance.choice((0, 1, 10_000, 10_001, 65_535))
    )
    minor = 0 if chance.random() < 0.99 else 1
    dims = re.search(r"shape.*?\(([^()]*)\)", text, re.DOTALL)
    size = prod(
        [
            int(found)
            for found in re.findall(r"\d{1,9}", dims[1] if dims else "", re.ASCII)
        ]
    )
    nbytes = min(size, 100) * int(re.sub(r"\D", "", code, flags=re.ASCII) or 1)
    data = chance.randbytes(
        nbytes
        if chance.random() < 0.95
        else nbytes + chance.choice((-1, 1, 8))
        if nbytes
        else 1
    )
    if code.endswith("b1"):
        data = bytes(byte & 1 for byte in data)
    return (
        b"\x93NUMPY"
        + bytes((version, minor))
        + length.to_bytes(width, "little")
        + header
        + data
    )


# --- safetensors ----------------------------------------------------------------------------

TAGS = ["F32", "U8", "I64", "BOOL", "BF16", "F8_E4M3", "F8_E8M0", "C64", "F16"]
WRONG_TAGS = [
    "F4",
    "F6_E2M3",
    "I128",
    "f32",
    "",
    "F32 ",
    "constructor",
    "X" * 32,
    "X" * 33,
    "é",
    "F\u0663",
    "__proto__",
]
WIDTHS = {"F32": 4, "I64": 8, "BF16": 2, "C64": 8, "F16": 2}
KEYS = LISTS["keys"]


def key(chance: random.Random) -> str:
    return f'"{chance.choice(KEYS[:11] if chance.random() < 0.7 else KEYS)}"'


def size(chance: random.Random) -> str:
    odd = LISTS["odd_sizes"]
    return str(chance.randrange(4)) if chance.random() < 0.97 else chance.choice(odd)


def space(chance: random.Random) -> str:
    return (
        ""
        if chance.random() < 0.95
        else pick(chance, " ", "\n", "\t", "\r", "\f", "\xa0", "\ufeff", "/**/", ",")
    )


def safetensors(chance: random.Random) -> bytes:
    entries, at = [], 0
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3))):
        tag = chance.choice(TAGS if chance.random() < 0.95 else WRONG_TAGS)
        dims = [size(chance) for _ in range(chance.randrange(3))]
        count = prod([int(each) if re.fullmatch("[0-9]", each) else 1 for each in dims])
        end = at + count * WIDTHS.get(tag, 1)
        begin = at
        if chance.random() < 0.02:
            begin += chance.choice((-1, 1))
        if chance.random() < 0.02:
            end += chance.choice((-1, 1, 4))
        facts = [
            ("dtype", f'"{tag}"'),
            ("shape", f"[{','.join(dims)}]"),
            ("data_offsets", f"[{begin},{end}]"),
        ]
        if chance.random() < 0.01:
            facts[2] = (
                "data_offsets",
                f"[{size(chance)},{size(chance)}{pick(chance, '', ',1')}]",
            )
        if chance.random() < 0.02:
            facts.append(
                pick(
                    chance,
                    ("more", "1"),
                    facts[0],
                    ("constructor", "1"),
                    ("__proto__", "1"),
                    ("__proto__", "[1]"),
                )
            )
        if chance.random() < 0.01:
            facts.pop(0)
        if chance.random() < 0.2:
            chance.shuffle(facts)
        inside = ",".join(
            f'{space(chance)}"{name}"{space(chance)}:{space(chance)}{value}{space(chance)}'
            for name, value in facts
        )
        entries.append(f"{key(chance)}:{space(chance)}{{{inside}}}")
        at = end
    if chance.random() < 0.3:
        values = [
            f"{key(chance)}:{key(chance) if chance.random() < 0.97 else size(chance)}"
            for _ in range(chance.randrange(3))
        ]
        entries.insert(
            chance.randrange(len(entries) + 1), f'"__metadata__":{{{",".join(values)}}}'
        )
    if chance.random() < 0.2:
        chance.shuffle(entries)
    text = (
        f"{{{space(chance)}{','.join(entries)}{space(chance)}}}"
        + " " * chance.randrange(8)
    )
    if chance.random() < 0.02:
        at_ = chance.randrange(len(text) + 1)
        text = text[:at_] + pick(chance, *STRANGE[1:7], *'{}[]",:\\0') + text[at_:]
    header = text.encode("utf-8", "surrogatepass")
    data = chance.randbytes(min(at, 2000) if at > 0 else 0)
    return len(header).to_bytes(8, "little") + header + data


def nearly(make: Callable[[random.Random], bytes]) -> Callable[[random.Random], str]:
    """Makes a file, which is damaged rarely."""

    def made(chance: random.Random) -> str:
        data = make(chance)
        return (changed(chance, data) if chance.random() < 0.1 else data).hex()

    return made


def loaded(tensor: dlw.Tensor) -> list[Any]:
    with tensor:
        return [str(tensor.dtype), list(tensor.shape), tensor.tobytes().hex()]


def file(given: str) -> Any:
    opening = dlw.open(bytes.fromhex(given))
    try:
        opening.send(None)
    except StopIteration as done:
        opened = done.value
    if isinstance(opened, dlw.Tensor):
        return loaded(opened)
    found = []
    with opened:
        for name in opened:
            info = opened.info(name)
            read = [str(info.dtype), list(info.shape), None]
            with suppress(BufferError):
                read = loaded(opened[name])
            found.append([name, *read])
        return {"metadata": opened.metadata, "found": found}


# --- parts, and indexes of sharded models --------------------------------------------------------


def bound(chance: random.Random) -> int | None:
    usual = [None, 0, 1, 2, 3, -1, -2, 5]
    return chance.choice(usual if chance.random() < 0.95 else [10**12, -(10**12)])


def one_range(chance: random.Random) -> Any:
    if chance.random() < 0.3:
        return chance.choice([0, 0, 1, -1, 2, 99])
    step = chance.choice([None, 1, 1, 2, -1, -2, 3, 0 if chance.random() < 0.1 else 7])
    return [bound(chance), bound(chance), step] if chance.random() < 0.8 else None


def raw(chance: random.Random) -> tuple[bytes, dict[str, Any]]:
    """Elements of any dtype, also of those that are none, and of about their shape."""
    name = make_dtype(chance)
    shape = [chance.randrange(5) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    try:
        bits = dlw.DType(name).bits * dlw.DType(name).lanes
    except TypeError:
        bits = 8
    if bits > 10_000:
        shape = shape[:1]
    count = -(-prod(shape) * bits // 8) + chance.choice((0,) * 20 + (1, -1))
    options = {"format": "raw", "dtype": name}
    if len(shape) != 1 or chance.random() < 0.5:
        options["shape"] = shape
    return chance.randbytes(max(count, 0)), options


def part(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.3:
        data, options = raw(chance)
    else:
        make = chance.choice((npy, safetensors))
        data, options = make(chance), {}
        if chance.random() < 0.2:
            dtype = chance.choice(["int32", "uint32", "bfloat16", "int8"])
            options |= {"format": make.__name__, "dtype": dtype}
    ranges: Any = [one_range(chance) for _ in range(chance.choice((0, 1, 1, 2, 2, 3)))]
    if chance.random() < 0.1:
        ranges = None
    return {"bytes": data.hex(), "ranges": ranges, "options": [*options.items()]}


def part_of(given: dict[str, Any]) -> Any:
    """The parts of all tensors of a file, or why they are refused."""
    data, options = bytes.fromhex(given["bytes"]), dict(given["options"])
    key = tuple(
        slice(None)
        if each is None
        else slice(*each)
        if isinstance(each, list)
        else each
        for each in given["ranges"] or ()
    )
    try:
        dlw.DType(options.get("dtype", "bool"))
    except TypeError:  # as JavaScript has it
        raise BufferError from None
    first = "npy" if data.startswith(b"\x93NUMPY") else "safetensors"
    if options.get("format", first) != "safetensors":
        some = None if given["ranges"] is None else key
        return loaded(at_once(dlw.open(data, part=some, **options)))
    found = []
    with at_once(dlw.open(data, **options)) as opened:
        for name in opened:
            if not isinstance(opened.info(name).dtype, dlw.DType):
                continue
            try:
                some = opened.get_slice(name)[key]
                facts = [list(some.shape), some.nbytes]
                found.append([name, *facts, *loaded(at_once(some.load()))])
            except BufferError:
                found.append([name, "data"])
            except (IndexError, ValueError):
                found.append([name, "value"])
    return found


def at_once(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def index(chance: random.Random) -> dict[str, Any]:
    count = chance.choice((1, 2, 2, 3))

    def shard(i: int) -> str:
        of = count if chance.random() < 0.97 else count + 1
        usual = f"m-{i:05}-of-{of:05}.safetensors"
        odd = LISTS["odd_shards"]
        return usual if chance.random() < 0.95 else chance.choice(odd)

    numbers = [i for i in range(1, count + 1) if chance.random() < 0.97]
    start = 0 if chance.random() < 0.1 else 1
    pairs = [f'{key(chance)}:"{shard(i - 1 + start)}"' for i in numbers for _ in "ab"]
    if chance.random() < 0.05:
        pairs.append(f"{key(chance)}:{size(chance)}")
    values = [f"{key(chance)}:{size(chance)}" for _ in range(chance.randrange(3))]
    fields = [
        f'"weight_map":{{{",".join(pairs)}}}',
        f'"metadata":{{{",".join(values)}}}',
    ]
    if chance.random() < 0.05:
        fields[0] = pick(chance, '"weight_map":[]', '"weights":{}', '"weight_map":5')
    chance.shuffle(fields)
    text = f"{{{','.join(fields[: chance.choice((1, 2, 2, 2))])}}}{space(chance)}"
    beside = [shard(i) for i in range(1, count + 2) if chance.random() < 0.3]
    return {"bytes": text.encode("utf-8", "surrogatepass").hex(), "beside": beside}


def index_of(given: dict[str, Any]) -> Any:
    found, metadata = shards.parse_index(bytes.fromhex(given["bytes"]), "it")
    shards.check_numbers(found.values(), given["beside"], "it")
    # Languages write numbers differently.
    return [sorted(map(list, found.items())), [[key] for key in sorted(metadata)]]


SUBJECTS = {
    "part": (3, part, part_of),
    "index": (1, index, index_of),
    "npy": (4, nearly(npy), file),
    "safetensors": (4, nearly(safetensors), file),
}
