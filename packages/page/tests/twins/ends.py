"""Random steps of an end of the wire: what the application does, and frames of other sides."""

import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "wire"))
from player import Player

# How often each of its methods is called.
WEIGHTS = {"send": 6, "write": 12, "free": 2, "tick": 6, "connect": 2, "has": 2}
WEIGHTS |= {"in_hello": 6, "in_ack": 30, "in_wrong": 6, "in_refuse": 2}
WEIGHTS |= {"in_piece": 40, "in_free": 3}


class Script:
    """What may come next."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.below, self.session, self.now = chance.randrange, 1, 0
        self.sizes: list[int] = []  # of what it sends, by id
        self.theirs: list[tuple[str, int, list[tuple[int, int]]]] = []

    def pick(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def range_in(self, begin: int, end: int) -> tuple[int, int]:
        first = begin + self.below(end + 1 - begin)
        return first, first + self.below(end + 1 - first)

    def wire(self) -> str:
        piece, limit = self.pick(65536, 65636, 131072), self.pick(100, 1 << 20)
        return f"wire piece={piece} limit={limit} timeout={self.pick(1, 5)}"

    def send(self) -> str:
        self.sizes.append(self.pick(0, 1, 100, 70_000, 140_000))
        return f"send {self.pick('a', 'b')} uint8[{self.sizes[-1]}]"

    def write(self) -> str:
        if not self.sizes:
            return self.send()
        id = max(self.below(len(self.sizes)), self.below(len(self.sizes)))
        begin, end = self.range_in(0, self.sizes[id])
        return f"write {id + 1} {begin}:{end}"

    def free(self) -> str:
        return f"free {1 + self.below(len(self.sizes) + 1)}"

    def tick(self) -> str:
        self.now += self.pick(0, 1, 3, 20)
        return f"until {self.now} tick"

    def in_hello(self) -> str:
        self.session += self.below(8) == 0
        window = self.pick(0, 1, 65536, 200_000, 2**40)
        return f"hello window={window} piece={self.pick(65536, 1 << 20)}"

    def in_ack(self) -> str:
        return f"ack ?{self.below(8)}"

    def in_wrong(self) -> str:
        at = f"{self.pick(0, 65536)}-{self.below(3)}"
        return f"ack {self.below(4)}.{1 + self.below(4)} {at}"

    def in_refuse(self) -> str:
        return f"refuse {self.pick('?', '1.')}{1 + self.below(4)} no room"

    def in_piece(self) -> str:
        if not self.theirs or self.below(8) == 0:
            size = self.pick(0, 1, 40, 90)
            self.theirs.append((self.pick("x", "y"), size, [(0, size)]))
        id = self.below(len(self.theirs))
        name, size, ranges = self.theirs[id]
        if self.below(4) == 0:
            ranges.append(self.range_in(0, size))
        version = self.below(len(ranges))
        begin, end = first, last = ranges[version]
        while begin < end and not begin <= first < last <= min(end, first + 40):
            first, last = self.range_in(begin, end)
        at = f"{first}-{last} of {begin}-{end}"
        return f"piece {name} {id + 1}.{version + 1} {at} uint8[{size}]"

    def in_free(self) -> str:
        return f"free {1 + self.below(len(self.theirs) + 2)}.9"

    def step(self) -> str:
        (kind,) = self.chance.choices([*WEIGHTS], [*WEIGHTS.values()])
        if kind in ("connect", "has"):
            return kind
        given: str = getattr(self, kind)()
        if not kind.startswith("in_"):
            return given
        sender = self.session if self.below(12) else 1 + self.below(self.session + 1)
        return f"in {given} from={sender} to={'own' if self.below(12) else self.pick('', '7')}"


def make_end(chance: random.Random) -> list[list[str]]:
    script = Script(chance)
    first = [script.wire(), f"in {script.in_hello()} from=1"]
    return [[step] for step in first + [script.step() for _ in range(40)] + ["close"]]


def end(given: list[list[str]]) -> list[Any]:
    player = Player()
    player.play("wire")  # a part of the steps may have none
    return [player.play(step) for (step,) in given]


SUBJECTS = {"end": (1, make_end, end)}
