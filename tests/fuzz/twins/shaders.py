"""Random WGSL, most of it nearly right, for the readers of shaders; and places in sources."""

import dataclasses
import math
import random
import re
from types import SimpleNamespace
from typing import Any

from wgsl_layouts import IN_NUMPY, Laid, laid

from dlpack_web import DType
from dlpack_web._backends.model.buffers.views import step_of
from dlpack_web._backends.model.kernels.arguments import _bound_size
from dlpack_web._backends.model.kernels.wgsl import help_for, parse_shader, place_in

from . import ALL_WORDS

BREAKS = ["\n", "\n", "\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"]
# Blanks of WGSL, and such as others have for one.
BLANKS = [" ", "\t", "\u200e", "\u200f", *BREAKS]
LISTS = ALL_WORDS["shaders"]
STRANGE = [*LISTS["strange"], "\ud800"]
NAMES = LISTS["names"]
NUMBERS = LISTS["numbers"]
SCALARS = ["f32", "f16", "i32", "u32", "bool"]
COUNTS = "234"


def pick(chance: random.Random, *among: Any) -> Any:
    return chance.choice(among)


def comment(chance: random.Random) -> str:
    inside = "".join(
        pick(chance, "x", " ", "*", "/", "\n", "//", "/* */", "/**/", "é", "@group(0)")
        for _ in range(chance.randrange(5))
    )
    if chance.random() < 0.4:
        return f"//{inside}{chance.choice(BREAKS)}"
    return f"/*{inside}" + ("*/" if chance.random() < 0.98 else "")


def blank(chance: random.Random) -> str:
    """Between two tokens; nothing rarely, where they may grow together."""
    dice = chance.random()
    if dice < 0.8:
        return " "
    if dice < 0.9:
        return chance.choice(BLANKS)
    if dice < 0.97:
        return comment(chance)
    return chance.choice(STRANGE) if dice < 0.98 else ""


def number(chance: random.Random) -> str:
    return chance.choice(NUMBERS[:12] if chance.random() < 0.7 else NUMBERS)


def name(chance: random.Random) -> str:
    return chance.choice(NAMES)


def type_name(chance: random.Random) -> str:
    return pick(chance, *"STU") if chance.random() < 0.8 else name(chance)


def scalar(chance: random.Random) -> str:
    return chance.choice(SCALARS[:4] if chance.random() < 0.95 else SCALARS)


def short(chance: random.Random) -> str:
    letter = chance.choice("fhiu" if chance.random() < 0.9 else "bdx")
    sizes = chance.choice(COUNTS)
    if chance.random() < 0.4:
        return f"mat{sizes}x{chance.choice(COUNTS)}{letter}"
    return pick(chance, "vec", "vec", "vec", "mat", "vec2x") + sizes + letter


def a_type(chance: random.Random, depth: int = 0) -> list[str]:
    dice = chance.random()
    if dice < 0.3 or depth > 4:
        return [scalar(chance)]
    if dice < 0.45:
        return [short(chance)]
    if dice < 0.6:
        return [type_name(chance)]
    inner = a_type(chance, depth + 1)
    if dice < 0.68:
        return ["atomic", "<", scalar(chance), ">"]
    comma = [","] if chance.random() < 0.1 else []
    if dice < 0.78:
        kind = pick(
            chance, *(f"vec{n}" for n in COUNTS), "mat2x3", "mat4x4", "mat3x2", "vec5"
        )
        return [
            kind,
            "<",
            *(inner if chance.random() < 0.1 else [scalar(chance)]),
            *comma,
            ">",
        ]
    if chance.random() < 0.5:
        return ["array", "<", *inner, *comma, ">"]
    return ["array", "<", *inner, ",", number(chance), *comma, ">"]


def attribute(chance: random.Random, called: str, *args: str) -> list[str]:
    listed: list[str] = []
    for arg in args:
        listed += [arg, ","]
    if chance.random() < 0.95:
        listed = listed[:-1]
    return ["@", called, "(", *listed, ")"]


def struct(chance: random.Random) -> list[str]:
    tokens = ["struct", type_name(chance), "{"]
    for _ in range(chance.randrange(5)):
        if chance.random() < 0.3:
            tokens += attribute(
                chance,
                pick(chance, "align", "size", "builtin", "location"),
                number(chance),
            )
        tokens += [name(chance), ":", *a_type(chance), pick(chance, *",,,,,,,;")]
    return [*tokens, "}", *([";"] if chance.random() < 0.3 else [])]


SPACES = ["storage", "storage,read", "storage,read_write", "uniform"]
WRONG_SPACES = LISTS["wrong_spaces"]


