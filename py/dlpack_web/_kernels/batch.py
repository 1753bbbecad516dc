"""Batch: calls of kernels that are recorded once and run many times."""

from collections.abc import Mapping, Sequence
from operator import index as as_int
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

from .. import _core
from .._backends import owner
from .._backends.calls import current, recorder
from .._backends.checks import Arguments, Counts, counts_of
from .._layout.text import type_of
from .._tensor.tensor import Tensor
from . import named

if TYPE_CHECKING:
    from .._backends.model.kernels.batch import Calls
    from .._backends.model.kernels.kernels import Kernel


class Batch:
    """The result of `batch`: recorded calls of kernels, in order; len() counts them.

    It holds the tensors of the calls, also those that you release. `release()` gives
    them up, as does Python's collector.

    >>> device = await dlw.webgpu.request_device()
    >>> add = dlw.webgpu.Kernel('''
    ...     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ...     @group(0) @binding(1) var<uniform> k: f32;
    ...     @compute @workgroup_size(1)
    ...     fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += k; }
    ... ''')
    >>> t = dlw.empty(3, device=device)
    >>> with dlw.webgpu.batch() as b:
    ...     add(t, 1)
    ...     add(t, 10)
    >>> len(b), t.numpy().tolist()
    (2, [0.0, 0.0, 0.0])
    >>> b.run()
    >>> b.run()
    >>> t.numpy().tolist()
    [22.0, 22.0, 22.0]
    >>> b.release()
    """

    def __init__(self) -> None:
        self._entered = self._released = False
        self._made: Calls[Any] | None = None  # at the first call
        self._device = -1
        #: A hold on a tensor of the batch, for `update` with numbers alone.
        self._anchor: Tensor | None = None
        #: Whether the `with` block runs. A task that it started may run longer.
        self._recording = False

    # --- recording --------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._check()
        if self._entered:
            raise BufferError(
                "a batch is recorded once: make another one, `with dlw.webgpu.batch() as "
                "b:`"
            )
        if recorder() is not None:
            raise BufferError("a batch is being recorded already: batches do not nest")
        try:
            self._entered = True
            current.set(ref(self))
            self._recording = True
            return self
        except BaseException:  # an interrupt: the block does not run
            self._recording = False
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._recording = False
        if kind is not None:
            self.release()

    def _record(
        self, kernel: "Kernel", device: int, counts: Counts, args: Arguments
    ) -> None:
        """Records a call that `Kernel` has checked."""
        self._check()
        if self._made is None:
            first = next(x for x in args if isinstance(x, Tensor))
            self._anchor = _core.from_dlpack(first)
            self._device = device
            self._made = owner(device).batch(device)
        if device != self._device:
            raise BufferError(
                f"the batch is on webgpu:{self._device}, and these tensors are on "
                f"webgpu:{device}: record a batch for each device"
            )
        self._made.add(kernel, counts, args)
        if self._released:  # meanwhile: by another thread, or a finalizer
            self.release()

    def _uses(self, tensor: _core.Tensor, writing: bool) -> bool:
        """Whether a recorded call writes to a tensor, or, for `writing`, uses it."""
        return self._made is not None and self._made.uses(tensor, writing)

    # --- running ----------------------------------------------------------------------

    def run(self) -> None:
        """Runs the recorded calls in order, in one submit; it does not wait. Each run reads the
        elements that the tensors have when its turn in the queue comes.

        A kernel that the GPU refuses keeps the whole batch from running: reading any tensor that
        the batch writes raises the KernelError of that kernel, with the line where it was
        recorded.

        Raises
        ------
        BufferError
            The block has not begun or not ended, or that of another batch runs.
        ReleasedError, DeviceLostError
            The batch was released, or its device lost.

        Examples
        --------
        >>> with dlw.webgpu.batch() as b:
        ...     pass
        >>> b.run()
        """
        recorded = self._made
        recording = self._recording or recorder() is not None
        if recorded is not None and not recording:
            recorded.run()
            return
        self._check()
        if recording or not self._entered:
            raise BufferError(
                "run() comes after the recording: `with dlw.webgpu.batch() as b:` …, then "
                "b.run()"
            )

    def update(
        self,
        call: int,
        args: Mapping[int, Tensor | float] | None = None,
        *,
        workgroups: int | Sequence[int] | None = None,
    ) -> None:
        """Changes a recorded call, from the next run on; if it raises, nothing changes.

        Changing numbers or workgroups is cheap; for a tensor the call is checked and prepared
        again.

        Parameters
        ----------
        call : int
            Its number, in the order of recording; negative from the end.
        args : mapping of int to Tensor or number, optional
            The new arguments, by position; the others stay.
        workgroups : int or tuple of int, optional
            The new counts.

        Raises
        ------
        IndexError
            No such call.
        ValueError
            No such argument, or an input of a formula that is an output, too; or another shape
            than the one that a kernel of formulas was recorded with, for which its workgroups
            are (raw inputs may have any).
        BufferError, TypeError
            As for calling the kernel, whose checks are the same.
        ReleasedError
            The batch was released, maybe meanwhile: by another thread, or by `args`.

        Examples
        --------
        >>> device = await dlw.webgpu.request_device()
        >>> fill = dlw.webgpu.Kernel('''
        ...     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        ...     @group(0) @binding(1) var<uniform> k: f32;
        ...     @compute @workgroup_size(1)
        ...     fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = k; }
        ... ''')
        >>> s, t = dlw.empty(2, device=device), dlw.empty(2, device=device)
        >>> with dlw.webgpu.batch() as b:
        ...     fill(s, 1)
        >>> b.update(0, {0: t, 1: 5})
        >>> b.run()
        >>> s.numpy().tolist(), t.numpy().tolist()
        ([0.0, 0.0], [5.0, 5.0])
        """
        number, counts = as_int(call), counts_of(workgroups)
        places, values = _by_position({} if args is None else args)
        backend_batch, anchor, length = self._made, self._anchor, len(self)
        self._check()  # now: what `args` and other threads do may release it
        if backend_batch is None or not -length <= number < length:
            raise IndexError(f"the batch has {length} calls, and no number {number}")
        if self._recording:
            raise BufferError("update() comes after the recording")
        with named(["", *(f"argument {place}" for place in places)]):
            device, given = _core._arguments(anchor, *values)
        if device != self._device:
            raise BufferError("the tensors of one batch must share a device")
        backend_batch.update(number % length, counts, places, given[1:])

    def __len__(self) -> int:
        return 0 if self._made is None else len(self._made)

    def __bool__(self) -> bool:
        return True

    # --- lifetime ---------------------------------------------------------------------

    def release(self) -> None:
        """Gives up the recorded calls and their tensors. You may call it again; runs
        that were submitted are not affected.

        >>> with dlw.webgpu.batch() as b:
        ...     pass
        >>> b.release()
        >>> b.released
        True
        """
        self._released = True
        backend_batch, self._made = self._made, None
        anchor, self._anchor = self._anchor, None
        if anchor is not None:
            anchor.release()
        if backend_batch is not None:
            backend_batch.release()

    @property
    def released(self) -> bool:
        """Whether it was released.

        >>> dlw.webgpu.batch().released
        False
        """
        return self._released

    def _check(self) -> None:
        if self._released:
            raise _core.ReleasedError(
                "the batch was released: record another one, `with dlw.webgpu.batch() as "
                "b:`"
            )

    def __repr__(self) -> str:
        if self._released:
            return "<Batch, released>"
        state = ", recording" if self._recording else ""
        return f"<Batch of {len(self)} calls{state}>"


def _by_position(args: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    if not isinstance(args, Mapping):
        raise TypeError(
            "args of update() are the new arguments by position, {0: tensor}, not "
            f"{type_of(args)}"
        )
    return tuple(map(as_int, args)), tuple(args.values())


Batch.__module__ = "dlpack_web.webgpu"  # where users find it


def batch() -> Batch:
    """Records the kernels that the `with` block calls, to run them many times in one
    submit each.

    In the block kernels do not run, and their arguments are checked as usual; `run()`
    of the Batch runs them all, without any work of Python for each. Everything else in
    the block runs immediately. Reading an output, or writing an input, of a recorded
    kernel therefore raises BufferError there, and so does reading the results that kernels
    return, until `run()`. If the block raises, nothing stays recorded.

    All kernels of a batch are on the device of the first. Recording is for this thread
    or asyncio task alone (and tasks that it starts in the block). Batches do not nest.

    >>> with dlw.webgpu.batch() as b:
    ...     pass  # calls of kernels
    >>> len(b)
    0
    """
    return Batch()


batch.__module__ = "dlpack_web.webgpu"
