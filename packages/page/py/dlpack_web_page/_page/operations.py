"""Operations of a page, in order: the part of a link (link.py) that records them."""

import time
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any

from .device import PageDevice
from .locked import Locked, locked
from .ordered import Ordered
from .replies import Replies, Reply, Sites

_LATER_S = 0.02  # in which what Python collects is gathered
_NOTHING = {"op": "free", "what": []}


class Operations(Locked):
    """post: sends a numbered message. device: the page's."""

    def __init__(self, post: Any, device: PageDevice) -> None:
        super().__init__()
        self.device = device
        #: By which both sides know tensors, kernels and elements.
        self.numbers = count(1)
        self.sites = Sites()
        self._replies = Replies()
        self.orders = Ordered(post)
        #: What Python has collected: (kind, number); and what wakes the thread for it.
        self._gone: list[tuple[str, int]] = []
        self._wake: SimpleQueue[None] = SimpleQueue()

    def _begin(self) -> None:
        """DeviceLostError if the page is gone."""
        self.device.check_alive()
        self._let_go()

    @locked
    def op(self, op: dict[str, Any]) -> None:
        """An operation on the page's tensors, after all earlier ones."""
        self._begin()
        self._do(op)

    @locked
    def make(self, op: dict[str, Any], unmade: list[Any]) -> None:
        """An operation that makes something. It removes the first item of a list as soon
        as the page will do it: before that, `let_go` appends what is to be freed."""
        self._begin()
        self.orders.add(op, unmade, 1)
        self._gone += unmade
        try:
            self.orders.flush()
        except Exception:  # the channel's: perhaps it cannot carry this one
            self.orders.withdraw(op, _NOTHING)
            raise

    @locked
    def ask(self, reply: Reply, op: dict[str, Any]) -> None:
        """An operation that the page answers."""
        self._begin()
        self._replies.add(reply)
        self._do({**op, "reply": reply.number})

    def _do(self, op: dict[str, Any]) -> None:
        try:
            self.orders.send(op)
        except Exception:  # the channel's: the caller may try again
            self.orders.withdraw(op, _NOTHING)
            raise

    def let_go(self, kind: str, number: int, unmade: list[Any]) -> None:
        """A tensor or kernel was collected, at any place and on any thread."""
        if self.device.lost is None:
            (unmade or self._gone).append((kind, number))
        self._wake.put(None)

    def _tidy(self) -> None:
        """A thread: tells the page what Python has collected, and what has arrived."""
        while self.device.lost is None:
            self._wake.get()
            time.sleep(_LATER_S)
            while not self._wake.empty():
                self._wake.get()
            with suppress(Exception):  # the next operation tries again
                self._tell()

    @locked
    def _tell(self) -> None:
        if self.device.lost is None:
            self._let_go()
            self.orders.flush()
            self.orders.acknowledge()

    def _let_go(self) -> None:
        found = self._gone[:]
        if found:
            op = {"op": "free", "what": found}
            self.orders.add(op, self._gone, len(found))
            self.orders.flush()
