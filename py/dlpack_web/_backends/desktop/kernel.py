"""Compute shaders on the desktop: compiling, binding, running, timing
(js/src/webgpu/kernel.ts)."""

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..checks import Arguments, with_lines
from ..wgsl import Binding, parse_shader, place_in
from . import wgpu
from .arguments import Bound, bind, count_of, separate
from .buffers import View, round_up
from .faults import Fault
from .state import COPY_DST, COPY_SRC, MAP_READ, Record
from .work import ask, attempt, operate, refusal

_QUERY_RESOLVE = 0x200
_COMPUTE = 4  # GPUShaderStage.COMPUTE
_KEPT_GROUPS = 8  # bind groups, because making one costs as much as the rest of a run


class Kernel:
    """A shader on one device: BackendKernel of ../__init__.py."""

    def __init__(
        self,
        record: Record,
        wgsl: str,
        entry: str,
        label: str,
        check: bool,
        parts: Sequence[tuple[str, int, int]],
    ) -> None:
        record.check_alive()
        self._record, self.label, self._check = record, label, check
        self.what = f'kernel "{label}"'
        self._shader = parse_shader(wgsl, entry)
        self.fault: Fault | None = None
        self._groups: dict[tuple[Any, ...], Any] = {}
        self._compile(with_lines(wgsl), entry, parts)

    def _compile(
        self, wgsl: str, entry: str, parts: Sequence[tuple[str, int, int]]
    ) -> None:
        """What the GPU refuses is the kernel's fault."""
        try:
            self._build(wgsl, entry)
        except wgpu.errors() as error:
            what = f"compiling {self.what}"
            if wgpu.is_lost(error):
                raise refusal(self._record, what, error) from None
            text, line = _explain(wgsl, parts, wgpu.without_frames(error))
            told = f"{what} failed on {self._record}: {text}"
            self.fault = Fault(told, self.label, line)

    def _build(self, wgsl: str, entry: str) -> None:
        gpu, bindings = self._record.gpu, self._shader.bindings
        module = gpu.create_shader_module(label=self.label, code=wgsl)
        layout: Any = "auto"
        if bindings is not None:
            entries = [
                {
                    "binding": binding.index,
                    "visibility": _COMPUTE,
                    "buffer": {"type": binding.type},
                }
                for binding in bindings
            ]
            self._layout = gpu.create_bind_group_layout(entries=entries)
            layout = gpu.create_pipeline_layout(bind_group_layouts=[self._layout])
        self.pipeline = gpu.create_compute_pipeline(
            label=self.label,
            layout=layout,
            compute={"module": module, "entry_point": entry},
        )
        if bindings is None:
            self._layout = self.pipeline.get_bind_group_layout(0)

    async def ready(self) -> None:
        ask(self._record, [self.fault])

    def run(self, counts: tuple[int, ...], args: Arguments) -> None:
        self._run(counts, args, None)

    async def time(self, counts: tuple[int, ...], args: Arguments) -> float:
        record = self._record
        record.check_alive()
        if not wgpu.has_feature(record.gpu, "timestamp-query"):
            raise BufferError(
                f"{record} cannot measure: it was made without the feature "
                '"timestamp-query", which request_device() asks for where the adapter '
                "has it"
            )
        what, gpu = "reading the GPU's time", record.gpu

        def make() -> tuple[Any, Any, Any]:
            return (
                gpu.create_query_set(type="timestamp", count=2),
                gpu.create_buffer(size=16, usage=_QUERY_RESOLVE | COPY_SRC),
                gpu.create_buffer(size=16, usage=MAP_READ | COPY_DST),
            )

        queries, resolved, staging = attempt(record, what, make)
        writes = {
            "query_set": queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }
        ask(record, [self._run(counts, args, writes)])

        def read() -> Any:
            encoder = gpu.create_command_encoder()
            encoder.resolve_query_set(queries, 0, 2, resolved, 0)
            encoder.copy_buffer_to_buffer(resolved, 0, staging, 0, 16)
            gpu.queue.submit([encoder.finish()])
            return staging.map_async("READ_NOSYNC", 0, 16)

        await wgpu.finish(attempt(record, what, read))
        begin, end = staging.read_mapped().cast("Q")
        return float(end - begin) / 1e6  # WebGPU counts nanoseconds

    def _run(
        self,
        counts: tuple[int, ...],
        args: Arguments,
        timestamps: dict[str, Any] | None,
    ) -> Fault | None:
        """Binds the arguments and submits; returns the fault of what it wrote, if
        any."""
        record = self._record
        record.check_alive()
        views = [View(x) if isinstance(x, _core.Tensor) else x for x in args]
        bound, groups = self.prepare(counts, views)
        return self._submit(bound, groups, timestamps)

    def prepare(
        self, counts: tuple[int, ...], views: Sequence[Any]
    ) -> tuple[list[Bound], tuple[int, ...]]:
        """Checks the arguments and counts, and copies aside what must be."""
        record = self._record
        self._check_count(views)
        groups = self.checked_groups(counts, views)
        bound = [
            bind(record, view, i, self.declared(i), self._check)
            for i, view in enumerate(views)
        ]
        separate(record, views, bound)
        return bound, groups

    def declared(self, index: int) -> Binding | None:
        """What the shader declares; None if that is not known."""
        bindings = self._shader.bindings
        return bindings[index] if bindings is not None else None

    def _check_count(self, views: Sequence[Any]) -> None:
        bindings = self._shader.bindings
        if bindings is not None and len(views) != len(bindings):
            names = ", ".join(binding.name for binding in bindings) or "none"
            raise ValueError(
                f'kernel "{self.label}" takes an argument for each binding that it '
                f"declares ({names}): {len(bindings)}, not {len(views)}"
            )

    def checked_groups(
        self, counts: tuple[int, ...], views: Sequence[Any]
    ) -> tuple[int, ...]:
        groups = counts if counts[0] else self._usual_groups(views)
        limit = self._record.limits["max-compute-workgroups-per-dimension"]
        if max(groups) > limit:
            raise ValueError(
                f"workgroups must be 1 to 3 integers from 1 to {limit} ("
                f"maxComputeWorkgroupsPerDimension), not {groups}"
            )
        return groups

    def _usual_groups(self, views: Sequence[Any]) -> tuple[int, ...]:
        """One invocation for each element of the first argument that the shader may
        write to."""
        bindings, workgroup = self._shader.bindings, self._shader.workgroup

        def refuse(why: str) -> BufferError:
            text = f'kernel "{self.label}": {why}, so workgroups must be given'
            return BufferError(text)

        if bindings is None:
            raise refuse("its bindings cannot be read from the source")
        if workgroup is None:
            if self.fault is not None:
                return 1, 1, 1  # it will not run
            raise refuse("its @workgroup_size is not of numbers")
        x, y, z = workgroup
        if (y, z) != (1, 1):
            raise refuse(f"its @workgroup_size({x},{y},{z}) has several axes")
        written = [binding for binding in bindings if binding.type == "storage"]
        if not written:
            raise refuse("it writes to no binding")
        view = views[written[0].index]
        count = count_of(view, written[0]) if isinstance(view, View) else None
        if count is None:
            raise refuse(
                f"its binding {written[0].index} is not an array<…> of known elements"
            )
        return max(1, -(-count // x)), 1, 1

    def _submit(
        self,
        bound: Sequence[Bound],
        groups: tuple[int, ...],
        timestamps: dict[str, Any] | None,
    ) -> Fault | None:
        record, gpu = self._record, self._record.gpu
        written = [one for one in bound if one.written]
        for one in written:
            one.slot.filled = max(one.slot.filled, one.offset + one.size)
        targets = [one.back.part() if one.back else one.part() for one in written]

        def calls() -> None:
            encoder = gpu.create_command_encoder()
            options = {"timestamp_writes": timestamps} if timestamps else {}
            compute = encoder.begin_compute_pass(**options)
            compute.set_pipeline(self.pipeline)
            compute.set_bind_group(0, self.group(bound))
            compute.dispatch_workgroups(*groups)
            compute.end()
            for one in written:
                if one.back:
                    copy_back(record, encoder, one.slot.buffer, one.back)
            gpu.queue.submit([encoder.finish()])

        operate(
            record,
            self.what,
            calls,
            reads=[one.part() for one in bound],
            writes=targets,
            after=self.fault,
            label=self.label,
        )
        faults = (part.fault() for part in targets)
        return next((fault for fault in faults if fault is not None), None)

    def group(self, bound: Sequence[Bound]) -> Any:
        key = tuple((one.slot.buffer, one.offset, one.size) for one in bound)
        kept = self._groups.get(key)
        if kept is not None:
            return kept
        entries = [
            {
                "binding": i,
                "resource": {
                    "buffer": one.slot.buffer,
                    "offset": one.offset,
                    "size": one.size,
                },
            }
            for i, one in enumerate(bound)
        ]
        group = self._record.gpu.create_bind_group(layout=self._layout, entries=entries)
        # The owner may free a borrowed buffer, and a cached group would keep it.
        if all(one.slot.own for one in bound):
            self._groups[key] = group
            # Other threads may do the same meanwhile.
            for oldest in list(self._groups)[:-_KEPT_GROUPS]:
                self._groups.pop(oldest, None)
        return group


def copy_back(record: Record, encoder: Any, aside: Any, view: View) -> None:
    """Copies the shader's output from a copy back to its tensor."""
    length = round_up(view.nbytes, 4)
    encoder.copy_buffer_to_buffer(aside, 0, view.slot.buffer, view.start, length)
    record.count("copied", view.nbytes)


def _explain(
    wgsl: str, parts: Sequence[tuple[str, int, int]], error: Exception
) -> tuple[str, int | None]:
    """The error of a shader with the source line that it is on, and the line's
    number."""
    found = wgpu.shader_error(error)
    if found is None:
        return wgpu.reason(error), None
    line, column, said = found
    where, line, column, number = place_in(wgsl, parts, line, column)
    rows = wgsl.split("\n")
    source = rows[line - 1] if line <= len(rows) else ""
    caret = " " * max(column - 1, 0) + "^"
    return f"{where}:{column}: {said}\n{source}\n{caret}", number
