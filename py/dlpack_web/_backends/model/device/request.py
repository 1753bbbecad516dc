"""What a request asks of an adapter."""

import re
from collections.abc import Container, Iterable
from typing import Any, NoReturn

from ...._layout import DEFAULT_FEATURES, DEFAULT_LIMITS, REQUEST
from ..errors import messages

# With Dawn's: memory of this process as a buffer.
_WANTED_FEATURES = (*DEFAULT_FEATURES, "host-mapped-pointer")
_PREFERENCES = ("low-power", "high-performance")


class Request:
    """The options of request_device(); TypeError for those that are none. Limits are
    checked against the adapter's."""

    def __init__(self, options: dict[str, Any]) -> None:
        given = options.get("features")
        if isinstance(given, Iterable) and not isinstance(given, str):
            options = options | {"features": list(given)}
        self.options = options
        self._limits = dict(options)
        self._features, self.preference, label = (
            self._limits.pop(name, None)
            for name in ("features", "powerPreference", "label")
        )
        is_list = isinstance(self._features, list) and all(
            isinstance(name, str) for name in self._features
        )
        if self._features is not None and not is_list:
            _refuse("features", 'a list of names: ["shader-f16"]', self._features)
        if self.preference is not None and self.preference not in _PREFERENCES:
            _refuse("powerPreference", " or ".join(_PREFERENCES), self.preference)
        if label is not None and not isinstance(label, str):
            _refuse("label", "a string", label)
        self.label = label or ""

    def features(self, offered: Container[str]) -> list[str]:
        """The features to require of an adapter with those offered."""
        if self._features is not None:
            found: list[str] = self._features
            return found
        return [name for name in _WANTED_FEATURES if name in offered]

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

    def share(known: str) -> float:
        own = _pairs(known)
        return 2 * len(own & pairs) / (len(own) + len(pairs))

    near = max(("features", "powerPreference", "label", *REQUEST, *limits), key=share)
    if share(near) < 0.5:
        return messages.any_option()
    return messages.use_option(REQUEST.get(near, near))


def _refuse(name: str, needed: str, given: object) -> NoReturn:
    raise TypeError(f"{name} must be {needed}, not {given!r}")
