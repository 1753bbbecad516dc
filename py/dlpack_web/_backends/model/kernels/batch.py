"""Recorded calls of kernels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .... import _core
from ...._layout.dtype import parse_dtype
from ...calls import Call, calling
from ...checks import Arguments, Counts
from .. import messages
from ..buffers.views import Part, View
from ..device.device import Device
from ..errors.errors import Fault, NotRun
from ..errors.operations import attempt, check_usable, fault_of
from .arguments import Bound, pack_number
from .kernels import Kernel

_BYTES = parse_dtype("uint8")


@dataclass(frozen=True)
class Recorded:
    """A call."""

    kernel: Any
    #: Tensors, of which the batch has its own holds, and numbers.
    args: tuple[Any, ...]
    counts: Counts
    place: Call
    reads: Sequence[Part]
    writes: Sequence[Part]
    #: All that `release` gives up.
    holds: Sequence[_core.Tensor]

    def release(self) -> None:
        """A run in another thread still has the slots."""
        for hold in self.holds:
            hold.release()


class Calls[Each: Recorded]:
    """Calls of kernels of one device, with references to their tensors."""

    def __init__(self, device: Device) -> None:
        device.check_alive()
        self._device = device
        #: Names it in the faults of its results.
        self.token = object()
        # Finalizers and other threads may use it meanwhile: each change is one step.
        self._calls: list[Each] = []

    def _prepare(
        self, kernel: Any, counts: Counts, args: Sequence[Any], place: Call
    ) -> Each:
        raise NotImplementedError

    @staticmethod
    def held(args: Sequence[Any]) -> tuple[tuple[Any, ...], list[_core.Tensor]]:
        """Arguments with holds of their own, and these."""
        own = tuple(
            _core.from_dlpack(x) if isinstance(x, _core.Tensor) else x for x in args
        )
        return own, [x for x in own if isinstance(x, _core.Tensor)]

    def computes(self, part: Part) -> bool:
        """Whether the elements are not there before a run of this batch."""
        fault = part.fault()
        return isinstance(fault, NotRun) and fault.ends(part.slot.faults, self.token)

    def _change(
        self, old: Each, counts: Counts, args: list[Any], places: Sequence[int]
    ) -> Each:
        """A call with other arguments at some places, or other counts."""
        return self._prepare(old.kernel, counts, args, old.place)

    def run(self) -> None:
        raise NotImplementedError

    def add(self, kernel: Any, counts: Counts, args: Arguments) -> None:
        call = self._prepare(kernel, counts, args, calling(2))
        for part in call.writes:
            fault = part.fault()
            if isinstance(fault, NotRun) and fault.batch is None:
                fault.batch = self.token
        self._calls.append(call)

    def update(
        self, index: int, counts: Counts, places: tuple[int, ...], args: Arguments
    ) -> None:
        """Changes a call; places: positions of the arguments in it."""
        self._device.check_alive()
        calls = self._calls
        while True:
            if index >= len(calls):
                raise _core.ReleasedError("the batch was released meanwhile")
            old = calls[index]
            kernel, merged = old.kernel, list(old.args)
            if counts[0] and kernel.params:
                raise ValueError(messages.own_workgroups(kernel.label))
            params = dict(enumerate(kernel.params or [True] * len(merged)))
            count = sum(map(bool, params.values()))
            bound = [at - [*kernel.params[: max(at, 0)]].count(False) for at in places]
            for place, at, arg in zip(places, bound, args, strict=True):
                param = params.get(place)
                if not param:
                    raise ValueError(messages.no_argument(kernel.label, count, place))
                if param is not True:
                    param.check(arg)
                    if not param.raw and _shape(arg) != _shape(merged[at]):
                        raise ValueError(messages.other_shape(kernel.label))
                merged[at] = arg
            call = self._change(old, counts if counts[0] else old.counts, merged, bound)
            if calls[index] is old:
                calls[index] = call
                self._disown(old, calls[: index + 1])
                if call.holds is not old.holds:
                    old.release()
                return
            # Another thread, or a finalizer, has changed it meanwhile: again, from that.

    def _disown(self, old: Each, calls: Sequence[Each]) -> None:
        """A run no longer ends the errors of results that no call computes."""
        left = [part for call in calls for part in call.writes]
        for part in old.writes:
            fault = part.fault()
            if not isinstance(fault, NotRun) or not self.computes(part):
                continue
            if not any(map(part.meets, left)):
                fault.batch = object()

    def uses(self, tensor: _core.Tensor, writing: bool) -> bool:
        part = View(tensor).part()
        return any(
            part.meets(other)
            for call in self._calls
            for other in (*call.writes, *(call.reads if writing else ()))
        )

    def release(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            call.release()

    def __len__(self) -> int:
        return len(self._calls)


def _shape(arg: Any) -> tuple[int, ...] | None:
    return arg.shape if isinstance(arg, _core.Tensor) else None


@dataclass(frozen=True)
class Ready(Recorded):
    """A call with everything that WebGPU needs to run it."""

    bound: Sequence[Bound]
    groups: Counts
    #: None: it cannot be run, and `fault` says why.
    group: Any
    fault: Fault | None
    #: Arguments that are copied before the pass.
    copies: Sequence[tuple[View, Bound]]


class Batch(Calls[Ready]):
    """Calls of kernels that this process runs."""

    def _submit(self, calls: Sequence[Ready]) -> Fault | None:
        """Runs calls; returns the fault if the GPU refuses them."""
        raise NotImplementedError

    def _change(
        self, old: Ready, counts: Counts, args: list[Any], places: Sequence[int]
    ) -> Ready:
        changed = [each[place] for each in (args, old.args) for place in places]
        if all(isinstance(x, float) for x in changed):
            return self._rewrite(old, counts, tuple(args), places)
        return self._prepare(old.kernel, counts, args, old.place)

    def _rewrite(
        self, old: Ready, counts: Counts, args: tuple[Any, ...], places: Sequence[int]
    ) -> Ready:
        """Writes numbers into the uniforms that the call has."""
        kernel, device = old.kernel, self._device
        groups = old.groups
        if counts != old.counts:
            groups = kernel.checked_groups(counts, [])
        data = [pack_number(args[i], i, kernel.declared(i)) for i in places]

        def write() -> None:
            for i, number in zip(places, data, strict=True):
                device.write(old.bound[i].slot.buffer, 0, number)

        attempt(device, "updating a batch", write)
        return replace(old, args=args, counts=counts, groups=groups)

    def _prepare(
        self, kernel: Kernel, counts: Counts, args: Sequence[Any], place: Call
    ) -> Ready:
        self._device.check_alive()
        own, holds = self.held(args)
        views = View.of(own)
        bound, groups = kernel.prepare(counts, views)
        group, fault = self._group(kernel, bound)
        for one in bound:
            if one.temporary:
                size = one.slot.buffer.size
                holds.append(one.slot.tensor((size,), _BYTES))
        copies = [
            (view, one)
            for view, one in zip(views, bound, strict=True)
            if one.temporary and isinstance(view, View)
        ]
        sources = {id(one): view.part() for view, one in copies}
        used = [one for one in bound if not one.temporary or id(one) in sources]
        reads = [sources.get(id(one), one.part()) for one in used if not one.written]
        writes = [sources.get(id(one), one.part()) for one in used if one.written]
        for one in bound:
            if one.written:
                one.slot.filled = max(one.slot.filled, one.offset + one.size)
        ready = bound, groups, group, fault, copies
        return Ready(kernel, own, counts, place, reads, writes, holds, *ready)

    def _group(
        self, kernel: Kernel, bound: Sequence[Bound]
    ) -> tuple[Any, Fault | None]:
        """The bind group, or why there is none."""
        device = self._device
        if kernel.fault is not None:
            return None, kernel.fault
        try:
            with device.turn():
                return kernel.group(bound), None
        except device.errors() as error:
            return None, fault_of(device, kernel.what, error, kernel.label)

    def run(self) -> None:
        device, calls = self._device, tuple(self._calls)
        device.check_alive()
        for call in calls:
            used = {part.slot for part in (*call.reads, *call.writes)}
            check_usable(device, f"{call.kernel.what} of the batch", used)
        fault = next((call.fault for call in calls if call.fault is not None), None)
        outcomes = _inherited(calls, self.token)
        runnable = [
            call for call, one in zip(calls, outcomes, strict=True) if one is None
        ]
        if fault is None and runnable:
            fault = self._submit(runnable)
        for call, one in zip(calls, outcomes, strict=True):
            for slot, start, end in call.writes:
                slot.faults.note(start, end, one if one is not None else fault)


def _inherited(calls: Sequence[Ready], token: object) -> list[Fault | None]:
    """For each call the fault of what it reads, or of what it writes: from before the
    batch, or from an earlier call of it that reads a faulty tensor."""
    spoilt: list[tuple[Part, Fault]] = []
    outcomes, written = [], list[Part]()
    for call in calls:
        parts = (*call.reads, *call.writes)
        written += call.writes
        faults = [part.fault() for part in parts]
        for i, part in enumerate(parts):
            one = faults[i]
            if isinstance(one, NotRun) and one.ends(part.slot.faults, token):
                faults[i] = None if any(map(part.meets, written)) else one
        faults += [fault for part in parts for at, fault in spoilt if part.meets(at)]
        found = next((fault for fault in faults if fault is not None), None)
        if found is not None:
            spoilt += [(part, found) for part in call.writes]
        outcomes.append(found)
    return outcomes
