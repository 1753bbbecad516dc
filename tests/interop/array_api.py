"""The parts of the array API on exchange and devices: the attributes of its arrays, the functions
that take a device or `copy`.

As a script: writes tests/array_api.json, which tests/native/attributes.py reads.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import array_api_strict as xp

FILE = Path(__file__).resolve().parents[1] / "array_api.json"


class _Plain:
    """What every class of Python has."""

    __slots__ = ("__weakref__", "annotated")
    annotated: None


def parameters(call: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(call).parameters if name != "self"]


def public(names: Iterable[str], pythons: Iterable[str] = ()) -> list[str]:
    """Without private names, and those of Python itself."""
    return sorted(
        name
        for name in {*names} - {*pythons}
        if not name.startswith("_") or name.endswith("__")
    )


def table() -> dict[str, Any]:
    array = type(xp.ones(1))
    calls = {
        name: parameters(call)
        for name in public(xp.__all__)
        if inspect.isfunction(call := getattr(xp, name))
    }
    return {
        "version": xp.__array_api_version__,
        "attributes": public(vars(array), dir(_Plain)),
        "functions": {
            name: given
            for name, given in calls.items()
            if {"device", "copy"} & {*given} or name.startswith("__")
        },
    }


def text() -> str:
    return json.dumps(table(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
