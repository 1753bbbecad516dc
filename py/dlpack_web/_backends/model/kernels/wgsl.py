"""Reads from a shader's source its bindings and workgroup size. tests/fuzz/twins compares this
to JavaScript's."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...checks import tokens_of
from .. import messages
from ..buffers.views import round_up
from ..generated import HELP


@dataclass(frozen=True)
class Binding:
    """One `@group(0) @binding(n) var<…>` of a shader."""

    index: int
    name: str
    #: "uniform", "storage" or "read-only-storage"
    type: str
    #: The type of its value as written, such as "array<vec4f>".
    value: str
    #: "f32", "f16", "i32", "u32"; None: unknown, or a structure of several kinds.
    scalar: str | None
    atomic: bool
    #: The fewest bytes that it takes: all, or those with one element of a runtime-sized
    #: array; 0: unknown.
    stride: int
    #: Bytes from an element of its array, or a column of its matrix, to the next; 0: it
    #: has none.
    element: int
    #: The alignment of these; 0: they are flat, numbers without padding.
    align: int
    #: Whether it is an array with the length of the buffer.
    runtime: bool


@dataclass(frozen=True)
class Shader:
    #: None unless they are plain buffers in group 0, numbered 0, 1, 2, … by literals.
    bindings: list[Binding] | None
    #: @workgroup_size of the entry point; None unless it consists of literals.
    workgroup: tuple[int, int, int] | None


_BRACKETS = {"(": ")", "{": "}", "[": "]"}
# In types "<" opens a template; in expressions it compares.
_OPEN = _BRACKETS | {"<": ">"}

#: The tokens in the parentheses of each attribute, by its name.
type _Attributes = Mapping[str, Sequence[str]]


class _Tokens:
    def __init__(self, tokens: Sequence[str]) -> None:
        self._list = tokens
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._list[self._at] if self._at < len(self._list) else None

    def take(self) -> str:
        token = self.next or ""
        self._at += 1
        return token

    def accept(self, token: str) -> bool:
        found = self.next == token
        self._at += found
        return found

    def attributes(self) -> _Attributes:
        """`@name(args)`, any number of them."""
        found: dict[str, Sequence[str]] = {}
        while self.accept("@"):
            name = self.take()
            found[name] = self.group() if self.next == "(" else []
        return found

    def group(self) -> list[str]:
        """The tokens between the next bracket and its partner."""
        close = [_BRACKETS[self.take()]]
        inside: list[str] = []
        while self.next is not None:
            token = self.take()
            if token == close[-1]:
                close.pop()
                if not close:
                    break
            elif token in _BRACKETS:
                close.append(_BRACKETS[token])
            inside.append(token)
        return inside

    def statement(self) -> list[str]:
        """The tokens up to a semicolon, which is consumed, too."""
        found: list[str] = []
        while self.next not in (None, ";"):
            found.append(self.take())
        self.take()
        return found

    def rest(self) -> Sequence[str]:
        return self._list[self._at :]


def _list_of(tokens: Sequence[str]) -> list[list[str]]:
    """The entries of a list, which may end in a comma; brackets keep their commas."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        if token in _OPEN:
            depth += 1
        elif token in _OPEN.values():
            depth -= 1
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]


@dataclass(frozen=True)
class _Layout:
    """Memory layout of a type (WGSL 14.4: Memory Layout)."""

    scalar: str | None
    atomic: bool
    align: int
    size: int
    #: Whether arrays of it are numbers without padding; not of structures and matrices.
    flat: bool
    #: Of an array, also at the end of a structure, its element's; of a matrix its column's.
    element: "_Layout | None" = None
    #: Whether it is a runtime-sized array, of which the size has one element.
    runtime: bool = False

    def stride(self) -> int:
        """Bytes from an element of an array of these to the next."""
        return round_up(self.size, self.align)


# The largest number and size that are read; others are left to the compiler.
_MOST = 2**32 - 1
_DEEPEST = 20  # WGSL allows 15 levels


def _vector(scalar: str, count: int) -> _Layout:
    width = 2 if scalar == "f16" else 4
    size = width * count
    flat = count != 3
    return _Layout(scalar, False, size if flat else 4 * width, size, flat)


_SCALARS = {name: _vector(name, 1) for name in ("f32", "f16", "i32", "u32")}
_LETTERS = {"f": "f32", "h": "f16", "i": "i32", "u": "u32"}
_SHAPED = re.compile(r"vec([234])|mat([234])x([234])")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,9}|(0[xX]0*[0-9a-fA-F]{1,8}))[iu]?")


