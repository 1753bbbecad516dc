"""Compute shaders in a page, and batches of their calls: checked here, run there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._backends.calls import Call
from .._backends.checks import Arguments, Counts, Key, ShaderSource
from .._backends.model import kernel
from .._backends.model.arguments import bind, check_aliasing, pack_number
from .._backends.model.batch import Calls, Recorded, held
from .._backends.model.faults import NotRun
from .._backends.model.kernel import views_of
from .._backends.model.views import Part, View
from .record import PageRecord


def fact_of(view: View) -> dict[str, Any]:
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


class Kernel(kernel.Kernel):
    _record: PageRecord

    def _compile(self, source: ShaderSource) -> None:
        link = self._link = self._record.link
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

    def run(self, counts: Counts, args: Arguments, key: Key = ()) -> None:
        self._link.op({"op": "run", "calls": [self._call(counts, args)]})

    async def time(self, counts: Counts, args: Arguments) -> float:
        self._record.check_alive()
        if "timestamp-query" not in self._record.features:
            raise BufferError(
                f"{self._record} cannot measure: its adapter lacks the feature "
                '"timestamp-query"'
            )
        call = self._call(counts, args)
        return float(await self._link.answer("time", call=call))

    def _call(self, counts: Counts, args: Arguments) -> dict[str, Any]:
        return self.call(counts, views_of(args), self._link.sites.here())

    def call(self, counts: Counts, views: Sequence[Any], site: int) -> dict[str, Any]:
        """A call that passed all checks, as the page runs it."""
        self._record.check_alive()
        groups = self.check_call(counts, views)
        bound = {}
        for i, each in enumerate(views):
            declared = self.declared(i)
            if isinstance(each, View):
                bound[i] = bind(self._record, each, i, declared, self._check)
            else:
                pack_number(each, i, declared)
        check_aliasing(views, bound)
        facts = [
            fact_of(each) if isinstance(each, View) else _number(each) for each in views
        ]
        writes = [one.slot.buffer.number for one in bound.values() if one.written]
        return {
            "kernel": self.number,
            "args": facts,
            "groups": list(groups),
            "writes": writes,
            "site": site,
        }


@dataclass(frozen=True)
class _Sent(Recorded):
    call: dict[str, Any]


class Batch(Calls[_Sent]):
    """One message runs all calls."""

    _record: PageRecord

    def _prepare(
        self, kernel: Kernel, counts: Counts, args: Sequence[Any], place: Call
    ) -> _Sent:
        own, holds = held(args)
        tensors = {id(hold): View(hold) for hold in holds}
        views = [tensors.get(id(each), each) for each in own]
        call = kernel.call(counts, views, self._record.link.sites.number_of(place))
        parts = [view.part() for view in tensors.values()]
        writes = [part for part in parts if part.slot.buffer.number in call["writes"]]
        return _Sent(kernel, own, counts, place, parts, writes, holds, call)

    def run(self) -> None:
        calls, first = list(self._calls), dict[Part, int]()
        for part in (part for each in calls for part in each.writes):
            fault = part.fault()
            if isinstance(fault, NotRun) and fault.ends(part.slot.faults, self.mark):
                first[part] = part.slot.buffer.number
        run = {"op": "run", "calls": [each.call for each in calls]}
        self._record.link.op(run | {"first": [*set(first.values())]})
        for slot, start, end in first:
            slot.faults.note(start, end, None)


def _number(value: float) -> str:
    """As JavaScript's Number() reads it: JSON has no infinities."""
    text = repr(float(value))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
