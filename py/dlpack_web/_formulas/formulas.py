"""WGSL around a user's formula (js/src/webgpu/formulas/formulas.ts writes the same text;
tests/fuzz/twins compares both).

Names that begin with an underscore are ours: parameters may not. That of x's binding,
_x_, ends with one, too, which no other does. The formula is on
lines of its own, from column 1 on, and `Source.parts` says where: so an error of the
compiler is shown at the user's own line and column.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from math import copysign, isfinite, nan, prod, sqrt
from struct import pack, unpack
from typing import Any, Literal, NamedTuple

from .. import _core
from .._backends.checks import BLANKS, Counts, fits_half, tokens_of, way_to, with_lines
from .._layout import NARROWER
from .._layout.dtype import dtype_of
from .._layout.text import type_of
from .generated import ELEMENTWISE, IN_MODULE, OURS, REDUCTION, WIDTH

#: The dtype of a tensor for each type of a parameter.
DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "f16": "float16"}
_TYPES = {dtype: type_ for type_, dtype in DTYPES.items()} | {t: t for t in DTYPES}


class Param(NamedTuple):
    """A parameter: "f32 x", or "raw f32 x"."""

    type: str
    name: str
    raw: bool
    output: bool

    def __str__(self) -> str:
        return f"{'raw ' if self.raw else ''}{self.type} {self.name}"

    def check(self, arg: Any) -> None:
        """Raises unless it takes the argument, in a call or in an update of one."""
        needed = DTYPES[self.type]
        if isinstance(arg, _core.Tensor):
            given = dtype_of(arg._dtype)
            if given != needed:
                hint = (
                    way_to(needed)
                    if NARROWER.get(given) == needed
                    else f"give a tensor of {needed}, or declare the parameter otherwise"
                )
                raise BufferError(
                    f'{self.name} is {given}, the parameter is "{self}": {hint}'
                )
        elif self.output or self.raw:
            role = "an output" if self.output else "raw"
            raise TypeError(
                f"{self.name} is {role} and takes a Tensor, not {type_of(arg)}"
            )
        elif self.type == "f16" and not fits_half(arg):  # it comes as f32
            raise ValueError(f"{self.name}: {arg} is not a valid f16")


class Part(NamedTuple):
    """Lines of the source that are the user's. first: counted from 1."""

    name: str
    first: int
    lines: int


class Source(NamedTuple):
    wgsl: str
    parts: tuple[Part, ...]
    #: Of each argument of a call, and of ours. None: it cannot change; False: nor is it bound,
    #: because an output is the same tensor.
    params: tuple[Param | Literal[False] | None, ...]
    #: Of what is bound, as messages show them.
    names: tuple[str, ...]


_PARAM = re.compile(
    rf"(raw[{BLANKS}]+)?([A-Za-z0-9_]+)[{BLANKS}]+([A-Za-z_][A-Za-z0-9_]*)"
)


def parse(
    inputs: Any, outputs: Any, reserved: frozenset[str] = frozenset()
) -> tuple[list[Param], list[Param]]:
    """The parameters of "f32 x, f32 k" and of the outputs; ValueError for others.

    reserved: further names that no parameter may have."""
    ins, outs = _params(inputs, reserved, False), _params(outputs, reserved, True)
    if not outs:
        raise ValueError('there is no output parameter, such as "f32 y"')
    for param in outs:
        if param.raw:
            raise ValueError(f'"{param}": only inputs can be raw')
    names = [param.name for param in (*ins, *outs)]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ValueError(f'two parameters have the name "{name}"')
    return ins, outs


def _params(text: Any, reserved: frozenset[str], output: bool) -> list[Param]:
    if not isinstance(text, str):
        raise TypeError(
            f'parameters are a string such as "f32 x, f32 k", not {type_of(text)}'
        )
    given = text.strip(BLANKS)
    parts = given.split(",") if given else []
    return [_param(part, reserved, output) for part in parts]


def _param(part: str, reserved: frozenset[str], output: bool) -> Param:
    text = part.strip(BLANKS)
    found = _PARAM.fullmatch(text)
    if found is None:
        raise ValueError(
            f'"{text}" is not a parameter: write a type and a name, such as "f32 x"'
        )
    raw, given, name = found.groups()
    type_ = _TYPES.get(given)
    if type_ is None:
        raise ValueError(
            f'"{text}": the type of a parameter is f32, i32, u32 or f16, not {given}'
        )
    # A raw parameter is a variable of the module, others are of a function.
    ours = OURS | reserved | (IN_MODULE if raw else frozenset())
    if name.startswith("_") or name in ours:
        raise ValueError(f'"{text}": the name {name} is reserved, so choose another')
    return Param(type_, name, raw is not None, output)


