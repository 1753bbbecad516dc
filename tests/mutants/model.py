"""What a mutant is, what became of it, and what each part of the repository can do with it."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "mutants"

# `killed` and `survived` count; the others do not.
KILLED, SURVIVED, EQUIVALENT, INVALID = "killed", "survived", "equivalent", "invalid"


def digest(*parts: str | bytes) -> str:
    sum_ = hashlib.sha256()
    for part in parts:
        sum_.update(part.encode() if isinstance(part, str) else part)
        sum_.update(b"\0")
    return sum_.hexdigest()[:20]


@dataclass(frozen=True)
class Mutant:
    part: str
    file: str  # from the root of the repository
    line: int  # from 1
    before: str
    after: str  # may be several lines

    def text_of(self, source: str) -> str:
        """The whole file with the mutant in it."""
        lines = source.splitlines(keepends=True)
        if lines[self.line - 1].rstrip("\n") != self.before:
            raise ValueError(f"{self.file}:{self.line} is not {self.before!r}")
        lines[self.line - 1] = self.after + "\n"
        return "".join(lines)

    def key(self, source: str) -> str:
        return digest(self.part, self.file, str(self.line), self.after, source)


@dataclass
class Outcome:
    status: str
    by: str = ""  # the test that failed, or how the run ended
    tests: str = ""  # digest of the tests that it survived
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Part(Protocol):
    """One language's files and how they are built and tested."""

    name: str
    rules: str  # of universalmutator, with commas

    def missing(self) -> str | None:
        """What this machine lacks, in words."""

    def files(self) -> list[Path]: ...

    def prepare(self) -> None:
        """Makes builds and the map of tests, where those kept are stale."""

    def tests_digest(self) -> str:
        """Of all tests: what survived is tried again when it changes."""

    def try_out(self, mutant: Mutant, folder: Path) -> Outcome:
        """Builds and tests it in `folder`, which is its own."""
