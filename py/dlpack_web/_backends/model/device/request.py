"""What a request asks of an adapter."""

import re
from collections.abc import Container, Iterable
from typing import Any

from .. import messages
from ..generated import DEFAULT_FEATURES, DEFAULT_LIMITS, OF_ADAPTER, OPTIONS, REQUEST

# With Dawn's: memory of this process as a buffer.
_WANTED_FEATURES = (*DEFAULT_FEATURES, "host-mapped-pointer")


class Request:
    """The options of request_device(); TypeError for those that are none. Limits are
    checked against the adapter's."""

    def __init__(self, options: dict[str, Any]) -> None:
        given = options.get("features")
        if isinstance(given, Iterable) and not isinstance(given, str):
            options = options | {"features": list(given)}
        self.options = options
        self._limits = dict(options)
        #: The options that are no limits, without None.
        self.others: dict[str, Any] = {}
        for name in OPTIONS:
            value = self._limits.pop(name, None)
            if value is not None:
                self.others[name] = _checked(name, value)
        self.label: str = self.others.get("label", "")

    def of_adapter(self) -> dict[str, Any]:
        """Those for requesting an adapter."""
        return {name: self.others[name] for name in OF_ADAPTER if name in self.others}

    def features(self, offered: Container[str]) -> list[str]:
        """The features to require of an adapter with those offered."""
        wanted = [name for name in _WANTED_FEATURES if name in offered]
        found: list[str] = self.others.get("features", wanted)
        return found

    def limits(self, allowed: dict[str, int]) -> dict[str, int]:
        """The limits to require, by WebGPU's names, of an adapter with `allowed`."""
        required = {}
        limits = dict.fromkeys(DEFAULT_LIMITS, float("inf")) | self._limits
        for name, asked in limits.items():
            limit = allowed.get(name)
            is_number = isinstance(asked, int | float) and not isinstance(asked, bool)
            if limit is None:
                raise TypeError(messages.no_option(name, _nearest(name, allowed)))
            if not is_number:
                raise TypeError(messages.no_limit(name, asked))
            if not asked >= 0:
                raise TypeError(messages.negative_limit(name, asked))
            wanted = limit if asked == float("inf") else int(asked)
            if wanted > limit and not name.startswith("min"):
                raise BufferError(messages.above_adapter(name, asked, limit))
            required[name] = wanted
        return required


def _pairs(name: str) -> set[str]:
    """The pairs of neighbouring letters of a name, in whichever style it is written."""
    letters = re.sub("[^a-z0-9]", "", name.lower())
    return {letters[i : i + 2] for i in range(len(letters) - 1)}


def _nearest(name: str, limits: Iterable[str]) -> str:
    """What to write for an option that there is not: the name that shares most pairs
    with it, and half of all at least."""
    pairs = _pairs(name)

    def share(option: str) -> float:
        own = _pairs(option)
        return 2 * len(own & pairs) / (len(own) + len(pairs))

    near = max((*OPTIONS, *REQUEST, *limits), key=share)
    if share(near) < 0.5:
        return messages.any_option(", ".join(OPTIONS))
    return messages.use_option(REQUEST.get(near, near))


def _checked(name: str, value: Any) -> Any:
    kind, needed = OPTIONS[name]
    if kind == "names":
        fits = isinstance(value, list) and all(isinstance(x, str) for x in value)
    elif isinstance(kind, list):
        fits = value in kind
    else:
        fits = isinstance(value, str if kind == "text" else bool)
    if not fits:
        raise TypeError(f"{name} must be {needed}, not {value!r}")
    return value
