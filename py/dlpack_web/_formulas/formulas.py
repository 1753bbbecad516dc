"""WGSL around a user's formula (js/src/webgpu/formulas/formulas.ts writes the same text;
tests/fuzz/twins compares both).

Names that begin with an underscore are ours: parameters may not. That of x's binding,
_x_, ends with one, too, which no other does. The formula is on
lines of its own, from column 1 on, and `Source.parts` says where: so an error of the
compiler is shown at the user's own line and column.
"""

import re
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from math import copysign, isfinite, nan, prod, sqrt
from struct import pack, unpack
from typing import Any, Literal, NamedTuple

from .. import _core
from .._backends.checks import (
    BLANKS,
    NARROWER,
    fits_half,
    tokens_of,
    way_to,
    with_lines,
)
from .._layout.dtype import dtype_of
from .._layout.text import type_of
from .generated import IN_MODULE, OURS, RESERVED

#: The dtype of a tensor for each type of a parameter.
DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "f16": "float16"}
_TYPES = {dtype: type_ for type_, dtype in DTYPES.items()} | {t: t for t in DTYPES}
_WIDTH = 64  # invocations of a workgroup
PER_INVOCATION = 4  # elements


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
    in_wgsl = name in RESERVED
    if in_wgsl or name.startswith("_") or name in ours:
        why = "reserved in WGSL" if in_wgsl else "reserved"
        raise ValueError(f'"{text}": the name {name} is {why}, so choose another')
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
    """What WGSL computes otherwise than it is written, without an error: x // 2 and
    1 / 2; or ""."""
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


class _Writer:
    def __init__(self, types: Iterable[str]) -> None:
        self._lines = ["enable f16;"] if "f16" in types else []
        self._parts: list[Part] = []
        self._params: list[Param | None] = []

    def add(self, *lines: str) -> None:
        self._lines += lines

    def bind(
        self, access: str, name: str, type_: str, param: Param | None = None
    ) -> None:
        at = f"@group(0) @binding({len(self._params)})"
        self.add(f"{at} var<{access}> {name}: {type_};")
        self._params.append(param)

    def formula(self, name: str, text: str, before: str, after: str) -> None:
        """The user's lines, between two of ours that fail only because of them."""
        lines = text.split("\n")
        self._parts.append(Part(name, len(self._lines) + 2, len(lines)))
        self.add(before, *lines, after)

    def source(self) -> Source:
        text = "\n".join(self._lines) + "\n"
        return Source(text, tuple(self._parts), tuple(self._params))


def _bind_inputs(w: _Writer, inputs: Sequence[Param], kinds: Sequence[str]) -> None:
    for param, kind in zip(inputs, kinds, strict=True):
        type_, name = param.type, param.name
        if kind == "n":
            w.bind("uniform", f"_{name}_", "f32" if type_ == "f16" else type_, param)
        elif kind in ("r", "t", "s"):
            variable = name if kind == "r" else f"_{name}_"
            w.bind("storage, read", variable, f"array<{type_}>", param)


def _bind_outputs(w: _Writer, outputs: Sequence[Param]) -> None:
    for param in outputs:
        variable, type_ = f"_{param.name}_", f"array<{param.type}>"
        w.bind("storage, read_write", variable, type_, param)


def _load(
    w: _Writer, inputs: Sequence[Param], kinds: Sequence[str], outs: Sequence[Param]
) -> None:
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
        w.add(f"  let {name} = {value};")


def _operate(w: _Writer, outputs: Sequence[Param], name: str, text: str) -> None:
    """Statements that set the outputs. They are loaded first, so `y += x` works;
    compilers drop a load that the formula does not use."""
    w.add(*(f"  var {out.name} = _{out.name}_[i];" for out in outputs))
    w.formula(name, text, "  {", "  ;}")
    w.add(*(f"  _{out.name}_[i] = {out.name};" for out in outputs))


def counts_elements(outputs: Sequence[Param]) -> bool:
    """Whether the number of elements is an argument: arrayLength would count the
    padding of f16."""
    return outputs[0].type == "f16"


def elementwise(
    inputs: Sequence[Param],
    outputs: Sequence[Param],
    operation: str,
    kinds: Sequence[str],
) -> Source:
    """A shader that sets element i of each output. kinds, of each input: "t" a tensor,
    "s" one of shape (), "n" a number, "r" raw, "=0" the same tensor as output 0."""
    w = _Writer({param.type for param in (*inputs, *outputs)})
    _bind_inputs(w, inputs, kinds)
    _bind_outputs(w, outputs)
    n = f"arrayLength(&_{outputs[0].name}_)"
    if counts_elements(outputs):
        w.bind("uniform", "_n", "u32")
        n = "_n"
    w.add("", "fn _element(i: u32, n: u32) {")
    _load(w, inputs, kinds, outputs)
    _operate(w, outputs, "operation", operation)
    w.add("}", "", *f"{_HEAD}  let n = {n};\n{_ELEMENTS}".split("\n"))
    source = w.source()
    both = [outputs[int(kind[1:])] for kind in kinds if kind[0] == "="]
    bound = iter([None if param in both else param for param in source.params])
    params = [kind[0] != "=" and next(bound) for kind in kinds]
    return source._replace(params=(*params, *bound))


