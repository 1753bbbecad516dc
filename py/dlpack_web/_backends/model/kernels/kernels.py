"""Compute shaders: checking a call, and running it."""

from collections.abc import Sequence
from typing import Any

from ...checks import Arguments, Counts, Key, ShaderSource, with_lines
from .. import messages
from ..buffers.views import View
from ..device.device import Device
from ..errors.errors import Fault
from ..errors.operations import ask, operate
from .arguments import (
    Bound,
    bind,
    bind_copy,
    bind_number,
    check_aliasing,
    count_of,
    pack_number,
)
from .wgsl import Binding, parse_shader


class Kernel:
    """A shader on one device. A driver compiles it, and dispatches."""

    #: With which `_core._again` runs a cached call; 0: no calls are cached.
    core_number: int = 0

    def __init__(self, device: Device, source: ShaderSource) -> None:
        device.check_alive()
        self._device, self.label, self._check = device, source.label, source.check
        self.what = f'kernel "{self.label}"'
        self.params = source.params
        self._shader = parse_shader(source.wgsl, source.entry)
        self.fault: Fault | None = None
        self._compile(source._replace(wgsl=with_lines(source.wgsl)))

    def _compile(self, source: ShaderSource) -> None:
        """What the GPU refuses is the kernel's fault."""
        raise NotImplementedError

    def group(self, bound: Sequence[Bound]) -> Any:
        """What the driver makes of arguments before it runs."""
        return bound

    def _dispatch(
        self, bound: Sequence[Bound], groups: Counts, timestamps: Any
    ) -> None:
        """Runs the shader, and copies back what is bound as a copy."""
        raise NotImplementedError

    async def ready(self) -> None:
        ask(self._device, [self.fault])

    def run(self, counts: Counts, args: Arguments, key: Key = ()) -> None:
        self._run(counts, args, None)

    async def time(self, counts: Counts, args: Arguments) -> float:
        raise BufferError(
            f"{self._device} cannot measure: it was made without the feature "
            '"timestamp-query", which request_device() asks for where the adapter '
            "has it"
        )

    def _run(self, counts: Counts, args: Arguments, timestamps: Any) -> Fault | None:
        """Binds and submits; returns the fault of what it wrote, if any."""
        bound, groups = self.prepare(counts, View.of(args))
        return self._submit(bound, groups, timestamps)

    def prepare(
        self, counts: Counts, views: Sequence[Any]
    ) -> tuple[list[Bound], Counts]:
        """The same, ready to be bound: what cannot be in place is copied."""
        groups, bound, copied = self.check(counts, views)
        for i in copied:
            bound[i] = bind_copy(views[i], bound[i].size, bound[i].written)
        for i, each in enumerate(views):
            if i not in bound:
                bound[i] = bind_number(self._device, each, i, self.declared(i))
        return [bound[i] for i in range(len(views))], groups

    def check(
        self, counts: Counts, views: Sequence[Any]
    ) -> tuple[Counts, dict[int, Bound], list[int]]:
        """Checks the arguments and counts of a call. Returns the workgroups, the tensors,
        and which of these must be copied; allocates nothing."""
        self._device.check_alive()
        bindings = self._shader.bindings
        if bindings is not None and len(views) != len(bindings):
            names = ", ".join(binding.name for binding in bindings) or "none"
            count = len(bindings)
            raise ValueError(messages.wrong_count(self.label, names, count, len(views)))
        groups = self.checked_groups(counts, views)
        bound: dict[int, Bound] = {}
        for i, each in enumerate(views):
            declared = self.declared(i)
            if isinstance(each, View):
                bound[i] = bind(self._device, each, i, declared, self._check)
            else:
                pack_number(each, i, declared)
        return groups, bound, check_aliasing(views, bound)

    def declared(self, index: int) -> Binding | None:
        """What the shader declares; None if that is not known."""
        bindings = self._shader.bindings
        return bindings[index] if bindings is not None else None

    def checked_groups(self, counts: Counts, views: Sequence[Any]) -> Counts:
        groups = counts if counts[0] else self._usual_groups(views)
        limit = self._device.limits["maxComputeWorkgroupsPerDimension"]
        if max(groups) > limit:
            raise ValueError(messages.wrong_workgroups(limit, groups))
        return groups

    def _usual_groups(self, views: Sequence[Any]) -> Counts:
        """One invocation for each element of the first writable argument."""
        bindings, workgroup = self._shader.bindings, self._shader.workgroup

        def refuse(why: str) -> BufferError:
            return BufferError(messages.needs_workgroups(self.label, why))

        if bindings is None:
            raise refuse(messages.unknown_bindings())
        if workgroup is None:
            if self.fault is not None:
                return 1, 1, 1  # it will not run
            raise refuse(messages.unknown_workgroup())
        x, y, z = workgroup
        if (y, z) != (1, 1):
            raise refuse(messages.several_axes(f"{x},{y},{z}"))
        written = [binding for binding in bindings if binding.type == "storage"]
        if not written:
            raise refuse(messages.writes_nothing())
        view = views[written[0].index]
        count = count_of(view, written[0]) if isinstance(view, View) else None
        if count is None:
            raise refuse(messages.unknown_elements(written[0].index, written[0].value))
        return max(1, -(-count // x)), 1, 1

    def _submit(
        self, bound: Sequence[Bound], groups: Counts, timestamps: Any
    ) -> Fault | None:
        written = [one for one in bound if one.written]
        for one in written:
            one.slot.filled = max(one.slot.filled, one.offset + one.size)
        targets = [one.back.part() if one.back else one.part() for one in written]
        operate(
            self._device,
            self.what,
            lambda: self._dispatch(bound, groups, timestamps),
            reads=[one.part() for one in bound],
            writes=targets,
            after=self.fault,
            label=self.label,
        )
        faults = (part.fault() for part in targets)
        return next((fault for fault in faults if fault is not None), None)
