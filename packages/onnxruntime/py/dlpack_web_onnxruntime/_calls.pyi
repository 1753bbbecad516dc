"""What Python calls in JavaScript: the classes of js/src/calls.ts."""

from collections.abc import Awaitable
from typing import Any, Protocol

class Sessions(Protocol):
    def library(
        self, given: Any, threads: float, onCPU: bool, /
    ) -> Awaitable[Library]: ...

class Library(Protocol):
    ort: Any
    version: str
    def logFrom(self, severity: float, /) -> None: ...
    def filesOf(self, model: Any, /) -> Any: ...
    def open(
        self,
        model: Any,
        files: Any,
        options: Any,
        usual: Any = ...,
        device: Any = ...,
        /,
    ) -> Session: ...

class Session(Protocol):
    ort: Any
    ready: Awaitable[None]
    device: Any
    facts: Any
    def start(
        self, number: int, options: Any, strings: Any, count: float, /, *numbers: float
    ) -> None: ...
    def startToWait(self, number: int, /, *given: Any) -> int: ...
    running: float
    def done(self, number: int, /) -> Awaitable[None]: ...
    def wait(self, number: int, /) -> int: ...
    def take(self, number: int, i: float, /) -> int: ...
    def strings(self, number: int, i: float, /) -> Any: ...
    def end(self, number: int, /) -> None: ...
    def release(self) -> None: ...
