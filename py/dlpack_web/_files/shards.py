"""The index of a model in several safetensors files, which says in which shard each tensor
is. js/src/open/shards.ts has the same rules."""

import errno
import json
import os
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from .._layout.text import shown
from .headers import malformed, strict_json
from .local import Local

# Bytes that an index has at most.
_MOST = 100_000_000
# Their common beginning, their number, how many there are, the suffix.
_NUMBERED = re.compile(r"(.*)-([0-9]{1,6})-of-([0-9]{1,6})(\.[A-Za-z0-9_]+)", re.DOTALL)
_PLAIN = re.compile(r"(?!\.\.?\Z)[^/\\\0]{1,255}")


def index_of(path: str) -> str:
    """The path of a file, or of the index in a folder."""
    if not os.path.isdir(path):
        return path
    found = [name for name in os.listdir(path) if name.endswith(".index.json")]
    if not found:
        raise IsADirectoryError(
            errno.EISDIR, "it has no index of a sharded model, *.index.json", path
        )
    if len(found) > 1:
        named = ", ".join(name[:100] for name in sorted(found)[:4])
        malformed(f"the folder {path}", f"it has several indexes: {named}; open one")
    return os.path.join(path, found[0])


def read_index(file: Local) -> tuple[dict[str, str], dict[str, str]]:
    """The shard of each tensor, and the metadata."""
    what = file.name
    if not file.remote and not os.path.isfile(what):
        malformed(
            what, "it is the index of a sharded model: open its path, or its folder"
        )
    if file.size > _MOST:
        malformed(what, f"an index of more than {_MOST} bytes")
    found, metadata = parse_index(file.read(0, file.size), what)
    beside = [] if file.remote else os.listdir(os.path.dirname(what) or ".")
    check_numbers(found.values(), beside, what)
    return found, metadata


def parse_index(data: bytes, what: str) -> tuple[dict[str, str], dict[str, str]]:
    """The same, of the contents of an index."""
    fields = strict_json(data, what, "-?[0-9].*")
    found = fields.get("weight_map")
    if not isinstance(found, dict):
        malformed(
            what, "it is no index of a sharded model: weight_map, an object, is needed"
        )
    for name, shard in found.items():
        if not isinstance(shard, str) or not _PLAIN.fullmatch(shard):
            malformed(
                what,
                f"the shard of {shown(name)} is {shown(shard)}, which is not the name of a "
                "file beside it",
            )
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        malformed(what, "its metadata is not an object")
    return found, {key: _text(value) for key, value in metadata.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_numbers(shards: Iterable[str], beside: Iterable[str], what: str) -> None:
    """BufferError for numbered shards that contradict each other, or one missing."""
    listed = set(shards)
    kinds: dict[tuple[str, str], tuple[str, str]] = {}
    for shard in sorted(listed):
        match = _NUMBERED.fullmatch(shard)
        if match is None:
            continue
        stem, _, count, suffix = match.groups()
        other, same = kinds.setdefault((stem, suffix), (shard, count))
        if same != count:
            malformed(
                what,
                f"its shards {shown(other)} and {shown(shard)} contradict each other",
            )
    for (stem, suffix), (shard, count) in kinds.items():
        end = f"-of-{count}{suffix}"
        width = len(shard) - len(f"{stem}-{end}")
        first = 0 if f"{stem}-{0:0{width}}{end}" in listed else 1
        for i in range(first, int(count) + first):
            name = f"{stem}-{i:0{width}}{end}"
            if name not in listed:
                malformed(what, f"it lacks shard {shown(name)}")
    for name in beside:
        match = _NUMBERED.fullmatch(name)
        if match and (match[1], match[4]) in kinds and name not in listed:
            malformed(what, f"shard {shown(name)} is beside it, and not in it")


def check_names(
    shard: str, names: Iterable[str], found: Mapping[str, str], what: str
) -> None:
    """BufferError for a tensor of a shard that the index does not list there."""
    for name in names:
        listed = found.get(name)
        if listed != shard:
            says = "does not list" if listed is None else f"says is in {shown(listed)}"
            malformed(
                what,
                f"shard {shown(shard)} has tensor {shown(name)}, which the index {says}",
            )


def check_all(names: Container[str], found: Mapping[str, str], what: str) -> None:
    """BufferError unless the shards have all tensors that the index lists."""
    for name, shard in found.items():
        if name not in names:
            malformed(
                what,
                f"shard {shown(shard)} lacks tensor {shown(name)}, which the index lists",
            )
