"""Outputs of a session: which of them a run returns, and where each is stored."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._tensor.tensor import Tensor
from ._feeds import NodeArg
from ._state import NotImplemented as NotThere
from ._state import invalid, worded

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
        """NotImplemented unless it is a tensor or a list of dicts, with the model's
        strings."""
        if arg.type == "tensor(string)" and self._flaw:
            raise worded(
                NotThere,
                f"output {arg.name} may have strings of the model with {self._flaw}, which "
                "onnxruntime-web would change: request the other outputs by name, or change "
                "the model",
            )
        if arg.type.startswith("tensor(") or arg.name in self._zipped:
            return
        raise worded(
            NotThere,
            f"output {arg.name} is {arg.type}, and onnxruntime-web returns only "
            "tensors: request the other outputs by name",
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