def formula(text: Any, name: str) -> str:
    """A formula, after checking that it is one."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is a string of WGSL, not {type_of(text)}")
    if not text.strip(BLANKS):
        raise ValueError(f"{name} is empty")
    misread = _misread_in(tokens_of(text, True))
    if misread:
        raise ValueError(f"{name}: {misread}")
    return with_lines(text)


#: Tokens behind which no value has ended: `//` is no division there.
_OPERATOR = re.compile(r"[-+*/%&|^!~<>=,;:({}[@?]")
_WHOLE = re.compile(r"[1-9][0-9]{0,8}")


def _misread_in(tokens: Sequence[str]) -> str:
    """What WGSL computes otherwise than it is written, x // 2 and 1 / 2; or ""."""
    # Of the integers that were multiplied so far: NaN in x * 1 / 2, whose product is divided.
    product, by, last = nan, "", ""
    for before, token in pairwise([";", *tokens]):
        if token.startswith("//") and not _OPERATOR.match(before):
            return "// begins a comment in WGSL: write floor(x / y), or the comment in /* */"
        if token in ("*", "/", "%"):
            by, last = token, before
        elif _WHOLE.fullmatch(token):
            rest = product % float(token)
            if by == "/" and rest > 0:
                return (
                    f"{last} / {token} is an integer division in WGSL: write {last}.0 / "
                    f"{token}"
                )
            if by == "":
                product = float(token)
            elif by == "*":
                product *= float(token)
            else:
                product = product / float(token) if by == "/" else rest
        elif token != "-" or not _OPERATOR.match(before):
            product, by = nan, ""
    return ""


#: The integers that a type has.
_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1)}
#: The largest finite numbers, and WGSL's text of them.
_LARGEST = {
    "f32": ((2 - 2.0**-23) * 2.0**127, "0x1.fffffep+127f"),
    "f16": (65504.0, "0x1.ffcp+15h"),
}


def identity_of(value: Any, type_: str) -> str:
    """The identity as WGSL of a type: a number, or the text of one."""
    if isinstance(value, str):
        return formula(value, "identity")
    number = _number(value)
    scalar = f"{type_[-1]}32" if type_.startswith("vec") else type_
    if scalar in _RANGES:
        least, most = _RANGES[scalar]
        if least <= number <= most and number == int(number):
            return str(int(number))
        raise ValueError(
            f"identity {_literal(number)} is not an {scalar}: those are the integers from "
            f"{least} to {most}"
        )
    largest, text = _LARGEST[scalar]
    if not isfinite(number):
        raise ValueError(
            f'WGSL has no literal for {number}: use the largest finite number, "'
            f'{"-" if number < 0 else ""}{text}" for {scalar}'
        )
    try:
        near: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        near = 2 * largest
    if abs(near) > largest:
        raise ValueError(
            f"identity {_literal(number)} is not an {scalar}: the largest is {text}"
        )
    # Compilers refuse literals beyond the largest number, and read very small ones
    # differently.
    exact = 2.0**-126 <= abs(number) <= largest
    return _literal(number if exact else near)


def _number(value: Any) -> float:
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(
            "identity is a number, or a string of WGSL such as "
            f'"-0x1.fffffep+127f", not {type_of(value)}'
        )
    try:
        return float(value)
    except OverflowError:  # an int
        return float("inf") if value > 0 else float("-inf")


def _literal(number: float) -> str:
    """The shortest decimal text of a number, as JavaScript writes it, too."""
    if number == 0 and copysign(1, number) < 0:
        return "-0.0"
    if abs(number) < 1e16 and number == int(number):
        return str(int(number))
    return re.sub(r"e([+-])0", r"e\1", repr(number))


# --- the source ---------------------------------------------------------------------------


class _Formula(NamedTuple):
    """The user's lines, under a name for messages. Between two lines of ours, which fail only
    because of them."""

    name: str
    text: str


#: Access, name and type of a binding, and the parameter that it is.
type _Binding = tuple[str, str, str, Param | None]
type _Lines = list[str | _Formula]


