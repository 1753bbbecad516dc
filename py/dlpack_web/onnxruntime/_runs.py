"""Runs of a session that have started, and their results."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .._backends.browser import seam
from .._tensor.tensor import Tensor
from ._outputs import Plan
from ._state import (
    Fail,
    InvalidArgument,
    RuntimeException,
    detail_of,
    translated,
    worded,
)
from ._state import NotImplemented as NotThere
from ._values import OrtValue, array_of


class Runs(NamedTuple):
    """JavaScript's functions for the runs of one session."""

    start: Any
    wait: Any
    done: Any
    take: Any
    strings: Any
    end: Any


def check_can_wait() -> None:
    if not seam.can_block():
        raise RuntimeError(
            "Python cannot wait for results here (that needs JSPI and an entry through "
            "async Python): use `await session.run_async(...)`"
        )


class Pending:
    """A run that has started."""

    def __init__(
        self,
        runs: Runs,
        kept: seam.Numbered,
        plan: Plan,
    ) -> None:
        self._runs = runs
        self._kept = kept
        self._plan = plan

    def wait(self) -> None:
        with translated():
            seam.wait_for(self._runs.wait, self._kept.number)

    async def later(self) -> None:
        with translated():
            await seam.finish(self._runs.done(self._kept.number))

    async def arrays_later(self) -> "list[np.ndarray[Any, Any]]":
        await self.later()
        return self.arrays()

    def arrays(self) -> "list[np.ndarray[Any, Any]]":
        found = self._taken()
        arrays = [_view(each) if isinstance(each, Tensor) else each for each in found]
        return [
            array if keys is None else _dicts(keys, array)
            for array, keys in zip(arrays, self._plan.zipped, strict=True)
        ]

    def values(self) -> list[OrtValue]:
        if any(keys is not None for keys in self._plan.zipped):
            raise worded(NotThere, "lists of dicts are no OrtValues here: use run()")
        return [OrtValue(each) for each in self._taken()]

    def _taken(self) -> "list[Tensor | np.ndarray[Any, Any]]":
        """The results, strings as arrays; an output requested twice is the same
        object."""
        number, runs, plan = self._kept.number, self._runs, self._plan
        found: dict[int, Any] = {}
        for i, is_strings in zip(plan.order, plan.are_strings, strict=True):
            if i not in found:
                found[i] = (
                    array_of(runs.strings(number, i))
                    if is_strings
                    else seam.receive(runs.take, number, i)
                )
        self._kept.ended()
        return [found[i] for i in plan.order]


class Arrived:
    """Results that are already there. Awaiting them is optional."""

    def __init__(self, results: "list[np.ndarray[Any, Any]]") -> None:
        self._results = results

    def __await__(self) -> "Generator[Any, Any, list[np.ndarray[Any, Any]]]":
        return self._results
        yield  # makes it a generator


def _view(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """The array over a result; np.from_dlpack costs less than `numpy()`."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError):  # a dtype that NumPy lacks
        return tensor.numpy()


def _dicts(keys: list[Any], rows: "np.ndarray[Any, Any]") -> Any:
    """The output of ZipMap, from rows with one element for each key."""
    return [dict(zip(keys, row, strict=True)) for row in rows.tolist()]


@contextmanager
def bound() -> Iterator[None]:
    """Raises errors of a run with an IOBinding as onnxruntime does."""
    try:
        yield
    except (Fail, InvalidArgument, RuntimeException, NotThere) as error:
        raise RuntimeError(f"Error in execution: {detail_of(error)}") from None
