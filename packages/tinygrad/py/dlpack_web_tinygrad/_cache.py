"""What tinygrad has generated, cached by the browser for the next visit.

tinygrad has its kernels and schedules in two dicts, by hashes of what they are made of.
They are written and read as flat lists of UOps, of which each names its sources by
their positions. All else that they depend on is hashed to the name of a folder, and an
entry is named by the hash of both: what was damaged, or is of another version or
device, is ignored.
"""

import asyncio
import io
import os
import pickle
import sys
import zlib
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from typing import Any

from tinygrad.codegen import to_program_cache as programs
from tinygrad.helpers import ContextVar
from tinygrad.schedule import schedule_cache as schedules
from tinygrad.uop.ops import UOp

from dlpack_web.backends import default

#: Seconds without another kernel, after which those that are new are kept.
QUIET = 2.0


class Cache:
    """The kernels of a renderer on one kind of device."""

    def __init__(self, renderer: type, facts: Any) -> None:
        self.facts = facts
        self._renderer = renderer
        self._folder = _folder(facts)
        self._known: set[Any] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        # tinygrad would find those of a device with other limits.
        for key in [key for key in programs if key[1] is renderer]:
            del programs[key]

    def load(self) -> None:
        """At once if Python can wait, else while it waits for something else."""
        if self._folder is None:
            return
        if default().can_block():
            self._take(default().block_on(default().cached(self._folder)))
        else:
            self._task = asyncio.ensure_future(self._load_later(self._folder))

    async def _load_later(self, folder: str) -> None:
        self._take(await default().cached(folder))

    def _take(self, found: dict[str, bytes] | None) -> None:
        if found is None:
            self._folder = None
            return
        for name, data in found.items():
            if name != self._name(data):
                continue
            with suppress(pickle.UnpicklingError):
                made, planned = unpack(data)
                ours = {(key[0], self._renderer, *key[1:]): made[key] for key in made}
                programs.update(ours)
                schedules.update(planned)
                self._known.update(ours, planned)

    def _name(self, data: bytes) -> str:
        return sha256(f"{self._folder}".encode() + data).hexdigest()

    def soon(self) -> None:
        """Keeps what is new, when no more comes."""
        if self._folder is not None and sys.platform == "emscripten":
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_event_loop().call_later(QUIET, self.save)

    def save(self) -> None:
        made = {
            (key[0], *key[2:]): program
            for key, program in programs.items()
            if key[1] is self._renderer and key not in self._known
        }
        planned = {key: schedules[key] for key in schedules.keys() - self._known}
        self._known.update(programs, schedules)
        # Arguments may be anything, such as functions.
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            data = pack(made, planned)
            caching = default().cache(f"{self._folder}", self._name(data), data)
            self._task = asyncio.ensure_future(caching)


def _folder(facts: Any) -> str | None:
    """Names all that kernels depend on besides their keys; None: that is not known."""
    try:
        files = [
            metadata.distribution(name).read_text("RECORD")
            for name in ("tinygrad", "dlpack-web", "dlpack-web-tinygrad")
        ]
    except metadata.PackageNotFoundError:
        return None
    settings = {name: str(var.value) for name, var in ContextVar._cache.items()}
    about = (
        sys.version,
        files,
        facts,
        sorted(settings.items()),
        sorted(os.environ.items()),
    )
    return f"tinygrad/{sha256(repr(about).encode()).hexdigest()}"


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = None
        if module.startswith("tinygrad."):
            found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is not a class of tinygrad")
        return found


def pack(made: dict[Any, UOp], planned: dict[bytes, UOp]) -> bytes:
    order: dict[UOp, int] = {}
    for root in (*made.values(), *planned.values()):
        for uop in root.toposort():
            order.setdefault(uop, len(order))
    rows = [(u.op, u.dtype, [order[s] for s in u.src], u.arg, u.tag) for u in order]
    roots = [{key: order[uop] for key, uop in each.items()} for each in (made, planned)]
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 5)
    # UOps in arguments, without the memory that they may stand for.
    pickler.dispatch_table = {
        UOp: lambda u: (UOp, (u.op, u.dtype, u.src, u.arg, u.tag))
    }
    pickler.dump((rows, *roots))
    return zlib.compress(out.getvalue())


def unpack(data: bytes) -> tuple[dict[Any, UOp], dict[bytes, UOp]]:
    rows, made, planned = _Unpickler(io.BytesIO(zlib.decompress(data))).load()
    uops: list[UOp] = []
    for op, dtype, src, arg, tag in rows:
        uops.append(UOp(op, dtype, tuple(uops[i] for i in src), arg, tag))
    return (
        {key: uops[i] for key, i in made.items()},
        {key: uops[i] for key, i in planned.items()},
    )
