"""Compute shaders in a page, and batches of their calls: checked here, run there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlpack_web import Tensor, backends
from dlpack_web.backends import Calls, Recorded, ShaderSource, View
from dlpack_web.internal import Call

from .device import PageDevice

type Arguments = tuple[Tensor | float, ...]
type Counts = tuple[int, ...]


def describe(view: View) -> dict[str, Any]:
    """A view of a buffer, as the page makes it."""
    return {
        "id": view.slot.buffer.number,
        "offset": view.start,
        "shape": list(view.shape),
        "strides": None if view.strides is None else list(view.strides),
        "dtype": str(view.dtype),
        "padded": view.padded,
        "readOnly": view.read_only,
    }


class Kernel(backends.Kernel):
    _device: PageDevice

    def _compile(self, source: ShaderSource) -> None:
        link = self._link = self._device.link
        self.number = next(link.numbers)
        op = {
            "op": "kernel",
            "id": self.number,
            **source._asdict(),
            "parts": [list(part) for part in source.parts],
            "params": [],
            "site": link.sites.here(),
        }
        self._unmade = [op]
        link.make(op, self._unmade)

    def __del__(self) -> None:
        if "_unmade" in self.__dict__:
            self._link.let_go("kernel", self.number, self._unmade)

    async def ready(self) -> None:
        await self._link.answer("ready", kernel=self.number)

    def run(self, counts: Counts, args: Arguments, key: Any = ()) -> None:
        self._link.op({"op": "run", "calls": [self._call(counts, args)]})

    async def time(self, counts: Counts, args: Arguments) -> float:
        self._device.check_alive()
        if "timestamp-query" not in self._device.features:
            raise BufferError(
                f"{self._device} cannot measure: its adapter lacks the feature "
                '"timestamp-query"'
            )
        call = self._call(counts, args)
        return float(await self._link.answer("time", call=call))

    def _call(self, counts: Counts, args: Arguments) -> dict[str, Any]:
        return self.call(counts, View.of(args), self._link.sites.here())

    def call(self, counts: Counts, views: Sequence[Any], site: int) -> dict[str, Any]:
        """A call that passed all checks, as the page runs it."""
        groups, bound, _ = self.check(counts, views)
        described = [
            describe(each) if isinstance(each, View) else _number(each)
            for each in views
        ]
        return {
            "kernel": self.number,
            "args": described,
            "groups": list(groups),
            "writes": [x.slot.buffer.number for x in bound.values() if x.written],
            "site": site,
        }


@dataclass(frozen=True)
class _Sent(Recorded):
    call: dict[str, Any]


class Batch(Calls[_Sent]):
    """One message runs all calls."""

    _device: PageDevice

    def _prepare(
        self, kernel: Kernel, counts: Counts, args: Sequence[Any], place: Call
    ) -> _Sent:
        own, holds = self.held(args)
        tensors = {id(hold): View(hold) for hold in holds}
        views = [tensors.get(id(each), each) for each in own]
        call = kernel.call(counts, views, self._device.link.sites.number_of(place))
        parts = [view.part() for view in tensors.values()]
        writes = [part for part in parts if part.slot.buffer.number in call["writes"]]
        return _Sent(kernel, own, counts, place, parts, writes, holds, call)

    def run(self) -> None:
        calls = list(self._calls)
        parts = dict.fromkeys(part for each in calls for part in each.writes)
        first = {part: part.slot.buffer.number for part in parts if self.computes(part)}
        run = {"op": "run", "calls": [each.call for each in calls]}
        self._device.link.op(run | {"first": [*set(first.values())]})
        for slot, start, end in first:
            slot.faults.note(start, end, None)


def _number(value: float) -> str:
    """As JavaScript's Number() reads it: JSON has no infinities."""
    text = repr(float(value))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
