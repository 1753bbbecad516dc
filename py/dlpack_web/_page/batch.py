"""Recorded calls of kernels in a page: one message runs them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._backends.calls import Call
from .._backends.model.batch import Calls, Recorded, held
from .._backends.model.views import View
from .kernel import Kernel
from .link import Link


@dataclass(frozen=True)
class _Sent(Recorded):
    call: dict[str, Any]


class Batch(Calls[_Sent]):
    def __init__(self, link: Link) -> None:
        super().__init__(link.record)
        self._link = link

    def _prepare(
        self, kernel: Kernel, counts: tuple[int, ...], args: Sequence[Any], place: Call
    ) -> _Sent:
        own, holds = held(args)
        tensors = {id(hold): View(hold) for hold in holds}
        views = [tensors.get(id(each), each) for each in own]
        call = kernel.call(counts, views, self._link.sites.number_of(place))
        parts = [view.part() for view in tensors.values()]
        writes = [part for part in parts if part.slot.buffer.number in call["writes"]]
        return _Sent(kernel, own, counts, place, parts, writes, holds, call)

    def run(self) -> None:
        self._link.op({"op": "run", "calls": [each.call for each in self._calls]})