def _source(
    template: str,
    types: Iterable[str],
    bindings: Sequence[_Binding],
    words: dict[str, str],
    blocks: dict[str, _Lines],
) -> Source:
    """A template, with `words` within lines, and `blocks` in place of lines."""
    lines = ["enable f16;"] if "f16" in types else []
    parts: list[Part] = []
    declared = [
        f"@group(0) @binding({i}) var<{access}> {name}: {type_};"
        for i, (access, name, type_, _) in enumerate(bindings)
    ]
    blocks = {"bindings": [*declared], **blocks}
    for line in template.splitlines():
        ours = _WORD.sub(lambda found: words.get(found[1], found[0]), line)
        for each in blocks.get(line[1:], [ours]):
            if isinstance(each, str):
                lines.append(each)
                continue
            text = each.text.split("\n")
            parts.append(Part(each.name, len(lines) + 1, len(text)))
            lines += text
    params = tuple(param for *_, param in bindings)
    names = tuple(_OURS.sub(r"\1", name) for _, name, *_ in bindings)
    return Source("\n".join(lines) + "\n", tuple(parts), params, names)


_WORD = re.compile(r"\$(\w+)")
#: Of x's binding, _x_, and of those of no parameter.
_OURS = re.compile(r"^_(.*?)_?$")


def _inputs(inputs: Sequence[Param], kinds: Sequence[str]) -> Iterator[_Binding]:
    for param, kind in zip(inputs, kinds, strict=True):
        type_, name = param.type, param.name
        if kind == "n":
            yield "uniform", f"_{name}_", "f32" if type_ == "f16" else type_, param
        elif kind in ("r", "t", "s"):
            variable = name if kind == "r" else f"_{name}_"
            yield "storage, read", variable, f"array<{type_}>", param


def _outputs(outputs: Sequence[Param]) -> Iterator[_Binding]:
    for param in outputs:
        variable, type_ = f"_{param.name}_", f"array<{param.type}>"
        yield "storage, read_write", variable, type_, param


def _load(
    inputs: Sequence[Param], kinds: Sequence[str], outs: Sequence[Param]
) -> Iterator[str]:
    for (type_, name, *_), kind in zip(inputs, kinds, strict=True):
        if kind == "n":
            value = f"f16(_{name}_)" if type_ == "f16" else f"_{name}_"
        elif kind == "s":
            value = f"_{name}_[0]"
        elif kind == "t":
            value = f"_{name}_[i]"
        elif kind == "r":
            continue
        else:
            value = f"_{outs[int(kind[1:])].name}_[i]"
        yield f"  let {name} = {value};"


def _operate(outputs: Sequence[Param], name: str, text: str) -> _Lines:
    """Statements that set the outputs. They are loaded first, so `y += x` works;
    compilers drop a load that the formula does not use."""
    load = [f"  var {out.name} = _{out.name}_[i];" for out in outputs]
    store = [f"  _{out.name}_[i] = {out.name};" for out in outputs]
    return [*load, "  {", _Formula(name, text), "  ;}", *store]


def _return(type_: str, name: str, text: str) -> _Lines:
    return [f"  return {type_}(", _Formula(name, text), "  );"]


def counts_elements(outputs: Sequence[Param]) -> bool:
    """Whether their number is an argument: arrayLength counts padding of f16."""
    return outputs[0].type == "f16"


def elementwise(
    inputs: Sequence[Param],
    outputs: Sequence[Param],
    operation: str,
    kinds: Sequence[str],
) -> Source:
    """A shader that sets element i of each output. kinds, of each input: "t" a tensor,
    "s" one of shape (), "n" a number, "r" raw, "=0" the same tensor as output 0."""
    bindings = [*_inputs(inputs, kinds), *_outputs(outputs)]
    n = f"arrayLength(&_{outputs[0].name}_)"
    if counts_elements(outputs):
        bindings.append(("uniform", "_n", "u32", None))
        n = "_n"
    blocks: dict[str, _Lines] = {
        "load": [*_load(inputs, kinds, outputs)],
        "operation": _operate(outputs, "operation", operation),
    }
    types = {param.type for param in (*inputs, *outputs)}
    source = _source(ELEMENTWISE, types, bindings, {"n": n}, blocks)
    both = [outputs[int(kind[1:])] for kind in kinds if kind[0] == "="]
    bound = iter([None if param in both else param for param in source.params])
    params = [kind[0] != "=" and next(bound) for kind in kinds]
    return source._replace(params=(*params, *bound))


class Reduction(NamedTuple):
    """The definition of a reduction. names: of its formulas, for messages."""

    inputs: Sequence[Param]
    outputs: Sequence[Param]
    map: str
    reduce: str
    post: str
    identity: str
    type: str
    names: Sequence[str] = ("map_expr", "reduce_expr", "post_map_expr")


