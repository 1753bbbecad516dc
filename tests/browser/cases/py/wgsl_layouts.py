"""Random types of WGSL, laid out by the table of its specification (14.4.1: Alignment and Size),
for tests of what reads shaders."""

import random
from collections.abc import Sequence
from typing import NamedTuple

IN_NUMPY = {"f32": "float32", "f16": "float16", "i32": "int32", "u32": "uint32"}


def round_up(n: int, step: int) -> int:
    return -(-n // step) * step


class Laid(NamedTuple):
    """A type: its text, alignment and size; the shape of its values in NumPy, packed and
    with the padding of WGSL (None: a structure has none); and of each scalar how WGSL names
    it, its offset and type."""

    text: str
    align: int
    size: int
    packed: tuple[int, ...] | None
    padded: tuple[int, ...] | None
    scalars: list[tuple[str, int, str]]

    @property
    def stride(self) -> int:
        return round_up(self.size, self.align)


def vector(scalar: str, n: int) -> Laid:
    width = 2 if scalar == "f16" else 4
    align = (0, 1, 2, 4, 4)[n] * width
    if n == 1:
        return Laid(scalar, align, width, (), (), [("", 0, scalar)])
    scalars = [(f"[{i}]", i * width, scalar) for i in range(n)]
    return Laid(f"vec{n}<{scalar}>", align, n * width, (n,), (align // width,), scalars)


def several(text: str, one: Laid, n: int) -> Laid:
    shapes = [
        None if shape is None else (n, *shape) for shape in (one.packed, one.padded)
    ]
    scalars = [
        (f"[{i}]{name}", i * one.stride + at, scalar)
        for i in range(n)
        for name, at, scalar in one.scalars
    ]
    return Laid(text, one.align, n * one.stride, *shapes, scalars)


def laid(
    chance: random.Random, types: Sequence[str], structs: list[str], depth: int = 0
) -> Laid:
    """A type of these scalars; its structures are declared in `structs`."""
    dice = chance.random() if depth < 3 else 0
    n = chance.randrange(2, 5)
    floats = [scalar for scalar in types if scalar[0] == "f"]
    if dice < 0.4:
        return vector(chance.choice(types), chance.randrange(1, 5))
    if dice < 0.6:
        column = vector(chance.choice(floats), chance.randrange(2, 5))
        text = f"mat{n}x{column.text[3]}<{column.scalars[0][2]}>"
        return several(text, column, n)
    if dice < 0.75:
        one, n = laid(chance, types, structs, depth + 1), n - 1
        return several(f"array<{one.text}, {n}>", one, n)
    members, end, most, scalars = "", 0, 1, []
    for member in "abc"[: chance.randrange(1, 4)]:
        one = laid(chance, types, structs, depth + 1)
        align, size = one.align, one.size
        if chance.random() < 0.2:
            align *= 2
            members += f"@align({align}) "
        if chance.random() < 0.2:
            size += 4
            members += f"@size({size}) "
        members += f"{member}: {one.text}, "
        start = round_up(end, align)
        scalars += [(f".{member}{x}", start + at, of) for x, at, of in one.scalars]
        end, most = start + size, max(most, align)
    name = f"S{len(structs)}"
    structs.append(f"struct {name} {{ {members}}}")
    return Laid(name, most, round_up(end, most), None, None, scalars)
