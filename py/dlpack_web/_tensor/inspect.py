"""Memory in use: the living tensors with their holders, and GPU devices."""

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from traceback import walk_stack
from types import FrameType, ModuleType
from typing import Any

from .. import _core
from .._backends import is_loaded, stats
from .._core import ReleasedError
from .._layout.text import type_of
from .show import cell, escape, memory_of, size_of
from .tensor import Tensor

CO_OPTIMIZED = 1  # flag of code objects: local variables are not in a dict
DEPTH = 3  # levels of nested containers that are searched


@dataclass(frozen=True)
class Held:
    """A living Tensor and its holders. It does not hold the Tensor itself."""

    #: "x", "layers[0]", "Out[3]"; of a Tensor without a name "Model.weights", "a list", …
    holders: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    device: str
    nbytes: int
    #: The owner of the memory: "NumPy", "dlpack_web", "another DLPack producer", …
    memory_of: str
    ref: "weakref.ref[Tensor]" = field(repr=False)

    def __str__(self) -> str:
        what = f"{self.dtype} {self.shape} on {self.device}, {size_of(self.nbytes)}"
        lent = ", NumPy's memory" if self.memory_of == "NumPy" else ""
        return f"{', '.join(self.holders) or 'nobody'}: {what}{lent}"


@dataclass(frozen=True)
class Report:
    """The result of `inspect()`; notebooks show it as tables."""

    #: The Tensor objects that are not released.
    tensors: list[Held]
    #: Number of holds on memory in the C core: one for each Tensor, and others.
    live: int
    #: The others: arrays and capsules made from tensors, and JavaScript's tensors.
    elsewhere: int
    #: Rows of webgpu.stats(), one for each device; none before JavaScript is needed.
    devices: list[dict[str, Any]]

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes of the Tensors, by device; views of the same memory are counted
        each."""
        total: dict[str, int] = {}
        for row in self.tensors:
            total[row.device] = total.get(row.device, 0) + row.nbytes
        return total

    def since(self, earlier: "Report") -> "Report":
        """The Tensors that are new since an earlier report: those that a cell left
        behind."""
        known = {id(row.ref) for row in earlier.tensors}  # one for each living Tensor
        return replace(
            self,
            tensors=[row for row in self.tensors if id(row.ref) not in known],
            live=max(0, self.live - earlier.live),
            elsewhere=max(0, self.elsewhere - earlier.elsewhere),
            devices=[],
        )

    def __repr__(self) -> str:
        lines = [self._summary(), *(f"  {row}" for row in self.tensors)]
        for row in self.devices:
            facts = ", ".join(f"{key} {row[key]}" for key in _facts_of(row))
            lines.append(f"  {row['device']}: {facts}")
        return "\n".join(lines)

    def _summary(self) -> str:
        tensors = len(self.tensors)
        count = f"{tensors} tensor{'' if tensors == 1 else 's'}"
        held = " and ".join(
            f"{size_of(n)} on {name}" for name, n in self.nbytes.items()
        )
        more = f"{self.elsewhere} held by arrays, capsules and JavaScript"
        return f"{count} alive{f' ({held})' if held else ''}, {more}"

    def _repr_html_(self) -> str:
        html = f"<div><p>{escape(self._summary())}</p>"
        if self.tensors:
            rows = [
                [
                    ", ".join(t.holders),
                    t.dtype,
                    t.shape,
                    t.device,
                    size_of(t.nbytes),
                    t.memory_of.partition(",")[0],
                ]
                for t in self.tensors
            ]
            head = ["held by", "dtype", "shape", "device", "size", "memory of"]
            html += _table(head, rows)
        if self.devices:
            numbers = ("buffers", "created", "reused", "copies", "taken")
            facts = [
                [
                    key,
                    *(
                        row[key] if key in numbers else size_of(row[key])
                        for row in self.devices
                    ),
                ]
                for key in _facts_of(self.devices[0])
            ]
            html += _table(["device", *(row["device"] for row in self.devices)], facts)
        return f"{html}</div>"


def _facts_of(row: dict[str, Any]) -> list[str]:
    return [key for key in row if key not in ("device", "lost")]


def _table(head: list[str], rows: list[list[Any]]) -> str:
    def line(tag: str, cells: list[Any]) -> str:
        return f"<tr>{''.join(cell(tag, escape(str(each))) for each in cells)}</tr>"

    return (
        f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"
    )


def inspect(namespace: Mapping[str, Any] | None = None) -> Report:
    """The living Tensors with their holders, and the memory of each GPU device.

    Parameters
    ----------
    namespace : mapping, optional
        Where to look for names; default: the variables of the notebook (with its Out), or of
        `__main__`. Lists, tuples, sets and dicts in it are searched.

    Returns
    -------
    Report
        `report.since(earlier)` has the tensors made since then that are still alive.

    Examples
    --------
    >>> x = dlw.empty(3)
    >>> print(dlw.inspect({"x": x}).tensors[0])
    x: float32 (3,) on cpu, 12 B
    """
    if namespace is None:
        namespace = _variables()
    if not isinstance(namespace, Mapping):
        raise TypeError(
            "inspect() takes nothing, or a dict of variables, not "
            f"{type_of(namespace)}: print(t) shows a Tensor"
        )
    names: dict[int, list[str]] = {}
    for name, tensor in _tensors(namespace):
        names.setdefault(id(tensor), []).append(name)
    calling = [frame for frame, _ in walk_stack(sys._getframe(1))]
    alive: list[Any] = _core._alive()
    alive.sort(key=lambda tensor: id(tensor) not in names)  # those with names first
    rows = []
    for tensor in alive:
        holders = names.get(id(tensor)) or _holders(tensor, calling, alive)
        try:
            rows.append(_held(tensor, dict.fromkeys(holders)))
        except ReleasedError:  # released by another thread meanwhile
            continue
    live = _core.live_tensors()
    devices = stats() if is_loaded() else []
    return Report(rows, live, max(0, live - len(rows)), devices)


def _held(tensor: Tensor, holders: Iterable[str]) -> Held:
    return Held(
        tuple(holders),
        tensor.dtype,
        tensor.shape,
        str(tensor.device),
        tensor.nbytes,
        "NumPy" if (owner := memory_of(tensor)).startswith("numpy.") else owner,
        weakref.ref(tensor),
    )


def _holders(
    tensor: Tensor, calling: list[FrameType], but: list[Tensor]
) -> Iterator[str]:
    """Holders of a Tensor that no name leads to; `but` is our own list."""
    for frame in calling:  # the garbage collector does not track these
        yield from _locals(frame, tensor)
    for holder in _core._referrers(tensor):
        paused = getattr(holder, "cr_frame", None) or getattr(holder, "gi_frame", None)
        if paused is not None:
            yield from _locals(paused, tensor)
        elif holder is tuple or holder is frozenset:
            yield f"a {holder.__name__}"
        elif isinstance(holder, list | set | dict):
            if holder is not but:
                yield _owner(holder, tensor)
        elif not isinstance(holder, FrameType):
            yield _attribute(holder, tensor)


def _locals(frame: FrameType, tensor: Tensor) -> Iterator[str]:
    ours = frame.f_code.co_filename == __file__
    if ours or frame.f_locals is frame.f_globals:
        return
    variables = frame.f_locals
    names = [name for name, value in variables.items() if value is tensor]
    if sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED:
        variables.clear()  # the frame would keep this copy, and all values in it
    for name in names:
        yield f"{name} in {frame.f_code.co_name}()"


def _owner(container: Any, tensor: Tensor) -> str:
    """A container's name: of the object whose attributes it is, or else its type."""
    if isinstance(container, dict):
        for each in _core._referrers(container):
            if getattr(each, "__dict__", None) is container:
                return _attribute(each, tensor)
    return f"a {type(container).__name__}"


def _attribute(holder: Any, tensor: Tensor) -> str:
    name = holder.__name__ if isinstance(holder, ModuleType) else type(holder).__name__
    try:
        attributes = vars(holder)
    except TypeError:
        return "an array's buffer" if name == "managedbuffer" else f"a {name}"
    return next((f"{name}.{key}" for key, x in attributes.items() if x is tensor), name)


def _variables() -> Mapping[str, Any]:
    """The user's variables: IPython adds `_`, `_3` and others for values in Out."""
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
