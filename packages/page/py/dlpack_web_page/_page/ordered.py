"""Messages in order, each once, over a channel that may lose, repeat or reorder them
(js/src/widget/ordered.ts)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

# Messages after a gap that are kept until it is filled, and their characters as JSON.
_MOST_EARLY, _MOST_EARLY_CHARACTERS = 4096, 4 << 20


class Ordered:
    """One end. `post` gets what to send: the number of a message, its body, and the
    number up to which those of the other side have arrived. An interrupt leaves a message
    that will be sent, or none."""

    def __init__(self, post: Callable[[dict[str, Any]], object]) -> None:
        self._post = post
        self._last = self._posted = 0
        self._sent: dict[int, Any] = {}  # bodies that are not acknowledged
        self._got = 0
        self._told = 0  # what was acknowledged of that
        self._early: dict[int, tuple[Any, int]] = {}  # bodies, and their characters

    def send(self, body: Any) -> None:
        self.add(body, [], 0)
        self.flush()

    def add(self, body: Any, items: list[Any], count: int) -> None:
        """Records a message, and removes the first items of a list, which it is about."""
        number = self._last + 1
        # One statement: an interrupt comes before all of it, or after.
        self._sent[number], self._last, items[:count] = body, number, ()

    def flush(self) -> None:
        """Sends recorded messages that an exception or interrupt kept from it."""
        while self._posted < self._last:
            number = self._posted + 1
            if number in self._sent:
                self._put(number)
            self._posted = number

    @property
    def is_open(self) -> bool:
        """Whether something is not acknowledged."""
        return bool(self._sent)

    def knows(self, body: Any) -> bool:
        """Whether this message was recorded, and is not acknowledged."""
        return any(each is body for each in [*self._sent.values()])

    def withdraw(self, body: Any, instead: Any) -> None:
        """Puts another message in the place of one that may not have been sent."""
        for number, each in [*self._sent.items()]:
            if each is body:
                self._sent[number] = instead

    def receive(self, message: dict[str, Any]) -> Iterator[Any]:
        """The bodies that are next. BufferError: numbers that cannot be, or more than is
        kept after a gap: then nothing changes."""
        got, number = message.get("got"), message.get("n")
        if type(got) is not int or not 0 <= got <= self._last:
            raise BufferError(f"a message acknowledges {got!r:.50} of {self._last}")
        for sent in [*self._sent]:
            if sent > got:
                break
            self._sent.pop(sent, None)
        if number is None:
            return self.next()
        if type(number) is not int or not 0 < number <= self._got + _MOST_EARLY:
            raise BufferError(f"message {number!r:.50} after {self._got}")
        if number <= self._got:
            self._told = -1  # the acknowledgement was lost
        else:
            self._keep(number, message.get("do"))
        return self.next()

    def next(self) -> Iterator[Any]:
        """The bodies that are next. Each is done when the following one is asked for."""
        self._early.pop(self._got, None)  # which an interrupt may have prevented
        while (number := self._got + 1) in self._early:
            yield self._early[number][0]
            self._got = number
            self._early.pop(number, None)

    def _keep(self, number: int, body: Any) -> None:
        if number in self._early:
            return
        size = _size_of(body) if number > self._got + 1 else 0
        if size > 0:
            kept = sum(size for _, size in self._early.values())
            if kept + size > _MOST_EARLY_CHARACTERS:
                raise BufferError(
                    f"message {number} came before {self._got + 1}, and more than "
                    f"{_MOST_EARLY_CHARACTERS} characters would be kept: send it again"
                )
        self._early[number] = body, size

    def acknowledge(self) -> None:
        """Acknowledges what has arrived, unless that was done."""
        if self._told != self._got:
            self._told = self._got
            self._post({"got": self._got})

    def resend(self) -> None:
        """Sends again what was not acknowledged."""
        for number in [*self._sent]:
            self._put(number)
        self._posted = self._last

    def clear(self) -> None:
        """Forgets all: the other side is gone."""
        self._sent.clear()
        self._early.clear()

    def _put(self, number: int) -> None:
        self._told = self._got
        self._post({"n": number, "got": self._got, "do": self._sent[number]})


def _size_of(body: Any) -> int:
    try:
        return len(json.dumps(body))
    except (TypeError, ValueError, RecursionError):
        return _MOST_EARLY_CHARACTERS + 1
