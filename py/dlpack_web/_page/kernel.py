"""Compute shaders in a page: checked here, run there."""

from collections.abc import Sequence
from typing import Any

from .._backends.checks import Arguments
from .._backends.model import kernel
from .._backends.model.arguments import bind, check_apart, pack_number
from .._backends.model.kernel import views_of
from .._backends.model.views import View
from .link import Link


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
    """BackendKernel of ../_backends/__init__.py."""

    def __init__(
        self,
        link: Link,
        number: int,
        wgsl: str,
        entry: str,
        label: str,
        check: bool,
        parts: Sequence[tuple[str, int, int]],
    ) -> None:
        self._link, self.number = link, number
        super().__init__(link.record, wgsl, entry, label, check, parts)

    def _compile(
        self, wgsl: str, entry: str, parts: Sequence[tuple[str, int, int]]
    ) -> None:
        link = self._link
        op = {
            "op": "kernel",
            "id": self.number,
            "wgsl": wgsl,
            "entry": entry,
            "label": self.label,
            "check": self._check,
            "parts": [list(part) for part in parts],
            "site": link.sites.here(),
        }
        self._unmade = [op]
        link.make(op, self._unmade)

    def __del__(self) -> None:
        if "_unmade" in self.__dict__:
            self._link.let_go("kernel", self.number, self._unmade)

    async def ready(self) -> None:
        await self._link.answer("ready", kernel=self.number)

    def run(self, counts: tuple[int, ...], args: Arguments) -> None:
        self._link.op({"op": "run", "calls": [self._call(counts, args)]})

    async def time(self, counts: tuple[int, ...], args: Arguments) -> float:
        self._record.check_alive()
        if "timestamp-query" not in self._record.features:
            raise BufferError(
                f"{self._record} cannot measure: its adapter lacks the feature "
                '"timestamp-query"'
            )
        call = self._call(counts, args)
        return float(await self._link.answer("time", call=call))

    def _call(self, counts: tuple[int, ...], args: Arguments) -> dict[str, Any]:
        return self.call(counts, views_of(args), self._link.sites.here())

    def call(
        self, counts: tuple[int, ...], views: Sequence[Any], site: int
    ) -> dict[str, Any]:
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
        check_apart(views, bound)
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


def _number(value: float) -> str:
    """As JavaScript's Number() reads it: JSON has no infinities."""
    text = repr(float(value))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