_HEAD = f"""\
@compute @workgroup_size({_WIDTH})
fn main(
  @builtin(workgroup_id) at: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
) {{
  let group = at.x + at.y * groups.x;
"""

#: Large GPUs start workgroups more slowly than they copy a few elements in each.
_ELEMENTS = f"""\
  let first = group * {PER_INVOCATION * _WIDTH};
  let end = min(first + {PER_INVOCATION * _WIDTH}, n);
  for (var i = first + local; i < end; i += {_WIDTH}) {{
    _element(i, n);
  }}
}}"""


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
    w = _Writer({param.type for param in (*inputs, *outputs)} | {type_})
    # The formulas after the first may read what is raw.
    _bind_inputs(w, inputs, kinds if maps else ["r" if x.raw else "" for x in inputs])
    if not maps:
        w.bind("storage, read", "_partial", f"array<{type_}>")
    if finishes:
        _bind_outputs(w, outputs)
    else:
        w.bind("storage, read_write", "_partial", f"array<{type_}>")
    w.bind("uniform", "_sizes", f"array<vec4u, {_SIZES}>")
    w.add(f"var<workgroup> _shared: array<{type_}, {_WIDTH}>;", "")
    w.add(f"fn _identity() -> {type_} {{")
    w.formula("identity", what.identity, f"  return {type_}(", "  );")
    w.add("}", "", f"fn _map(i: u32, n: u32, _J: u32) -> {type_} {{")
    if maps:
        _load(w, inputs, kinds, outputs)
        w.formula(what.names[0], what.map, f"  return {type_}(", "  );")
    else:
        w.add("  return _partial[i];")
    w.add("}", "", f"fn _reduce(a: {type_}, b: {type_}) -> {type_} {{")
    w.formula(what.names[1], what.reduce, f"  return {type_}(", "  );")
    w.add("}", "", f"fn _finish(i: u32, n: u32, _at: u32, a: {type_}) {{")
    if finishes:
        _operate(w, outputs, what.names[2], what.post)
    else:
        w.add("  _partial[_at] = a;")
    at = "k * step" if one_axis else "_offset(k, _sizes[1].w, 2)"
    w.add("}", "", f"fn _at(k: u32, step: u32) -> u32 {{ return {at}; }}", "", *_MAIN)
    return w.source()


#: vec4u of the sizes: the numbers of outputs, lanes, elements of a chunk and chunks; the
#: elements that are reduced, those that are reduced to one in all passes, the last axes; and
#: then an axis that is kept and one that is reduced in each, the last ones first. 2 ** 32
#: elements have at most 16 of each.
_SIZES = 2 + 16

#: Eight loads wait for the memory together.
_LOADS = "".join(
    f"      let v{j} = _map(start + _at(k + {j} * s.y, step), t.y, k + {j} * s.y);\n"
    for j in range(8)
)

#: Sums of pairs are rounded three times, one after the other eight times.
_MAIN = f"""\
fn _offset(number: u32, last: u32, part: u32) -> u32 {{
  var left = number;
  var sum = 0u;
  for (var at = 2u; at < last; at++) {{
    let extent = _sizes[at][part];
    sum += left % extent * _sizes[at][part + 1];
    left /= extent;
  }}
  return sum + left * _sizes[last][part + 1];
}}

{_HEAD}\
  let s = _sizes[0];
  let t = _sizes[1];
  let step = _sizes[2].w;
  let piece = group * ({_WIDTH} / s.y) + local / s.y;
  let lane = local % s.y;
  let used = piece < s.x * s.w;
  let output = piece % s.x;
  var value = _identity();
  if (used) {{
    let start = _offset(output, t.z, 0);
    let first = piece / s.x * s.z;
    let end = min(first + s.z, t.x);
    var k = first + lane;
    for (; k + 7 * s.y < end; k += 8 * s.y) {{
{_LOADS}\
      value = _reduce(value, _reduce(
        _reduce(_reduce(v0, v1), _reduce(v2, v3)), _reduce(_reduce(v4, v5), _reduce(v6, v7))
      ));
    }}
    for (; k < end; k += s.y) {{
      value = _reduce(value, _map(start + _at(k, step), t.y, k));
    }}
  }}
  _shared[local] = value;
  for (var half = s.y / 2; half > 0; half /= 2) {{
    workgroupBarrier();
    if (lane < half) {{
      _shared[local] = _reduce(_shared[local], _shared[local + half]);
    }}
  }}
  if (used && lane == 0) {{
    _finish(output, t.y, piece, _shared[local]);
  }}
}}""".split("\n")


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


def grid(invocations: int) -> tuple[int, int]:
    """Workgroups on two axes: each has at most 65535 on every device."""
    groups = -(-invocations // _WIDTH)
    rows = -(-groups // 65535)
    return -(-groups // rows), rows
