"""The batch that records the kernels of the code that runs now, if there is one."""

from contextvars import ContextVar
from typing import Any, Protocol

from .. import _core


class Recorder(Protocol):
    """Batch of ../_kernels/batch.py."""

    #: Whether its block has not ended. A task that was started in the block may run
    #: longer than that.
    _recording: bool

    def _uses(self, tensor: _core.Tensor, writing: bool, /) -> bool: ...


#: The last one of each thread and asyncio task, which tasks inherit. It is weak: an
#: interrupt may come before the block begins, and then nothing ends the recording.
current: ContextVar[Any] = ContextVar("dlpack_web batch", default=None)


def recorder() -> Any:
    """The Batch that records kernels here; None: they run."""
    last = current.get()
    if last is None:
        return None
    found = last()
    return found if found is not None and found._recording else None


def refuse_recorded(tensor: _core.Tensor, writing: bool) -> None:
    """BufferError if a tensor is read or written now that a kernel is to use later, as
    the batch runs."""
    batch: Recorder | None = recorder()
    if batch is not None and batch._uses(tensor, writing):
        done, how = ("written", "uses") if writing else ("read", "writes to")
        raise BufferError(
            f"this tensor cannot be {done} here: a kernel that the batch has recorded "
            f"{how} it, and runs only with run(): do this before the batch is recorded, "
            "or after run()"
        )
