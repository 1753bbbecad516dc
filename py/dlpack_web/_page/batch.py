"""Recorded calls of kernels in a page: one message runs them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._backends.checks import Arguments
from .._backends.desktop.batch import meet, updated
from .._backends.desktop.buffers import View
from .._backends.desktop.work import Part
from .kernel import Kernel
from .link import Link


@dataclass(frozen=True)
class _Recorded:
    kernel: Kernel
    counts: tuple[int, ...]
    #: Tensors, of which the batch has its own holds, and numbers.
    args: tuple[Any, ...]
    call: dict[str, Any]
    reads: tuple[Part, ...]
    writes: tuple[Part, ...]

    def release(self) -> None:
        for arg in self.args:
            if isinstance(arg, _core.Tensor):
                arg.release()


class Batch:
    """BackendBatch of ../_backends/__init__.py."""

    def __init__(self, link: Link) -> None:
        link.record.check_alive()
        self._link = link
        self._calls: tuple[_Recorded, ...] = ()

    def add(
        self,
        kernel: Kernel,
        counts: tuple[int, ...],
        args: Arguments,
    ) -> None:
        self._calls = (*self._calls, _recorded(kernel, counts, args))

    def update(
        self,
        index: int,
        counts: tuple[int, ...],
        places: tuple[int, ...],
        args: Arguments,
    ) -> None:
        self._link.record.check_alive()
        old = self._calls[index]
        merged = updated(old.kernel, old.args, places, args)
        new = _recorded(old.kernel, counts if counts[0] else old.counts, merged)
        new.call["site"] = old.call["site"]
        self._calls = tuple(new if one is old else one for one in self._calls)
        old.release()

    def uses(self, tensor: _core.Tensor, writing: bool) -> bool:
        part = View(tensor).part()
        return any(
            meet(part, other)
            for each in self._calls
            for other in ((*each.reads, *each.writes) if writing else each.writes)
        )

    def run(self) -> None:
        self._link.op({"op": "run", "calls": [each.call for each in self._calls]})

    def release(self) -> None:
        calls, self._calls = self._calls, ()
        for each in calls:
            each.release()

    def __len__(self) -> int:
        return len(self._calls)


def _recorded(
    kernel: Kernel, counts: tuple[int, ...], given: Sequence[Any]
) -> _Recorded:
    args = tuple(
        _core.from_dlpack(x) if isinstance(x, _core.Tensor) else x for x in given
    )
    call = kernel.call(counts, args)
    views = [View(x) for x in args if isinstance(x, _core.Tensor)]
    writes = tuple(v.part() for v in views if v.slot.buffer.number in call["writes"])
    return _Recorded(kernel, counts, args, call, tuple(v.part() for v in views), writes)
