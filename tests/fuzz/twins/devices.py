"""Random names of dtypes, and options of a device for adapters with random limits."""

import random
from typing import Any

from dlpack_web import DType, webgpu
from dlpack_web._backends import desktop
from dlpack_web._backends.desktop import wgpu
from dlpack_web._layout.dtype import _PACKED

from . import ALL_WORDS
from .shaders import STRANGE, pick

NAMES = [
    *_PACKED,
    *(f"{name}x{n}" for name in _PACKED for n in (2, 3, 4, 16)),
    "constructor",
    "__proto__",
    "f32",
    "",
    "x",
    "x4",
]
LISTS = ALL_WORDS["devices"]
LANES = LISTS["lanes"]
LIMITS = [
    name
    for name in webgpu.DeviceOptions.__annotations__
    if name.startswith(("max", "min"))
]
FEATURES = ["shader-f16", "subgroups", "timestamp-query", "float32-filterable"]


def make_dtype(chance: random.Random) -> str:
    name = chance.choice(NAMES)
    dice = chance.random()
    if dice < 0.4:
        name += f"x{chance.choice(LANES)}"
    elif dice < 0.6:
        at = chance.randrange(len(name) + 1)
        name = (
            name[:at]
            + pick(chance, *"xX_ 18", chance.choice(STRANGE))
            + name[at + chance.randrange(2) :]
        )
    return name


def dtype(name: str) -> int:
    return DType(name)._packed


def make_device(chance: random.Random) -> dict[str, Any]:
    has = {
        name: chance.choice((8, 256, 65536, 2**31, 2**40))
        for name in LIMITS
        if chance.random() < 0.9
    }
    options: dict[str, Any] = {}
    for _ in range(chance.randrange(4)):
        name = (
            chance.choice(LIMITS)
            if chance.random() < 0.9
            else pick(
                chance,
                "maxFoo",
                "constructor",
                "toString",
                "__proto__",
                "max_buffer_size",
                "",
                "maxbuffersize",
                "MaxBufferSize",
            )
        )
        options[name] = value(chance)
    if chance.random() < 0.3:
        options["features"] = pick(
            chance,
            [],
            ["shader-f16"],
            ["subgroups", "shader-f16"],
            "shader-f16",
            "",
            [1],
            None,
            7,
        )
    if chance.random() < 0.3:
        options["label"] = pick(chance, "mine", "", "é", None, 7)
    if chance.random() < 0.3:
        options["powerPreference"] = pick(
            chance, "low-power", "high-performance", "fast", "", None, 7
        )
    offered = [name for name in FEATURES if chance.random() < 0.7]
    return {"options": list(options.items()), "limits": has, "features": offered}


def value(chance: random.Random) -> Any:
    numbers = LISTS["numbers"]
    if chance.random() < 0.9:
        return {"number": chance.choice(numbers)}
    return pick(chance, "8", True, None, [8])


class Stop(Exception):  # noqa: N818 - no error
    """Raised in place of making a device."""


def device(given: dict[str, Any]) -> dict[str, Any]:
    """What is asked of an adapter with these limits and features."""
    asked: dict[str, Any] = {}

    async def adapter_of(options: dict[str, Any], *, blocking: bool) -> Any:
        asked["powerPreference"] = options.get("powerPreference")
        return None

    async def device_from(
        adapter: Any, label: Any, features: Any, required: Any, *, blocking: bool
    ) -> Any:
        asked.update(label=label, features=features)
        asked["limits"] = sorted([name, limit] for name, limit in required.items())
        raise Stop

    fakes = {
        "adapter_of": adapter_of,
        "device_from": device_from,
        "limits": lambda adapter: given["limits"],
        "features": lambda adapter: given["features"],
    }
    kept = {name: getattr(wgpu, name) for name in fakes}
    try:
        for name, fake in fakes.items():
            setattr(wgpu, name, fake)
        options = {name: number_of(each) for name, each in given["options"]}
        desktop.backend.request_device(options).send(None)
    except Stop:
        pass
    finally:
        for name, own in kept.items():
            setattr(wgpu, name, own)
    return asked


def number_of(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    number = float(given["number"])
    return int(number) if number.is_integer() else number


SUBJECTS = {"dtype": (2, make_dtype, dtype), "device": (1, make_device, device)}