def _shaped(name: str, scalar: str) -> _Layout | None:
    """The layout of "vec3" or "mat4x3" of a scalar."""
    found = _SHAPED.fullmatch(name)
    if found is None:
        return None
    lanes, columns, rows = found.groups()
    if lanes:
        return _vector(scalar, int(lanes))
    if scalar[0] != "f":
        return None
    column = _vector(scalar, int(rows))
    size = int(columns) * column.stride()
    return replace(column, size=size, flat=False, element=column)


class _Source:
    def __init__(self) -> None:
        self.aliases: dict[str, Sequence[str]] = {}
        self.structs: dict[str, Sequence[str]] = {}
        self.numbers: dict[str, int] = {}
        #: Of aliases and structures; None, too, while one is looked at: none contains
        #: itself.
        self._layouts: dict[str, _Layout | None] = {}

    def layout(self, type_: Sequence[str], depth: int = 0) -> _Layout | None:
        """The layout of a type; None if it is not understood."""
        if depth > _DEEPEST or not type_:
            return None
        name, rest = type_[0], type_[1:]
        if not rest:
            return self._named(name, depth)
        if rest[0] != "<" or rest[-1] != ">":
            return None
        first, *more = _list_of(rest[1:-1]) or [[]]
        inner = self.layout(first, depth + 1)
        if inner is None or inner.runtime:
            return None
        if name == "array" and len(more) < 2:
            return self._array(inner, more[0] if more else None)
        if more or inner is not _SCALARS.get(str(inner.scalar)):
            return None
        scalar = str(inner.scalar)
        if name != "atomic":
            return _shaped(name, scalar)
        return None if scalar[0] == "f" else replace(inner, atomic=True)

    def number(self, tokens: Sequence[str]) -> int | None:
        """The integer value of an expression: a literal, or the name of one."""
        if len(tokens) != 1:
            return None
        found = _NUMBER.fullmatch(tokens[0])
        if found is None:
            return self.numbers.get(tokens[0])
        value = int(found[1], 16) if found[1] else int(found[0].rstrip("iu"))
        return value if value <= _MOST else None

    def number_of(
        self, attributes: _Attributes, name: str, usual: int | None = None
    ) -> int | None:
        """The one number of an attribute, or `usual` without it; None: unknown."""
        if name not in attributes:
            return usual
        parts = _list_of(attributes[name])
        return self.number(parts[0]) if len(parts) == 1 else None

    def _named(self, name: str, depth: int) -> _Layout | None:
        if name in self._layouts:
            return self._layouts[name]
        alias, members = self.aliases.get(name), self.structs.get(name)
        if alias is None and members is None:
            scalar = _LETTERS.get(name[-1:])
            short = _shaped(name[:-1], scalar) if scalar else None
            return _SCALARS.get(name, short)
        self._layouts[name] = None
        if alias is not None:
            found = self.layout(alias, depth + 1)
        else:
            found = self._struct(members or [], depth + 1)
        self._layouts[name] = found
        return found

    def _array(self, element: _Layout, length: Sequence[str] | None) -> _Layout | None:
        stride = element.stride()
        if length is None:
            return replace(element, size=stride, element=element, runtime=True)
        size = (self.number(length) or 0) * stride
        if not 0 < size <= _MOST:
            return None
        return replace(element, size=size, element=element)

    def _struct(self, members: Sequence[str], depth: int) -> _Layout | None:
        end, most = 0, 1
        scalars: set[str | None] = set()
        last: _Layout | None = None
        for member in _list_of(members):
            tokens = _Tokens(member)
            attributes = tokens.attributes()
            _, colon, *type_ = [*tokens.rest(), "", ""]
            layout = self.layout(type_[:-2], depth) if colon == ":" else None
            if layout is None or (last is not None and last.runtime):
                return None
            own = self.number_of(attributes, "align", layout.align)
            least = 0 if layout.runtime else layout.size
            size = self.number_of(attributes, "size", least)
            if own is None or size is None or own < layout.align or size < least:
                return None
            end = round_up(end, own) + size
            most = max(most, own)
            scalars.add(layout.scalar)
            last = layout
        if last is None or end > _MOST:
            return None
        # A structure that ends in a runtime-sized array is not an array of equal elements.
        if last.runtime:
            return _Layout(None, False, most, end + last.size, False, last.element)
        one = scalars.pop() if len(scalars) == 1 else None
        return _Layout(one, False, most, round_up(end, most), False)


@dataclass(frozen=True)
class _Declaration:
    """A declaration in module scope."""

    attributes: _Attributes
    kind: str
    tokens: Sequence[str]


def _declarations(wgsl: str) -> Iterator[_Declaration]:
    tokens = _Tokens(tokens_of(wgsl))
    while tokens.next is not None:
        attributes = tokens.attributes()
        kind = tokens.take()
        if kind == "fn":
            name = tokens.take()
            while tokens.next not in (None, "{"):
                tokens.take()
            if tokens.next == "{":
                tokens.group()
            yield _Declaration(attributes, kind, [name])
        elif kind == "struct":
            name = tokens.take()
            body = tokens.group() if tokens.next == "{" else []
            yield _Declaration(attributes, kind, [name, *body])
        elif kind != ";":
            yield _Declaration(attributes, kind, tokens.statement())


