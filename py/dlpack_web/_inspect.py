"""Where memory is: the tensors that names stand for, and what each GPU device holds."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from . import _browser, _core
from ._show import size_of
from ._tensor import Tensor

DEPTH = 3  # containers inside containers that are looked into
DEVICE_COLUMNS = (
    "device",
    "buffers",
    "bytes",
    "idleBytes",
    "created",
    "reused",
    "up",
    "down",
    "copied",
)


@dataclass
class Report:
    """What `inspect()` found; notebooks show it as tables."""

    #: By each name: the Tensors that are not released. "x", "Out[3]", "layers[0]", …
    tensors: dict[str, Tensor]
    #: Number of tensors alive in the C core: each holds some memory.
    live: int
    #: Those of them that no name was found for: arrays and capsules made from tensors,
    #: JavaScript's, and Tensors inside of other objects.
    elsewhere: int
    #: As webgpu.stats(): one row for each device; none without a browser.
    devices: list[dict[str, Any]] = field(default_factory=list)

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes of the named tensors, by device; views of the same memory count each."""
        total: dict[str, int] = {}
        for tensor in {id(t): t for t in self.tensors.values()}.values():
            device = str(tensor.device)
            total[device] = total.get(device, 0) + tensor.nbytes
        return total

    def __repr__(self) -> str:
        lines = [f"{self.live} tensors alive, {self.elsewhere} of them without a name"]
        lines += [f"  {name}: {tensor!r}" for name, tensor in self.tensors.items()]
        for row in self.devices:
            facts = ", ".join(f"{key} {row[key]}" for key in DEVICE_COLUMNS[1:])
            lines.append(f"  {row['device']}: {facts}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tensors = [
            [name, t.dtype, t.shape, t.device, size_of(t.nbytes)]
            for name, t in self.tensors.items()
            if not t.released
        ]
        html = f"<p>{escape(repr(self).splitlines()[0])}</p>"
        if tensors:
            html += _table(["name", "dtype", "shape", "device", "size"], tensors)
        if self.devices:
            counts = ("device", "buffers", "created", "reused")
            rows = [
                [
                    row[key] if key in counts else size_of(row[key])
                    for key in DEVICE_COLUMNS
                ]
                for row in self.devices
            ]
            html += _table(list(DEVICE_COLUMNS), rows)
        return html


def _table(head: list[str], rows: list[list[Any]]) -> str:
    def line(tag: str, cells: list[Any]) -> str:
        texts = (f"<{tag} align='left'>{escape(str(cell))}</{tag}>" for cell in cells)
        return f"<tr>{''.join(texts)}</tr>"

    return (
        f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"
    )


def inspect(namespace: Mapping[str, Any] | None = None) -> Report:
    """The tensors that are alive, by name, and what each GPU device holds.

    namespace: where to look for them; default the variables of the notebook (with its
    Out), or of `__main__`. Lists, tuples, sets and dicts in there are looked into.
    """
    if namespace is None:
        namespace = _variables()
    found = dict(_tensors(namespace))
    live = _core.live_tensors()
    distinct = len({id(tensor) for tensor in found.values()})
    devices = _browser.stats() if _browser.IN_BROWSER else []
    return Report(found, live, max(0, live - distinct), devices)


def _variables() -> Mapping[str, Any]:
    """Those that a person made: IPython adds `_`, `_3` and others for what is in Out."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    everything = shell.user_ns if shell else vars(sys.modules["__main__"])
    return {
        name: value for name, value in everything.items() if not name.startswith("_")
    }


def _tensors(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    seen: set[int] = set()

    def look(name: str, value: Any, depth: int) -> Iterator[tuple[str, Tensor]]:
        if isinstance(value, Tensor):
            if not value.released:
                yield name, value
            return
        if not isinstance(value, list | tuple | dict | set | frozenset) or depth == 0:
            return
        if id(value) in seen:
            return
        seen.add(id(value))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in list(pairs):
            yield from look(f"{name}[{key!r}]", each, depth - 1)

    for name, value in list(namespace.items()):
        yield from look(name, value, DEPTH)
