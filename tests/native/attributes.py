"""What a Tensor does for each attribute of NumPy's ndarray and of the array API: it has the
attribute, refuses it with what to do instead, or lacks it for a reason that stands here.

As a script: writes the tables of web/docs/reference/arrays.md.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import dlpack_web as dlw
from dlpack_web._tensor import hints

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "web" / "docs" / "reference" / "arrays.md"
# What neither a Tensor nor an error has an answer for, and why.
_SUBCLASSES = "only classes that NumPy's results should have need it; they are ndarrays"
_AS_ARRAYS = "NumPy's functions take a Tensor as an array, and return arrays"
_COPIES = "`copy` and `pickle` raise TypeError: use `dlw.from_dlpack(t, copy=True)`"
ABSENT = {
    "__array_finalize__": _SUBCLASSES,
    "__array_function__": _AS_ARRAYS,
    "__array_prepare__": _SUBCLASSES,
    "__array_priority__": _SUBCLASSES,
    "__array_struct__": "the address in it would outlive `release()`; NumPy takes the buffer",
    "__array_ufunc__": _AS_ARRAYS,
    "__array_wrap__": _SUBCLASSES,
    "__class_getitem__": "`Tensor` has no type parameters",
    "__copy__": _COPIES,
    "__deepcopy__": _COPIES,
    "__setstate__": _COPIES,
}
ABSENT_FUNCTIONS = {
    "__array_namespace_info__": "dlpack_web is no namespace of the array API; "
    "`dlw.features()` reports the environment",
    **dict.fromkeys(
        ("zeros", "ones", "full", "arange", "linspace", "eye"),
        "NumPy's, then `dlw.from_dlpack(x)`; or `dlw.empty(shape)`, which you fill",
    ),
    **dict.fromkeys(
        ("empty_like", "zeros_like", "ones_like", "full_like"),
        "`dlw.empty(t.shape, t.dtype, device=t.device)`, which you fill",
    ),
    "asarray": "`dlw.from_dlpack(x)`, which shares its memory",
    "astype": "`t.to_device(device, dtype=…)`, which converts",
    "permute_dims": "`t.permute_dims(axes)`, a view",
    "reshape": "`t.reshape(shape)`, a view",
}
# The functions of the array API that take a device or `copy`, and what they take;
# tests/interop/test_array_api.py compares them.
ARRAY_API = "2025.12"
FUNCTIONS = {
    "__array_namespace_info__": "",
    "arange": "start, stop, step, dtype, device",
    "asarray": "obj, dtype, device, copy",
    "astype": "x, dtype, copy, device",
    "empty": "shape, dtype, device",
    "empty_like": "x, dtype, device",
    "eye": "n_rows, n_cols, k, dtype, device",
    "from_dlpack": "x, device, copy",
    "full": "shape, fill_value, dtype, device",
    "full_like": "x, fill_value, dtype, device",
    "linspace": "start, stop, num, dtype, device, endpoint",
    "ones": "shape, dtype, device",
    "ones_like": "x, dtype, device",
    "reshape": "x, shape, copy",
    "zeros": "shape, dtype, device",
    "zeros_like": "x, dtype, device",
}


def attributes_of(kind: type) -> list[str]:
    """Without private names, and what Tensor has as every Python object has it."""
    ours = {name for base in dlw.Tensor.__mro__[:-1] for name in vars(base)}
    return [
        name
        for name in dir(kind)
        if (not name.startswith("_") or name.endswith("__"))
        and (name not in dir(object) or name in ours - {"__doc__"})
    ]


def refusal(tensor: dlw.Tensor, name: str) -> Exception | None:
    """What an attribute raises that is there only to say what to do; None: no such one."""
    value = inspect.getattr_static(dlw.Tensor, name, None)
    try:
        if isinstance(value, hints._Missing):
            getattr(tensor, name)
        elif getattr(value, "__annotations__", {}).get("return") is NoReturn:
            value(tensor, *[None] * _required(value))
    except (AttributeError, TypeError) as error:
        return error
    return None


def _required(call: Any) -> int:
    """Arguments that a method has to be given."""
    given = list(inspect.signature(call).parameters.values())[1:]
    return sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in given)


def undecided(names: Iterable[str]) -> list[str]:
    """Attributes that a Tensor neither has nor refuses nor lacks for a reason."""
    with dlw.empty(1) as tensor:
        return [
            name
            for name in names
            if name not in ABSENT
            and not hasattr(tensor, name)
            and refusal(tensor, name) is None
        ]


def undecided_functions(names: Iterable[str]) -> list[str]:
    return [
        name
        for name in names
        if name not in ABSENT_FUNCTIONS and not hasattr(dlw, name)
    ]


# --- the page ---------------------------------------------------------------------------------


def code(text: str) -> str:
    """As a cell of a table has it, whatever marks of Markdown are in it."""
    marks = "``" if "`" in text else "`"
    return f"{marks}{text}{marks}".replace("|", r"\|")


def codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    line = "|---" * (head.count("|") + 1) + "|"
    return "\n".join([f"| {head} |", line, *(f"| {a} | {b} |" for a, b in rows)])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()))[0].rstrip(".:")


def present(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Public ones with what they are; those of Python's protocols in a row."""
    names = list(names)
    for name in names:
        if not name.startswith("_"):
            value = inspect.getattr_static(dlw.Tensor, name)
            yield f"`{name}`", first_sentence(value.__doc__ or "")
    yield codes(n for n in names if n.startswith("_")), "as Python or NumPy calls them"


def refused(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those with the same words, but for their own name or symbol, in one row."""
    found: dict[str, list[str]] = {}
    with dlw.empty(1) as tensor:
        for name in names:
            error = refusal(tensor, name)
            if error is not None:
                way = str(error).rpartition(f"no attribute {name!r}: ")[2]
                way = re.sub(rf"(np\.asarray\(t\))\.{name}$", r"\1.<name>", way)
                way = re.sub(r"support \S+: use", "support <operator>: use", way)
                words = f"{type(error).__name__} | {code(way)}"
                found.setdefault(words, []).append(name)
    for words, same in found.items():
        yield codes(same), words


def functions() -> Iterator[tuple[str, str]]:
    for name, parameters in FUNCTIONS.items():
        call = f"`{name}({parameters})`"
        if name in ABSENT_FUNCTIONS:
            yield call, f"absent: {ABSENT_FUNCTIONS[name]}"
        else:
            yield call, f"`dlw.{name}`"


def tables() -> dict[str, str]:
    """Heading of the page -> its table."""
    names = attributes_of(np.ndarray)
    with dlw.empty(1) as tensor:
        there = [
            name
            for name in names
            if hasattr(tensor, name) and refusal(tensor, name) is None
        ]
    return {
        "Attributes that a Tensor has": table("ndarray | Tensor", present(there)),
        "Attributes that name an alternative": table(
            "ndarray | raises | with", refused(names)
        ),
        "Attributes that a Tensor lacks": table(
            "ndarray | why",
            ((f"`{name}`", ABSENT[name]) for name in names if name in ABSENT),
        ),
        "Functions of the array API": table(
            f"array API {ARRAY_API} | dlpack_web", functions()
        ),
    }


def with_tables(text: str) -> str:
    """The page with each heading's table as it is now."""
    made, parts = tables(), text.split("\n## ")
    for at, part in enumerate(parts[1:], 1):
        words = [line for line in part.splitlines() if not line.startswith("|")]
        rows = made.pop(words[0])
        parts[at] = "\n".join(words).rstrip() + f"\n\n{rows}\n"
    assert not made, f"the page has no heading {list(made)}"
    return "\n## ".join(parts)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
