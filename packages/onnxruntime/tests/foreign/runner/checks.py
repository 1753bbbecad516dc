"""`check(name, thing)`, with which programs record what the two runs of them are compared by."""

import enum
import sys

import numpy as np

RECORDED: list[dict[str, object]] = []


def check(name, thing, close=None):
    """Records a value, or what calling it returns or raises.

    close: how far floats may be apart, absolutely and of the value, where that is more than the
    program's other floats may be.
    """
    try:
        found = encoded(thing() if callable(thing) else thing)
    except Exception as error:  # noqa: BLE001 - which one is what is compared
        kinds = [kind.__name__ for kind in type(error).__mro__]
        kinds = kinds[: kinds.index("Exception") + 1]
        found = {"raised": kinds[0], "kinds": kinds, "words": str(error)}
        # The frames of the traceback hold what the program wants to release.
        error.__traceback__ = None
        vars(sys).pop("last_exc", None)
    RECORDED.append({"name": str(name), "found": found, "close": close})


def encoded(value):
    """A value as JSON, with its type."""
    kind = type(value).__name__
    if isinstance(value, enum.Enum) or hasattr(type(value), "__members__"):
        return {"type": kind, "value": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        plain = value.item() if isinstance(value, np.generic) else value
        return {"type": kind, "value": plain}
    if isinstance(value, np.generic):
        return {"type": kind, "value": value.item()}
    if isinstance(value, bytes):
        return {"type": kind, "value": value.hex()}
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        return {
            "type": kind,
            "dtype": value.dtype.name if value.dtype.kind not in "US" else "str",
            "shape": list(value.shape),
            "value": [each if plain_json(each) else str(each) for each in flat],
        }
    if isinstance(value, dict):
        return {
            "type": "dict",
            "items": [[encoded(key), encoded(each)] for key, each in value.items()],
        }
    if isinstance(value, (list, tuple, set)):
        listed = sorted(value, key=str) if isinstance(value, set) else value
        return {"type": kind, "items": [encoded(each) for each in listed]}
    return {"type": kind}


def plain_json(value):
    return value is None or isinstance(value, (bool, int, float, str))
