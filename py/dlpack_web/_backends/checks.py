"""What kernels need of a source and of counts in any backend."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from .._core import Tensor
from .._layout.text import type_of
from .._layout.views import extents

#: Arguments of a kernel that `_core._arguments` has checked.
type Arguments = tuple[Tensor | float, ...]
#: The arguments and options of a user's call, (args, *options), under which it is cached; () for
#: none.
type Key = tuple[Any, ...]
#: Counts of workgroups; 0 for the default.
type Counts = tuple[int, ...]
type Tensors = Sequence[Tensor]


class ShaderSource(NamedTuple):
    """What a kernel is made of: see Kernel. parts: lines of the source where errors are
    shown as of the part: its name, first line and number of lines. params: those of
    `_formulas/formulas.py` (Source), of a kernel of formulas."""

    wgsl: str
    entry: str
    label: str
    check: bool
    parts: Sequence[tuple[str, int, int]] = ()
    params: Sequence[Any] = ()


#: Where Python cannot block, after "the tensor is on webgpu:0".
NO_JSPI = (
    " and Python cannot wait for it here (that needs JSPI and a call from async Python)"
)

#: WGSL's blanks (3.2: Blankspace and Line Breaks), for a class of characters.
BLANKS = " \t\n\v\f\r\x85\u200e\u200f\u2028\u2029"
_BREAK = re.compile("\r\n|[\v\f\r\x85\u2028\u2029]")


def way_to(narrower: str) -> str:
    return f'WGSL has no 64-bit types; upload it with dtype "{narrower}"'


def with_lines(wgsl: str) -> str:
    """WGSL with line feeds as line breaks: not every compiler counts others."""
    return _BREAK.sub("\n", wgsl)


_TOKEN = re.compile(
    r"//.*|/\*|[A-Za-z_][A-Za-z0-9_]*|\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*"
    rf"|[^{BLANKS}]"
)
_EDGE = re.compile(r"/\*|\*/")


def tokens_of(wgsl: str, comments: bool = False) -> list[str]:
    """The tokens of a source, and those that begin with `//` if `comments`."""
    text = with_lines(wgsl)
    found: list[str] = []
    at = 0
    while match := _TOKEN.search(text, at):
        start, at = match.span()
        if match[0] == "/*":
            at = _after_comment(text, at)
        elif comments or not match[0].startswith("//"):
            if text[start] == "_" or text[start].isidentifier():
                # re has no class of letters as Unicode and Python define them.
                while at < len(text) and f"_{text[at]}".isidentifier():
                    at += 1
            found.append(text[start:at])
    return found


def _after_comment(text: str, at: int) -> int:
    """Where a block comment ends, of which the text is at `at`; block comments nest."""
    depth = 1
    while depth > 0:
        edge = _EDGE.search(text, at)
        if edge is None:
            return len(text)
        at = edge.end()
        depth += 1 if edge[0] == "/*" else -1
    return at


def fits_half(number: Any) -> bool:
    """Whether it is none beyond those of f16."""
    return not 65504 < abs(float(number)) < inf


def check_source(wgsl: Any, entry: Any, label: Any) -> None:
    """Raises if this is no shader with that entry point; the GPU checks the rest."""
    if not isinstance(wgsl, str):
        raise TypeError(
            f"Kernel takes the WGSL source of a shader, a str, not {type_of(wgsl)}"
        )
    if not isinstance(entry, str):
        raise TypeError(
            f"entry must be the name of a function in the WGSL, not {type_of(entry)}"
        )
    if not isinstance(label, str):
        raise TypeError(f"label must be a str, not {type_of(label)}")
    if re.search("[\ud800-\udfff]", wgsl + label):
        raise ValueError("the WGSL and the label must be Unicode, without surrogates")
    if not re.search(r"\bfn\b", wgsl):
        start = wgsl if len(wgsl) < 40 else f"{wgsl[:40]}…"
        raise ValueError(
            f"Kernel takes WGSL, and {start!r} declares no function: a shader has "
            "`@compute @workgroup_size(64) fn main() { … }`; for a file pass open(path).read()"
        )
    if entry not in wgsl:
        raise ValueError(
            f"the WGSL has no function {entry!r}: entry= must name one of its functions"
        )


_MOST = 1 << 32  # WebGPU's counts have 32 bits


def counts_of(workgroups: Any) -> Counts:
    """Workgroups of three axes, 0 for the default; NumPy's integers count as ints."""
    if workgroups is None:
        return 0, 0, 0
    if type(workgroups) is int and 0 < workgroups < _MOST:
        return workgroups, 1, 1
    try:
        counts = extents(workgroups)
    except TypeError:
        raise TypeError(
            f"workgroups must be one to three ints, not {workgroups!r}"
        ) from None
    if not 1 <= len(counts) <= 3:
        raise ValueError(f"workgroups must be one to three counts, not {workgroups!r}")
    if min(counts) < 1:
        raise ValueError(f"workgroups must be 1 or more, not {workgroups!r}")
    if max(counts) >= _MOST:
        raise ValueError(f"workgroups must be below 2**32, not {workgroups!r:.100}")
    return (*counts, 1, 1)[:3]
