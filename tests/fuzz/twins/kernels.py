"""Random parameters, formulas and identities of ElementwiseKernel and ReductionKernel; sizes."""

import math
import random
import re
from pathlib import Path
from typing import Any

from dlpack_web._formulas import formulas, generated
from dlpack_web._formulas.generated import IN_REDUCTIONS

from . import ALL_WORDS
from .shaders import BLANKS, BREAKS, STRANGE, comment

TYPES = ["f32", "i32", "u32", "f16", "float32", "int32", "uint32", "float16"]
LISTS = ALL_WORDS["kernels"]
WRONG = LISTS["wrong"]
NAMES = LISTS["names"]
# All words that no parameter may be called, and parts of those.
WORDS = sorted(set(re.findall(r"\w+", Path(generated.__file__).read_text())))
WORDS += LISTS["more_words"]
REDUCED = LISTS["reduced"]


def blanks(chance: random.Random, least: int = 0) -> str:
    if chance.random() < 0.8:
        return " " * least
    return "".join(
        chance.choice(BLANKS if chance.random() < 0.9 else STRANGE)
        for _ in range(chance.randrange(least, 3))
    )


def param(chance: random.Random, name: str) -> str:
    raw = f"raw{blanks(chance, 1)}" if chance.random() < 0.25 else ""
    type_ = chance.choice(TYPES if chance.random() < 0.98 else WRONG)
    if chance.random() < 0.2:
        name = chance.choice(NAMES + WORDS)
    return blanks(chance) + raw + type_ + blanks(chance, 1) + name + blanks(chance)


def params(chance: random.Random, most: int) -> str:
    names = chance.sample(NAMES[:10], chance.randrange(most))
    return ",".join(param(chance, name) for name in names)


def formula(chance: random.Random) -> str:
    parts = ["y", " = ", "x[i]", ";", " ", "select", "é", *BREAKS, *BREAKS, *STRANGE]
    if chance.random() < 0.3:
        parts = LISTS["fractions"]
    text = "y" if chance.random() < 0.9 else ""
    text += "".join(chance.choice(parts) for _ in range(chance.randrange(9)))
    return text + (comment(chance) if chance.random() < 0.2 else "")


WHOLE = (
    0,
    1,
    255,
    65504,
    65505,
    65520,
    2**31,
    2**31 - 1,
    2**32,
    2**32 - 1,
    2**53,
    2**63,
    10**15,
    10**16,
    10**17,
    10**20,
    10**21,
    10**22,
    2**64,
    2**127,
    2**128,
)
OTHERS = (
    0.5,
    0.1,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    1e-40,
    5e-324,
    2**-149,
    2**-126,
    math.inf,
    3.4028234663852886e38,
    3.4028235e38,
    3.4028235677973366e38,
    1e39,
    math.nan,
)


def identity(chance: random.Random, type_: str) -> Any:
    if chance.random() < 0.1:
        return formula(chance)
    value = float(chance.choice(WHOLE if chance.random() < 0.6 else OTHERS))
    if chance.random() < 0.3:
        value = float(chance.getrandbits(chance.choice((8, 31, 32, 33))))
    if chance.random() < (0.1 if type_[-1] in "iu" else 0.5):
        value = math.ldexp(chance.random(), chance.randrange(-160, 135))
    if chance.random() < 0.1:
        value = math.nextafter(value, chance.choice((-math.inf, math.inf)))
    text = repr(-value if chance.random() < 0.3 else value)
    return {"number": text.replace("inf", "Infinity").replace("nan", "NaN")}


def number_of(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return float(given["number"])


def make_elementwise(chance: random.Random) -> dict[str, Any]:
    outputs = chance.choice(("f32 y", "f16 y", "u32 y, i32 u", "float32 y,float16 u"))
    return {
        "inputs": params(chance, 4),
        "outputs": params(chance, 4) if chance.random() < 0.1 else outputs,
        "operation": formula(chance),
        "kinds": [chance.choice(("t", "t", "s", "n", "=0")) for _ in range(3)],
    }


def kinds_of(ins: list[formulas.Param], kinds: list[str]) -> list[str]:
    return ["r" if one.raw else kinds[i % len(kinds)] for i, one in enumerate(ins)]


def source_of(found: formulas.Source) -> dict[str, Any]:
    params = [one and {**one._asdict(), "text": str(one)} for one in found.params]
    parts = [list(part) for part in found.parts]
    return {"wgsl": found.wgsl, "parts": parts, "params": params}


def elementwise(given: dict[str, Any]) -> dict[str, Any]:
    ins, outs = formulas.parse(given["inputs"], given["outputs"])
    text = formulas.formula(given["operation"], "operation")
    return source_of(
        formulas.elementwise(ins, outs, text, kinds_of(ins, given["kinds"]))
    )


def make_reduction(chance: random.Random) -> dict[str, Any]:
    made = make_elementwise(chance)
    del made["operation"]
    texts = {name: formula(chance) or "a" for name in ("map", "reduce", "post")}
    type_ = chance.choice(REDUCED)
    more = {"identity": identity(chance, type_), "type": type_}
    more |= {"pass": chance.choice(("whole", "first", "last"))}
    return made | texts | more | {"one_axis": chance.random() < 0.5}


def reduction(given: dict[str, Any]) -> dict[str, Any]:
    ins, outs = formulas.parse(given["inputs"], given["outputs"], IN_REDUCTIONS)
    what = formulas.Reduction(
        ins,
        outs,
        formulas.formula(given["map"], "map"),
        formulas.formula(given["reduce"], "reduce"),
        formulas.formula(given["post"], "postMap"),
        formulas.identity_of(number_of(given["identity"]), given["type"]),
        given["type"],
        ("map", "reduce", "postMap"),
    )
    kinds = kinds_of(ins, given["kinds"])
    return source_of(formulas.reduction(what, kinds, given["pass"], given["one_axis"]))


def make_plans(chance: random.Random) -> dict[str, Any]:
    """A shape, and whether each axis is reduced; sometimes of many axes, or of no
    elements."""
    left, shape = 30.0, []
    for _ in range(chance.choice((1, 2, 3, 4, 12, 40))):
        bits = chance.uniform(0, left) if chance.random() < 0.3 else chance.random() * 2
        shape.append(int(2**bits))
        left -= math.log2(shape[-1])
        if left < 1:
            break
    chance.shuffle(shape)
    if chance.random() < 0.05:
        shape.append(0)
    return {"shape": shape, "axes": [chance.random() < 0.5 for _ in shape]}


def plans(given: dict[str, Any]) -> list[list[int]]:
    axes = {at for at, reduced in enumerate(given["axes"]) if reduced}
    if 0 in given["shape"] and given["shape"].index(0) not in axes:
        return []
    words = formulas.sizes(given["shape"], axes)
    outputs, lanes, _, chunks, n = words[:5]
    last = formulas.sizes((chunks, outputs), {0}, n)
    return [list(words), list(last), list(formulas.grid(outputs * chunks * lanes))]


SUBJECTS = {
    "elementwise": (3, make_elementwise, elementwise),
    "reduction": (3, make_reduction, reduction),
    "plans": (1, make_plans, plans),
}
