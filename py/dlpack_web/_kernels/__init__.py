"""Kernels whose shader is the user's: kernel.py; batch.py records calls of those and of formulas.
Here are errors of Kernel that name parameters."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def named(names: Sequence[str]) -> Iterator[None]:
    """Errors of Kernel with the parameters' names in place of positions."""
    try:
        yield
    except (BufferError, TypeError, ValueError) as error:
        error.args = (_PLACES.sub(lambda found: _name(found, names), str(error)),)
        raise


_PLACES = re.compile(r"\b(?:binding|argument) (\d+)|\barguments (\d+) and (\d+)")


def _name(found: re.Match[str], names: Sequence[str]) -> str:
    places = [int(i) for i in found.groups() if i is not None]
    if max(places) >= len(names):  # in another's message, or a label
        return found[0]
    return " and ".join(names[i] for i in places)