def variable(chance: random.Random, index: int) -> list[str]:
    at = str(index) if chance.random() < 0.97 else number(chance)
    group = "0" if chance.random() < 0.98 else number(chance)
    marks = [attribute(chance, "group", group), attribute(chance, "binding", at)]
    if chance.random() < 0.03:
        marks.append(
            pick(chance, ["@", "group"], attribute(chance, "binding", "1", "2"))
        )
    chance.shuffle(marks)
    space = chance.choice(SPACES if chance.random() < 0.95 else WRONG_SPACES)
    words = re.findall(r"\w+|,", space)
    tokens = [*(token for mark in marks for token in mark), "var"]
    tokens += ["<", *words, ">"] if chance.random() < 0.98 else []
    type_ = a_type(chance)
    if chance.random() < 0.5:
        type_ = ["array", "<", *a_type(chance, 1), ">"]
    return [*tokens, name(chance), ":", *type_, ";"]


def statements(chance: random.Random, depth: int = 0) -> list[str]:
    tokens: list[str] = []
    for _ in range(chance.randrange(4)):
        dice = chance.random()
        if dice < 0.4:
            tokens += [
                pick(chance, "var", "let", "const"),
                name(chance),
                "=",
                number(chance),
                ";",
            ]
        elif dice < 0.7:
            tokens += [
                name(chance),
                "[",
                number(chance),
                "]",
                "=",
                name(chance),
                "<",
                number(chance),
                ";",
            ]
        elif depth < 3:
            tokens += [
                "if",
                "(",
                name(chance),
                ">",
                number(chance),
                ")",
                "{",
                *statements(chance, depth + 1),
                "}",
            ]
        else:
            tokens += [pick(chance, *"{}[]()<>@;:,.")]
    return tokens


def function(chance: random.Random, called: str) -> list[str]:
    sizes = [number(chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 3, 4, 0)))]
    marks = [["@", "compute"], attribute(chance, "workgroup_size", *sizes)]
    if chance.random() < 0.1:
        marks.append(
            pick(
                chance,
                ["@", "must_use"],
                ["@", "compute"],
                attribute(chance, "workgroup_size", "2"),
            )
        )
    chance.shuffle(marks)
    tokens = [
        token for mark in marks[: 3 if chance.random() < 0.95 else 1] for token in mark
    ]
    tokens += ["fn", called, "("]
    if chance.random() < 0.5:
        tokens += [
            "@",
            "builtin",
            "(",
            "global_invocation_id",
            ")",
            name(chance),
            ":",
            "vec3",
            "<",
            "u32",
            ">",
        ]
    tokens.append(")")
    if chance.random() < 0.2:
        tokens += ["->", *a_type(chance)]
    return [*tokens, "{", *statements(chance), "}"]


def declaration(chance: random.Random) -> list[str]:
    dice = chance.random()
    if dice < 0.3:
        return struct(chance)
    if dice < 0.5:
        return ["alias", type_name(chance), "=", *a_type(chance), ";"]
    if dice < 0.7:
        typed = [":", *a_type(chance, 4)] if chance.random() < 0.5 else []
        value = ["=", number(chance)] if chance.random() < 0.97 else [number(chance)]
        return [
            pick(chance, "const", "const", "override"),
            pick(chance, "N", "W", name(chance)),
            *typed,
            *value,
            ";",
        ]
    if dice < 0.75:
        return pick(
            chance,
            ["enable", "f16", ";"],
            ["diagnostic", "(", "off", ",", "a.b", ")", ";"],
            [";"],
            ["const_assert", "1", "<", "2", ";"],
        )
    if dice < 0.85:
        space = pick(chance, *[["private"], ["workgroup"]] * 4, ["immediate"])
        return ["var", "<", *space, ">", name(chance), ":", *a_type(chance), ";"]
    return function(chance, name(chance))


def source(chance: random.Random) -> str:
    parts = [declaration(chance) for _ in range(chance.randrange(5))]
    parts += [variable(chance, i) for i in range(chance.randrange(4))]
    if chance.random() < 0.9:
        parts.append(
            function(chance, "main" if chance.random() < 0.9 else name(chance))
        )
    if chance.random() < 0.5:
        chance.shuffle(parts)
    tokens = [token for part in parts for token in part]
    while tokens and chance.random() < 0.1:
        at = chance.randrange(len(tokens))
        tokens[at : at + chance.randrange(2)] = [
            pick(chance, *"{}[]()<>@;:,=.", name(chance), number(chance))
        ]
    text = "".join(token + blank(chance) for token in tokens)
    if chance.random() < 0.05:
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at]
            + pick(chance, "", chance.choice(STRANGE), chance.choice(BREAKS))
            + text[at + chance.randrange(3) :]
        )
    return text


