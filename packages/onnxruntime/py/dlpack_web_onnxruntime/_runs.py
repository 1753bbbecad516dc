"""Outputs of a session: which of them a run returns, and where each is stored. Runs that
have started, and their results."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np

from dlpack_web import Tensor, internal

from . import _javascript as javascript
from ._arrays import Array
from ._feeds import NodeArg, present
from ._state import (
    Fail,
    InvalidArgument,
    RuntimeException,
    detail_of,
    invalid,
    translated,
    unsupported,
)
from ._state import NotImplemented as NotThere
from ._values import OrtValue, array_of

# Places of an output, for JavaScript.
TO_CPU, ON_DEVICE = 0, 1


class Plan(NamedTuple):
    """The outputs of a run."""

    outputs: list[tuple[int, Any]]  # keeps the target Tensors alive
    numbers: list[int]  # for JavaScript: each output and its place
    order: list[int]  # the output of each result
    are_strings: list[bool]
    zipped: list[list[Any] | None]  # the keys of results that are lists of dicts


class Outputs:
    """args: the outputs; zipped: the keys of those that are lists of dicts, by name;
    flaw: what onnxruntime-web would change in strings of the model, such as "NUL"."""

    def __init__(
        self, args: list[NodeArg], zipped: Mapping[str, list[Any]], flaw: str | None
    ) -> None:
        self.args = args
        self.places = {arg.name: i for i, arg in enumerate(args)}
        self._zipped = zipped
        self._flaw = flaw

    def indices(self, names: Sequence[str] | None) -> list[int]:
        if names and isinstance(names, str):
            raise TypeError(f"output_names must be a list of names: [{names!r}]")
        names = list(names or ())  # once: it may be a generator
        if not names:
            return list(range(len(self.args)))
        try:
            return [self.places[name] for name in names]
        except (KeyError, TypeError):
            wrong = next(name for name in names if name not in self.places)
            if not isinstance(wrong, str):
                raise TypeError(
                    f"names of outputs must be str, not {wrong!r}"
                ) from None
            raise invalid(f"Invalid output name:{wrong}") from None

    def _check_output(self, arg: NodeArg) -> None:
        """NotImplemented unless it is a tensor or a list of dicts."""
        if arg.type == "tensor(string)" and self._flaw:
            raise unsupported(
                f"output {arg.name} may have strings of the model with {self._flaw}, which "
                "onnxruntime-web would change: request the other outputs by name, or change "
                "the model"
            )
        if present(arg).type.startswith("tensor(") or arg.name in self._zipped:
            return
        raise unsupported(
            f"output {arg.name} is {arg.type}, and onnxruntime-web returns only "
            "tensors: request the other outputs by name"
        )

    def plan(self, outputs: list[tuple[int, Any]]) -> Plan:
        """outputs: the number of each with its place, or a Tensor to write to."""
        args = [self.args[i] for i, _ in outputs]
        for arg in args:
            self._check_output(arg)
        unique = dict(outputs)
        order = list(unique)
        return Plan(
            outputs,
            [
                number
                for i, to in unique.items()
                for number in (i, id(to) if isinstance(to, Tensor) else to)
            ],
            [order.index(i) for i, _ in outputs],
            [arg.type == "tensor(string)" for arg in args],
            [self._zipped.get(arg.name) for arg in args],
        )


class Runs(NamedTuple):
    """JavaScript's functions for the runs of one session."""

    start: Any
    start_to_wait: Any
    wait: Any
    done: Any
    take: Any
    strings: Any
    end: Any


def check_can_wait() -> None:
    if not javascript.can_block():
        raise RuntimeError(
            "Python cannot wait for results here (that needs JSPI and a call from "
            "async Python): use `await session.run_async(...)`"
        )


_numbers = count(1)
_as_onnxruntime = translated()


class Pending:
    """A run. JavaScript knows it by a number, which costs Python a tenth of an object,
    until its results are taken or this is collected."""

    _number = 0  # none, if __init__ raised

    def __init__(
        self, runs: Runs, plan: Plan, feeds: list[Any], given: tuple[Any, ...]
    ) -> None:
        """feeds: kept as long as this; given: JavaScript's arguments."""
        self._runs = runs
        self._plan = plan
        self._feeds = feeds
        self._given = given
        self._found: dict[int, Any] = {}
        self._number = next(_numbers)

    def __del__(self) -> None:
        if self._number:
            self._runs.end(self._number)

    def start(self) -> Self:
        with _as_onnxruntime:
            internal.invoke(self._runs.start, self._number, *self._given)
        return self

    def wait(self) -> Self:
        """Starts it, and waits for its results. The first one comes with the wait: a
        call of JavaScript costs Python half of what a small model takes."""
        runs, number = self._runs, self._number
        try:
            with _as_onnxruntime:
                if self._plan.are_strings[0]:
                    internal.invoke(runs.start, number, *self._given)
                    internal.wait_for(runs.wait, number)
                else:
                    self._found[0] = internal.receive_waiting(
                        runs.start_to_wait, number, *self._given
                    )
        except BaseException:
            runs.end(number)  # now: the traceback keeps this
            raise
        return self

    async def later(self) -> None:
        try:
            with _as_onnxruntime:
                await internal.finish(self._runs.done(self._number))
        except BaseException:
            self._runs.end(self._number)
            raise

    async def arrays_later(self) -> list[Array]:
        await self.later()
        return self.arrays()

    def arrays(self) -> list[Array]:
        found = self._taken()
        arrays = [_view(each) if isinstance(each, Tensor) else each for each in found]
        return [
            array if keys is None else _dicts(keys, array)
            for array, keys in zip(arrays, self._plan.zipped, strict=True)
        ]

    def values(self) -> list[OrtValue]:
        if any(keys is not None for keys in self._plan.zipped):
            raise unsupported("lists of dicts cannot be OrtValues here: use run()")
        return [OrtValue(each) for each in self._taken()]

    def _taken(self) -> list[Tensor | Array]:
        """The results; an output that is requested twice is the same object."""
        number, runs, plan, found = self._number, self._runs, self._plan, self._found
        for i, is_strings in zip(plan.order, plan.are_strings, strict=True):
            if i not in found:
                found[i] = (
                    array_of(runs.strings(number, i))
                    if is_strings
                    else internal.receive(runs.take, number, i)
                )
        self._number = 0  # JavaScript has ended it with the last result
        return [found[i] for i in plan.order]


def _view(tensor: Tensor) -> Array:
    """The array over a result; np.from_dlpack costs less than `numpy()`."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError):  # a dtype that NumPy lacks
        return tensor.numpy()


def _dicts(labels: list[Any], rows: Array) -> Any:
    """The output of ZipMap, from rows with one element for each label: its keys are
    sorted, and of equal labels the last one counts."""
    rows = np.atleast_2d(rows)
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise invalid(
            f"Input features_per_batch[{rows.shape[1]}] != number of classlabels"
            f"[{len(labels)}]"
        )
    columns = {label: column for column, label in enumerate(labels)}
    keys = sorted(columns)
    rows = rows[:, [columns[key] for key in keys]]
    return [dict(zip(keys, row, strict=True)) for row in rows.tolist()]


@contextmanager
def bound() -> Iterator[None]:
    """Raises errors of a run with an IOBinding as onnxruntime does."""
    try:
        yield
    except (Fail, InvalidArgument, RuntimeException, NotThere) as error:
        raise RuntimeError(f"Error in execution: {detail_of(error)}") from None