def parse_shader(wgsl: str, entry: str) -> Shader:
    """The bindings of a shader, and the workgroup size of an entry point."""
    source = _Source()
    variables: list[_Declaration] = []
    size: Sequence[str] = []
    for declaration in _declarations(wgsl):
        kind, attributes = declaration.kind, declaration.attributes
        name, *rest = declaration.tokens or [""]
        equals = rest.index("=") + 1 if "=" in rest else 0
        if kind == "struct":
            source.structs[name] = rest
        elif kind == "alias":
            source.aliases[name] = rest[equals:]
        elif kind == "const" and equals > 0:
            value = source.number(rest[equals:])
            if value is not None:
                source.numbers[name] = value
        elif kind == "fn" and name == entry:
            # Without a size it does not compile: that error says more than one about
            # workgroups.
            size = attributes.get("workgroup_size", ["1"])
        elif kind == "var" and attributes:
            variables.append(declaration)
        elif rest[:1] == ["immediate"]:
            raise TypeError(messages.no_number("".join(rest[2:3])))
    return Shader(_bindings_of(source, variables), _workgroup_of(source, size))


def _workgroup_of(source: _Source, size: Sequence[str]) -> tuple[int, int, int] | None:
    counts = [source.number(part) for part in _list_of(size)]
    positive = [n for n in counts if n]  # none of them is 0
    if not 1 <= len(counts) <= 3 or len(positive) < len(counts):
        return None
    x, y, z = [*positive, 1, 1][:3]
    return x, y, z


def _bindings_of(
    source: _Source, variables: Sequence[_Declaration]
) -> list[Binding] | None:
    bindings: list[Binding] = []
    for variable in variables:
        index = source.number_of(variable.attributes, "binding")
        found = _binding_of(source, index, variable.tokens)
        if found is None or source.number_of(variable.attributes, "group") != 0:
            return None
        bindings.append(found)
    bindings.sort(key=lambda binding: binding.index)
    numbered = all(binding.index == i for i, binding in enumerate(bindings))
    return bindings if numbered else None


_TYPES = {
    "uniform": "uniform",
    "uniform,read": "uniform",
    "storage": "read-only-storage",
    "storage,read": "read-only-storage",
    "storage,read_write": "storage",
}


def _binding_of(
    source: _Source, index: int | None, tokens: Sequence[str]
) -> Binding | None:
    """`<storage, read> name: type`."""
    if index is None or tokens[:1] != ["<"] or ">" not in tokens:
        return None
    close = tokens.index(">")  # of var<…>, whose list has no templates
    words = ",".join(" ".join(part) for part in _list_of(tokens[1:close]))
    kind, declared = _TYPES.get(words), tokens[close + 1 :]
    if kind is None or declared[1:2] != [":"]:
        return None
    value = declared[2:]
    layout = source.layout(value)
    element = layout.element if layout else None
    return Binding(
        index=index,
        name=declared[0],
        type=kind,
        value="".join(value).replace(",", ", "),
        scalar=layout.scalar if layout else None,
        atomic=bool(layout and layout.atomic),
        stride=layout.size if layout else 0,
        element=element.stride() if element else 0,
        align=element.align if element and not element.flat else 0,
        runtime=bool(layout and layout.runtime),
    )


def place_in(
    wgsl: str, parts: Sequence[tuple[str, int, int]], line: int, column: int
) -> tuple[str, int, int, int | None]:
    """Where an error at a line and column of a source is shown: its name, the line and
    column of the source, and the number of the line for users, who see parts alone
    (None: it is in none of these). The lines around a part belong to its ends: what
    fails there, fails because of the part."""
    if not parts:
        return f"line {line}", line, column, line
    for name, first, count in parts:
        last = first + count - 1
        if line == first - 1:
            line, column = first, 1
        elif line == last + 1:
            line, column = last, len(wgsl.split("\n")[last - 1]) + 1
        if first <= line <= last:
            return f"{name}, line {line - first + 1}", line, column, line - first + 1
    return f"generated source, line {line}", line, column, None


def help_for(row: str, said: str = "") -> str:
    """A line of help for a row that does not compile; "" without any. said: where, and
    the compiler's message."""
    text = f"{row}\n{said}"
    found = (
        help
        for written, help in HELP.items()
        if re.match(rf"[^\n]*?(?:{written})", text, re.ASCII)
    )
    return next((f"\nhelp: {help}" for help in found), "")
