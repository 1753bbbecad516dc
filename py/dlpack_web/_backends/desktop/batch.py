"""Recorded calls of kernels on the desktop (js/src/webgpu/batch.ts)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import _core
from ..._layout.dtype import parse_dtype
from ..calls import Call, calling
from ..checks import Arguments
from . import wgpu
from .arguments import Bound, pack_number
from .buffers import View, mask_tail, round_up, tensor_over
from .faults import Fault
from .kernel import Kernel, copy_back
from .state import Record
from .work import Part, attempt, check_usable, refusal

_BYTES = parse_dtype("uint8")


@dataclass(frozen=True)
class _Recorded:
    """A call with everything that WebGPU needs to run it."""

    kernel: Kernel
    #: Tensors, of which the batch has its own holds, and numbers.
    args: tuple[Any, ...]
    counts: tuple[int, ...]
    bound: Sequence[Bound]
    groups: tuple[int, ...]
    #: None: it cannot be run, and `fault` says why.
    group: Any
    fault: Fault | None
    #: Arguments that are copied before the pass.
    asides: Sequence[tuple[View, Bound]]
    reads: Sequence[Part]
    writes: Sequence[Part]
    place: Call
    #: All that `release` gives up: temporary slots, too.
    holds: Sequence[_core.Tensor]

    def release(self) -> None:
        """A run in another thread still has the slots."""
        for hold in self.holds:
            hold.release()


class Batch:
    """Calls of kernels of one device: BackendBatch of ../__init__.py."""

    def __init__(self, record: Record) -> None:
        record.check_alive()
        self._record = record
        # Finalizers and other threads may use it meanwhile: each change is one step.
        self._calls: list[_Recorded] = []

    def add(
        self,
        kernel: Kernel,
        counts: tuple[int, ...],
        args: Arguments,
    ) -> None:
        self._calls.append(self._prepare(kernel, counts, args, calling(2)))

    def update(
        self,
        index: int,
        counts: tuple[int, ...],
        places: tuple[int, ...],
        args: Arguments,
    ) -> None:
        self._record.check_alive()
        calls = self._calls
        old = calls[index]
        merged = updated(old.kernel, old.args, places, args)
        counts = counts if counts[0] else old.counts
        changed = [merged[place] for place in places]
        before = [old.args[place] for place in places]
        if any(isinstance(x, _core.Tensor) for x in (*changed, *before)):
            call = self._prepare(old.kernel, counts, merged, old.place)
        else:
            call = self._rewrite(old, counts, tuple(merged), places)
        calls[index] = call
        if call.bound is not old.bound:
            old.release()

    def _rewrite(
        self,
        old: _Recorded,
        counts: tuple[int, ...],
        args: tuple[Any, ...],
        places: Sequence[int],
    ) -> _Recorded:
        """Writes numbers into the uniforms that the call has."""
        kernel, queue = old.kernel, self._record.gpu.queue
        groups = old.groups
        if counts != old.counts:
            groups = kernel.checked_groups(counts, [])
        data = [pack_number(args[i], i, kernel.declared(i)) for i in places]

        def write() -> None:
            for i, number in zip(places, data, strict=True):
                queue.write_buffer(old.bound[i].slot.buffer, 0, number)

        attempt(self._record, "updating a batch", write)
        return replace(old, args=args, counts=counts, groups=groups)

    def _prepare(
        self, kernel: Kernel, counts: tuple[int, ...], given: Sequence[Any], place: Call
    ) -> _Recorded:
        record = self._record
        record.check_alive()
        args = tuple(
            _core.from_dlpack(x) if isinstance(x, _core.Tensor) else x for x in given
        )
        views = [View(x) if isinstance(x, _core.Tensor) else x for x in args]
        bound, groups = kernel.prepare(counts, views)
        group, fault = self._group(kernel, bound)
        holds = [x for x in args if isinstance(x, _core.Tensor)]
        for one in bound:
            if one.temporary:
                size = one.slot.buffer.size
                holds.append(tensor_over(one.slot, (size,), _BYTES))
        asides = [
            (view, one)
            for view, one in zip(views, bound, strict=True)
            if one.temporary and isinstance(view, View)
        ]
        sources = {id(one): view.part() for view, one in asides}
        used = [one for one in bound if not one.temporary or id(one) in sources]
        reads = [sources.get(id(one), one.part()) for one in used if not one.written]
        writes = [sources.get(id(one), one.part()) for one in used if one.written]
        for one in bound:
            if one.written:
                one.slot.filled = max(one.slot.filled, one.offset + one.size)
        ready = bound, groups, group, fault, asides, reads, writes, place, holds
        return _Recorded(kernel, args, counts, *ready)

    def _group(
        self, kernel: Kernel, bound: Sequence[Bound]
    ) -> tuple[Any, Fault | None]:
        """The bind group, or why there is none."""
        if kernel.fault is not None:
            return None, kernel.fault
        try:
            with wgpu.turn():
                return kernel.group(bound), None
        except wgpu.errors() as error:
            return None, self._fault(kernel, error)

    def _fault(self, kernel: Kernel | None, error: Exception) -> Fault:
        """For a GPU error; DeviceLostError if it says so."""
        what = "a batch of kernels" if kernel is None else kernel.what
        if wgpu.is_lost(error):
            raise refusal(self._record, what, error) from None
        why = wgpu.reason(wgpu.without_frames(error))
        label = None if kernel is None else kernel.label
        return Fault(f"{what} failed on {self._record}: {why}", label)

    def uses(self, tensor: _core.Tensor, writing: bool) -> bool:
        part = View(tensor).part()
        return any(
            meet(part, other)
            for call in self._calls
            for other in (*call.writes, *(call.reads if writing else ()))
        )

    def run(self) -> None:
        record, calls = self._record, tuple(self._calls)
        record.check_alive()
        for call in calls:
            used = {part.slot for part in (*call.reads, *call.writes)}
            check_usable(record, f"{call.kernel.what} of the batch", used)
        fault = next((call.fault for call in calls if call.fault is not None), None)
        outcomes = _inherited(calls)
        sound = [call for call, one in zip(calls, outcomes, strict=True) if one is None]
        if fault is None and sound:
            fault = self._submit(sound)
        for call, one in zip(calls, outcomes, strict=True):
            for slot, start, end in call.writes:
                slot.faults.note(start, end, one if one is not None else fault)

    def _submit(self, calls: Sequence[_Recorded]) -> Fault | None:
        """Runs calls; returns the fault if the GPU refuses them."""
        gpu = self._record.gpu
        try:
            with wgpu.turn():
                encoder = gpu.create_command_encoder()
                for call in calls:
                    self._encode(encoder, call)
                gpu.queue.submit([encoder.finish()])
        except wgpu.errors() as error:
            return self._blame(calls, error)
        return None

    def _blame(self, calls: Sequence[_Recorded], error: Exception) -> Fault:
        """The fault of the first call that the GPU refuses alone. Commands that dispatch
        nothing are checked just the same."""
        gpu = self._record.gpu
        for call in calls:
            try:
                with wgpu.turn():
                    encoder = gpu.create_command_encoder()
                    compute = encoder.begin_compute_pass()
                    compute.set_pipeline(call.kernel.pipeline)
                    compute.set_bind_group(0, call.group)
                    compute.end()
                    gpu.queue.submit([encoder.finish()])
            except wgpu.errors() as own:
                fault = self._fault(call.kernel, own)
                fault.call = call.place
                return fault
        return self._fault(None, error)

    def _encode(self, encoder: Any, call: _Recorded) -> None:
        record = self._record
        for view, one in call.asides:
            words = round_up(view.nbytes, 4)
            if view.nbytes > 0:
                buffer = view.slot.buffer
                copied = buffer, view.start, one.slot.buffer, 0, words
                encoder.copy_buffer_to_buffer(*copied)
                if view.nbytes % 4 != 0:
                    mask_tail(record, encoder, one.slot.buffer, 0, view.nbytes)
                record.count("copied", view.nbytes)
            # The shader may have written to the padding in an earlier run.
            if one.written and one.size > words:
                encoder.clear_buffer(one.slot.buffer, words, one.size - words)
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(call.kernel.pipeline)
        compute.set_bind_group(0, call.group)
        compute.dispatch_workgroups(*call.groups)
        compute.end()
        for one in call.bound:
            if one.back:
                copy_back(record, encoder, one.slot.buffer, one.back)

    def release(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            call.release()

    def __len__(self) -> int:
        return len(self._calls)


def updated(
    kernel: Kernel,
    before: Sequence[Any],
    places: Sequence[int],
    args: Sequence[Any],
) -> list[Any]:
    """Arguments of a call, some of them replaced; ValueError: there is no such place."""
    merged = list(before)
    for place, arg in zip(places, args, strict=True):
        if not 0 <= place < len(merged):
            raise ValueError(
                f"{kernel.what} has {len(merged)} arguments, and no number {place}"
            )
        merged[place] = arg
    return merged


def meet(a: Part, b: Part) -> bool:
    """Whether two parts have bytes in common."""
    return a.slot.faults is b.slot.faults and max(a.start, b.start) < min(a.end, b.end)


def _inherited(calls: Sequence[_Recorded]) -> list[Fault | None]:
    """For each call the fault of what it reads, or of what it writes: from before the
    batch, or from an earlier call of it that reads a faulty tensor."""
    spoilt: list[tuple[Part, Fault]] = []
    outcomes = []
    for call in calls:
        parts = (*call.reads, *call.writes)
        faults = [part.fault() for part in parts]
        faults += [fault for part in parts for at, fault in spoilt if meet(part, at)]
        found = next((fault for fault in faults if fault is not None), None)
        if found is not None:
            spoilt += [(part, found) for part in call.writes]
        outcomes.append(found)
    return outcomes
