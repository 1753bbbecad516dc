"""Reads from a shader's source its bindings and workgroup size
(js/src/webgpu/wgsl.ts)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


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
    #: Bytes from an element of the array to the next, or of the whole value; 0: unknown.
    stride: int
    #: Bytes of an element itself: fewer than `stride` for vec3.
    size: int
    #: Whether it is an array with the length of the buffer.
    runtime: bool


@dataclass(frozen=True)
class Shader:
    #: None unless they are plain buffers in group 0, numbered 0, 1, 2, … by literals.
    bindings: list[Binding] | None
    #: @workgroup_size of the entry point; None unless it consists of literals.
    workgroup: tuple[int, int, int] | None


_LINE_END = re.compile("[\n\v\f\r\u0085\u2028\u2029]")


def strip_comments(wgsl: str) -> str:
    """WGSL with its comments replaced by blanks; block comments nest, line ends
    stay."""
    out: list[str] = []
    depth = at = 0
    while at < len(wgsl):
        two = wgsl[at : at + 2]
        if two == "/*":
            depth, at = depth + 1, at + 2
        elif depth > 0:
            if two == "*/":
                depth, at = depth - 1, at + 2
                out += [" "] if depth == 0 else []
            else:
                out += ["\n"] if wgsl[at] == "\n" else []
                at += 1
        elif two == "//":
            end = _LINE_END.search(wgsl, at)
            at = end.start() if end else len(wgsl)
        else:
            out.append(wgsl[at])
            at += 1
    return "".join(out)


# In types "<" opens a template; in expressions it compares.
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\S")
_BRACKETS = {"(": ")", "{": "}", "[": "]"}
_OPEN = _BRACKETS | {"<": ">"}


class _Tokens:
    def __init__(self, text: str) -> None:
        self._list = _TOKEN.findall(text)
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


@dataclass(frozen=True)
class _Layout:
    """Memory layout of a type (WGSL 14.4: Memory Layout)."""

    scalar: str | None
    atomic: bool
    align: int
    size: int
    element: "_Layout | None" = None  # of a runtime-sized array


_SCALARS = ("f32", "f16", "i32", "u32")
_LETTERS = {"f": "f32", "h": "f16", "i": "i32", "u": "u32"}
_SHORT = re.compile(r"(vec|mat)([234])(?:x([234]))?([fhiu])")
_LONG = re.compile(r"(vec|mat)([234])(?:x([234]))?")


def _aligned(n: int, to: int) -> int:
    return -(-n // to) * to


def _plain(scalar: str, count: int) -> _Layout:
    width = 2 if scalar == "f16" else 4
    size = width * count
    return _Layout(scalar, False, 4 * width if count == 3 else size, size)


def _matrix(scalar: str, columns: int, rows: int) -> _Layout:
    column = _plain(scalar, rows)
    return replace(column, size=columns * _aligned(column.size, column.align))


def _shaped(kind: str, a: str, b: str | None, scalar: str) -> _Layout:
    if kind == "vec":
        return _plain(scalar, int(a))
    return _matrix(scalar, int(a), int(b or a))


class _Source:
    def __init__(self) -> None:
        self.aliases: dict[str, list[str]] = {}
        self.structs: dict[str, list[str]] = {}
        self.numbers: dict[str, int] = {}

    def layout(self, type_: Sequence[str], depth: int = 0) -> _Layout | None:
        """The layout of a type; None if it is not understood."""
        if depth > 20 or not type_:
            return None
        name, rest = type_[0], list(type_[1:])
        if name in _SCALARS:
            return _plain(name, 1)
        if short := _SHORT.fullmatch(name):
            kind, a, b, letter = short.groups()
            return _shaped(kind, a, b, _LETTERS[letter])
        if not rest and name in self.aliases:
            return self.layout(self.aliases[name], depth + 1)
        if not rest and name in self.structs:
            return self._struct(self.structs[name], depth)
        if len(rest) < 2 or rest[0] != "<" or rest[-1] != ">":
            return None
        args = _split(rest[1:-1], ",")
        inner = self.layout(args[0], depth + 1)
        if inner is None:
            return None
        if name == "atomic":
            return replace(inner, atomic=True)
        if name == "array":
            return self._array(inner, args[1] if len(args) > 1 else [])
        long = _LONG.fullmatch(name)
        if long is None or inner.scalar is None:
            return None
        return _shaped(long[1], long[2], long[3], inner.scalar)

    def number(self, tokens: Sequence[str]) -> int | None:
        """The integer value of an expression: a literal, or the name of one."""
        if len(tokens) != 1:
            return None
        literal = re.fullmatch(r"(0[xX][\da-fA-F]+|\d+)[iu]?", tokens[0])
        if literal is None:
            return self.numbers.get(tokens[0])
        text = literal[1]
        return int(text, 16) if text[:2] in ("0x", "0X") else int(text)

    def _array(self, element: _Layout, length: Sequence[str]) -> _Layout | None:
        if not length:
            return replace(element, element=element)
        count, stride = self.number(length), _aligned(element.size, element.align)
        return None if count is None else replace(element, size=count * stride)

    def _struct(self, members: Sequence[str], depth: int) -> _Layout | None:
        offset, most = 0, 1
        scalars: set[str | None] = set()
        last: _Layout | None = None
        for member in _split(members, ","):
            if not member:
                continue
            attributes, rest = _attributes_of(member)
            if ":" not in rest[1:]:
                return None
            layout = self.layout(rest[rest.index(":") + 1 :], depth + 1)
            if layout is None or (last is not None and last.element is not None):
                return None
            own = self._given(attributes, "align", layout.align)
            size = self._given(attributes, "size", layout.size)
            if own is None or size is None:
                return None
            offset = _aligned(offset, own) + (0 if layout.element else size)
            most = max(most, own)
            scalars.add(layout.scalar)
            last = layout
        if last is None:
            return None
        # A structure that ends in a runtime-sized array is not an array of equal elements.
        one = scalars.pop() if len(scalars) == 1 and last.element is None else None
        return _Layout(one, False, most, _aligned(offset, most))

    def _given(self, attributes: dict[str, str], name: str, usual: int) -> int | None:
        return self.number([attributes[name]]) if name in attributes else usual


def _split(tokens: Sequence[str], separator: str) -> list[list[str]]:
    """Splits at each token that is outside of brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        if token in _OPEN:
            depth += 1
        elif token in _OPEN.values():
            depth -= 1
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _attributes_of(tokens: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """`@name(args)` before a declaration, and the tokens after them."""
    attributes: dict[str, str] = {}
    at = 0
    while at + 1 < len(tokens) and tokens[at] == "@":
        name = tokens[at + 1]
        at += 2
        attributes[name] = ""
        if at < len(tokens) and tokens[at] == "(":
            end = tokens.index(")", at) if ")" in tokens[at:] else len(tokens)
            attributes[name] = "".join(tokens[at + 1 : end])
            at = end + 1
    return attributes, list(tokens[at:])


@dataclass(frozen=True)
class _Declaration:
    """A declaration in module scope."""

    attributes: dict[str, str]
    kind: str
    tokens: list[str]


def _declarations(wgsl: str) -> Iterator[_Declaration]:
    tokens = _Tokens(strip_comments(wgsl))
    while tokens.next is not None:
        attributes: dict[str, str] = {}
        while tokens.accept("@"):
            name = tokens.take()
            attributes[name] = "".join(tokens.group()) if tokens.next == "(" else ""
        kind = tokens.take()
        if kind == "fn":
            name = tokens.take()
            while tokens.next not in (None, "{"):
                if tokens.next == "(":
                    tokens.group()
                else:
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
    size: str | None = None
    for declaration in _declarations(wgsl):
        kind, attributes = declaration.kind, declaration.attributes
        name = declaration.tokens[0] if declaration.tokens else ""
        rest = declaration.tokens[1:]
        if kind == "struct":
            source.structs[name] = rest
        elif kind == "alias":
            source.aliases[name] = rest[1:]
        elif kind == "const" and "=" in rest:
            value = source.number(rest[rest.index("=") + 1 :])
            if value is not None:
                source.numbers[name] = value
        elif kind == "fn" and name == entry:
            size = attributes.get("workgroup_size")
        elif kind == "var" and attributes:
            variables.append(declaration)
    return Shader(_bindings_of(source, variables), _workgroup_of(source, size))


def _workgroup_of(source: _Source, size: str | None) -> tuple[int, int, int] | None:
    if size is None:
        return None
    counts = [source.number([part]) for part in size.split(",") if part]
    if not 1 <= len(counts) <= 3 or None in counts:
        return None
    x, y, z = (*(n for n in counts if n is not None), 1, 1)[:3]
    return x, y, z


def _bindings_of(
    source: _Source, variables: Sequence[_Declaration]
) -> list[Binding] | None:
    bindings: list[Binding] = []
    for variable in variables:
        given = {
            name: source.number([text.removesuffix(",")])
            for name, text in variable.attributes.items()
        }
        found = _binding_of(source, given.get("binding"), variable.tokens)
        if found is None or given.get("group") != 0:
            return None
        bindings.append(found)
    bindings.sort(key=lambda binding: binding.index)
    numbered = all(binding.index == i for i, binding in enumerate(bindings))
    return bindings if numbered else None


def _binding_of(
    source: _Source, index: int | None, tokens: Sequence[str]
) -> Binding | None:
    """`<storage, read> name: type`."""
    if index is None or not tokens or tokens[0] != "<" or ">" not in tokens:
        return None
    close = list(tokens).index(">")  # of var<…>, whose list has no templates
    words = [part[0] if part else "" for part in _split(tokens[1:close], ",")]
    name, colon, *value = [*tokens[close + 1 :], "", ""][: max(len(tokens) - close, 2)]
    value = [token for token in value if token]
    kind = _binding_type(*[*words, "", ""][:2])
    if kind is None or colon != ":":
        return None
    layout = source.layout(value)
    element = layout.element or layout if layout else None
    stride = 0
    if layout:
        stride = _aligned(layout.size, layout.align if layout.element else 1)
    return Binding(
        index=index,
        name=name,
        type=kind,
        value="".join(value).replace(",", ", "),
        scalar=element.scalar if element else None,
        atomic=bool(element and element.atomic),
        stride=stride,
        size=element.size if element else 0,
        runtime=bool(layout and layout.element),
    )


def _binding_type(space: str, access: str) -> str | None:
    if space == "uniform":
        return "uniform"
    if space != "storage":
        return None
    return "storage" if access == "read_write" else "read-only-storage"


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