#: What each pass of a reduction reads and writes: the inputs or partial results, and
#: partial results or the outputs.
PASSES = {"whole": (True, True), "first": (True, False), "last": (False, True)}


def reduction(
    what: Reduction, kinds: Sequence[str], pass_: str, one_axis: bool = True
) -> Source:
    """A shader that reduces pieces of an axis: each of `_lanes` neighbouring
    invocations every so many elements, then all of them in workgroup memory. In one
    pass ("whole"), or in two with an array of partial results between. one_axis: whether
    `sizes` counts one axis that is reduced: several take divisions."""
    inputs, outputs, type_ = what.inputs, what.outputs, what.type
    maps, finishes = PASSES[pass_]
    names, partial = what.names, ("_partial", f"array<{type_}>", None)
    # The formulas after the first may read what is raw.
    kinds = kinds if maps else ["r" if x.raw else "" for x in inputs]
    bindings = [
        *_inputs(inputs, kinds),
        *([] if maps else [("storage, read", *partial)]),
        *(_outputs(outputs) if finishes else [("storage, read_write", *partial)]),
        ("uniform", "_sizes", f"array<vec4u, {_SIZES}>", None),
    ]
    blocks: dict[str, _Lines] = {
        "identity": _return(type_, "identity", what.identity),
        "map": ["  return _partial[i];"],
        "reduce": _return(type_, names[1], what.reduce),
        "finish": ["  _partial[_at] = a;"],
    }
    if maps:
        loads = _load(inputs, kinds, outputs)
        blocks["map"] = [*loads, *_return(type_, names[0], what.map)]
    if finishes:
        blocks["finish"] = _operate(outputs, names[2], what.post)
    at = "k * step" if one_axis else "_offset(k, _sizes[1].w, 2)"
    types = {param.type for param in (*inputs, *outputs)} | {type_}
    return _source(REDUCTION, types, bindings, {"type": type_, "at": at}, blocks)


#: vec4u of the sizes: the numbers of outputs, lanes, elements of a chunk and chunks; the
#: elements that are reduced, those that are reduced to one in all passes, the last axes; and
#: then an axis that is kept and one that is reduced in each, the last ones first. 2 ** 32
#: elements have at most 16 of each.
_SIZES = 2 + 16


# --- sizes --------------------------------------------------------------------------------


def sizes(
    shape: Sequence[int], axes: Container[int], n: int | None = None
) -> tuple[int, ...]:
    """The words of `_sizes` for a shape and the axes of it that are reduced. Neighbouring
    axes that are all kept, or all reduced, count as one.

    `lanes` invocations share one output, a power of two: neighbouring ones read neighbouring
    elements, of the reduced axes or of the outputs. Long axes are reduced in `chunks`, whose
    results a last pass reduces.

    n: the number of elements that are reduced to one: for the last pass."""
    kept: list[int] = []  # extents and strides
    reduced: list[int] = []
    stride = 1
    for at in reversed(range(len(shape))):
        extent, found = shape[at], reduced if at in axes else kept
        if found and found[-2] * found[-1] == stride:
            found[-2] *= extent
        elif extent != 1:
            found += extent, stride
        stride *= extent
    outputs, length = prod(kept[::2]), prod(reduced[::2])
    is_near = outputs < 4096 if n is not None else not reduced or reduced[1] < 16
    lanes = 1 << min(6, (max(length, 1) - 1).bit_length()) if is_near else 1
    chunks = 1
    steps = length / lanes
    # Loads under way: eight of 2 ** 16 invocations, as many as kept an H100 busy
    # (tests/bench/GPU.md). More invocations make the last pass longer, and each costs a GPU
    # in software.
    if n is None and steps > 64:
        chunks = int(min(2**16 / outputs / lanes, 4 * sqrt(steps), steps / 16))
    chunk = -(-length // max(chunks, 1))
    words = [outputs, lanes, chunk, -(-length // chunk) if chunk else 1]
    words += [length, length if n is None else n]
    words += [max(len(found) // 2, 1) + 1 for found in (kept, reduced)]
    for found in (kept, reduced):
        found += [0] * (2 * (_SIZES - 2) - len(found))
    for at in range(0, len(kept), 2):
        words += kept[at : at + 2] + reduced[at : at + 2]
    return tuple(words)


def grid(invocations: int) -> Counts:
    """Workgroups on two axes: each has at most 65535 on every device."""
    groups = -(-invocations // WIDTH)
    rows = -(-groups // 65535)
    return -(-groups // rows), rows, 1