def make_shader(chance: random.Random) -> dict[str, str]:
    return {
        "source": source(chance),
        "entry": "main" if chance.random() < 0.9 else name(chance),
    }


def read_shader(given: dict[str, str]) -> Any:
    found = parse_shader(given["source"], given["entry"])
    return {
        "bindings": found.bindings and [*map(dataclasses.asdict, found.bindings)]
        if found.bindings is not None
        else None,
        "workgroup": found.workgroup and list(found.workgroup),
    }


def make_place(chance: random.Random) -> dict[str, Any]:
    rows = ["row" * chance.randrange(4) for _ in range(chance.randrange(1, 12))]
    words = "x ** y ? 1 : 2 np.sin( Math.cos( if { else } and or not TRUE False tf."
    rows[0] = " ".join(chance.choices(words.split(" "), k=chance.randrange(4)))
    parts, at = [], 1
    for called in ("map", "reduce", "post_map"):
        first, count = at + chance.randrange(3), chance.randrange(1, 4)
        if first + count - 1 > len(rows):
            break
        parts.append([called, first, count])
        at = first + count
    line, column = chance.randrange(1, len(rows) + 2), chance.randrange(1, 9)
    return {"wgsl": "\n".join(rows), "parts": parts, "line": line, "column": column}


def place(given: dict[str, Any]) -> list[Any]:
    found = place_in(given["wgsl"], given["parts"], given["line"], given["column"])
    return [*found, help_for(given["wgsl"])]


# --- layouts ---------------------------------------------------------------------------

SOME = ["uint8", "float16", "int32", "float32", "complex64", "float64", "int4"]
SOME += ["float32x3", "float32x4"]


def is_flat(one: Laid) -> bool:
    """Whether its scalars are without padding between and behind them."""
    width = 2 if one.scalars[0][2] == "f16" else 4
    return len(one.scalars) * width == one.stride


def make_fit(chance: random.Random) -> dict[str, Any]:
    """A tensor for an array: often of as many bytes as its elements, and as NumPy would
    have their values, with and without padding."""
    structs: list[str] = []
    one, n = laid(chance, SCALARS[:4], structs), chance.randrange(2, 5)
    head, least = "", one.stride
    dice = chance.random()
    text, element = f"array<{one.text}>", one.stride
    if dice < 0.2:
        text, least = f"array<{one.text}, {n}>", n * one.stride
    elif dice < 0.4:
        head = f"struct Tail {{ head: vec2u, tail: {text} }}"
        text = "Tail"
        least += math.ceil(8 / one.align) * one.align
    elif dice < 0.5:
        text, element, least = one.text, None, one.size
    source = " ".join(
        [*structs, head, f"@group(0) @binding(0) var<storage> x: {text};"]
    )
    given: dict[str, Any] = {"dtype": chance.choice(SOME), "fits": None}
    given |= {"declared": source, "layout": [least, element]}
    item = DType(given["dtype"]).bits // 8 or 1
    shape = [chance.randrange(5) for _ in range(chance.randrange(4))]
    shape += chance.choice(([], [element or 1], [max(least // item, 1)], [1]))
    if chance.random() < 0.2:
        shape = [least // item + chance.randrange(3) * (element or 1)]
    if chance.random() < 0.3 and one.packed is not None and element and not head:
        padded, (_, _, scalar) = chance.random() < 0.5, one.scalars[0]
        shape = [n, *(one.padded if padded else one.packed)]
        given |= {"dtype": IN_NUMPY[scalar], "fits": padded or is_flat(one)}
    return given | {"shape": shape}


def fit(given: dict[str, Any]) -> int:
    (binding,) = parse_shader(given["declared"], "main").bindings or ()
    least, element = given["layout"]
    assert binding.stride == least, (binding, least)
    if element:
        assert binding.element == element, (binding, element)
    dtype, shape = DType(given["dtype"]), given["shape"]
    step = step_of(dtype, False)
    nbytes = math.ceil(math.prod(shape) * step)
    view: Any = SimpleNamespace(shape=shape, dtype=dtype, step=step, nbytes=nbytes)
    try:
        found = _bound_size(view, binding, True, "it")
        assert given["fits"] is not False, "wrong numbers"
    except BufferError:
        assert not given["fits"], "right numbers"
        raise
    return found


SUBJECTS = {
    "shader": (6, make_shader, read_shader),
    "place": (1, make_place, place),
    "fit": (6, make_fit, fit),
}
