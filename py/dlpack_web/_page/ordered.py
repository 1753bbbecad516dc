"""Messages in order, each once, over a channel that may lose, repeat or reorder them
(js/src/widget/ordered.ts)."""

from collections.abc import Callable
from typing import Any

# Messages after a gap that are kept until it is filled.
_MOST_EARLY = 4096


class Ordered:
    """One end. `post` gets what to send: the number of a message, its body, and the
    number up to which those of the other side have arrived."""

    def __init__(self, post: Callable[[dict[str, Any]], object]) -> None:
        self._post = post
        self._last = 0
        self._sent: dict[int, Any] = {}  # bodies that are not acknowledged
        self._got = 0
        self._told = 0  # what was acknowledged of that
        self._early: dict[int, Any] = {}

    def send(self, body: Any) -> None:
        self._last += 1
        number = self._last
        self._sent[number] = body
        self._put(number)

    def receive(self, message: dict[str, Any]) -> list[Any]:
        """The bodies that are next. BufferError: numbers that cannot be."""
        got, number = message.get("got"), message.get("n")
        if type(got) is not int or not 0 <= got <= self._last:
            raise BufferError(f"a message acknowledges {got!r:.50} of {self._last}")
        for known in [*self._sent]:
            if known > got:
                break
            del self._sent[known]
        if number is None:
            return []
        if type(number) is not int or not 0 < number <= self._got + _MOST_EARLY:
            raise BufferError(f"message {number!r:.50} after {self._got}")
        if number <= self._got:
            self._told = -1  # the acknowledgement was lost
            return []
        self._early[number] = message.get("do")
        bodies = []
        while self._got + 1 in self._early:
            self._got += 1
            bodies.append(self._early.pop(self._got))
        return bodies

    def acknowledge(self) -> None:
        """Acknowledges what has arrived, unless that was done."""
        if self._told != self._got:
            self._told = self._got
            self._post({"got": self._got})

    def resend(self) -> None:
        """Sends again what was not acknowledged."""
        for number in [*self._sent]:
            self._put(number)

    def _put(self, number: int) -> None:
        self._told = self._got
        self._post({"n": number, "got": self._got, "do": self._sent[number]})
