"""Compute shaders of wgpu-py: compiling, dispatching, timing, and batches of calls."""

from collections.abc import Sequence
from typing import Any

from ..checks import Arguments, Counts, ShaderSource
from ..model.buffers.pool import COPY_DST, COPY_SRC, MAP_READ
from ..model.buffers.views import round_up
from ..model.errors.errors import Fault
from ..model.errors.operations import ask, attempt, fault_of
from ..model.kernels import batch, kernels
from ..model.kernels.arguments import Bound, layout_entries
from ..model.kernels.batch import Ready
from ..model.kernels.wgsl import help_for, place_in
from . import wgpu
from .device import Device

_QUERY_RESOLVE = 0x200
_KEPT_GROUPS = 8  # bind groups, because making one costs as much as the rest of a run


class Kernel(kernels.Kernel):
    _device: Device

    def _compile(self, source: ShaderSource) -> None:
        self._groups: dict[tuple[Any, ...], Any] = {}
        try:
            self._build(source.wgsl, source.entry)
        except wgpu.errors() as error:
            what = f"compiling {self.what}"
            fault = fault_of(self._device, what, error, self.label)
            text, fault.line = _explain(source, error)
            fault.message = f"{what} failed on {self._device}: {text}"
            self.fault = fault

    def _build(self, wgsl: str, entry: str) -> None:
        gpu, bindings = self._device.gpu, self._shader.bindings
        module = gpu.create_shader_module(label=self.label, code=wgsl)
        layout: Any = "auto"
        if bindings is not None:
            entries = layout_entries(bindings)
            self._layout = gpu.create_bind_group_layout(entries=entries)
            layout = gpu.create_pipeline_layout(bind_group_layouts=[self._layout])
        self.pipeline = gpu.create_compute_pipeline(
            label=self.label,
            layout=layout,
            compute={"module": module, "entry_point": entry},
        )
        if bindings is None:
            self._layout = self.pipeline.get_bind_group_layout(0)

    async def time(self, counts: Counts, args: Arguments) -> float:
        device = self._device
        device.check_alive()
        if "timestamp-query" not in device.features:
            return await super().time(counts, args)
        what, gpu = "reading the GPU's time", device.gpu

        def make() -> tuple[Any, Any, Any]:
            return (
                gpu.create_query_set(type="timestamp", count=2),
                gpu.create_buffer(size=16, usage=_QUERY_RESOLVE | COPY_SRC),
                gpu.create_buffer(size=16, usage=MAP_READ | COPY_DST),
            )

        queries, resolved, staging = attempt(device, what, make)
        writes = {
            "query_set": queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }
        ask(device, [self._run(counts, args, writes)])

        def read() -> Any:
            encoder = gpu.create_command_encoder()
            encoder.resolve_query_set(queries, 0, 2, resolved, 0)
            encoder.copy_buffer_to_buffer(resolved, 0, staging, 0, 16)
            gpu.queue.submit([encoder.finish()])
            return staging.map_async("READ_NOSYNC", 0, 16)

        await wgpu.finish(attempt(device, what, read))
        begin, end = staging.read_mapped().cast("Q")
        return float(end - begin) * wgpu.tick(gpu) / 1e6

    def _dispatch(
        self, bound: Sequence[Bound], groups: Counts, timestamps: Any
    ) -> None:
        gpu = self._device.gpu
        encoder = gpu.create_command_encoder()
        options = {"timestamp_writes": timestamps} if timestamps else {}
        self.encode(encoder, bound, groups, self.group(bound), options)
        gpu.queue.submit([encoder.finish()])

    def encode(
        self,
        encoder: Any,
        bound: Sequence[Bound],
        groups: Counts,
        group: Any,
        options: dict[str, Any],
    ) -> None:
        """The pass, and copies from what is bound as a copy back to its tensor."""
        compute = encoder.begin_compute_pass(**options)
        compute.set_pipeline(self.pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(*groups)
        compute.end()
        for one in bound:
            if one.back is not None:
                view, length = one.back, round_up(one.back.nbytes, 4)
                encoder.copy_buffer_to_buffer(
                    one.slot.buffer, 0, view.slot.buffer, view.start, length
                )
                self._device.count("copied", view.nbytes)

    def group(self, bound: Sequence[Bound]) -> Any:
        key = tuple((one.slot.buffer, one.offset, one.size) for one in bound)
        kept = self._groups.get(key)
        if kept is not None:
            return kept
        entries = [
            {"binding": i, "resource": one.resource()} for i, one in enumerate(bound)
        ]
        group = self._device.gpu.create_bind_group(layout=self._layout, entries=entries)
        # The owner may free a borrowed buffer, and a cached group would keep it.
        if all(one.slot.own for one in bound):
            self._groups[key] = group
            # Other threads may do the same meanwhile.
            for oldest in list(self._groups)[:-_KEPT_GROUPS]:
                self._groups.pop(oldest, None)
        return group


class Batch(batch.Batch):
    """One submit for all of the calls."""

    _device: Device

    def _submit(self, calls: Sequence[Ready]) -> Fault | None:
        gpu = self._device.gpu
        try:
            with wgpu.turn():
                encoder = gpu.create_command_encoder()
                for call in calls:
                    self._encode(encoder, call)
                gpu.queue.submit([encoder.finish()])
        except wgpu.errors() as error:
            return self._blame(calls, error)
        return None

    def _blame(self, calls: Sequence[Ready], error: Exception) -> Fault:
        """The fault of the first call that the GPU refuses alone. Commands that dispatch
        nothing are checked just the same."""
        device, gpu = self._device, self._device.gpu
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
                fault = fault_of(device, call.kernel.what, own, call.kernel.label)
                fault.call = call.place
                return fault
        return fault_of(device, "a batch of kernels", error)

    def _encode(self, encoder: Any, call: Ready) -> None:
        device = self._device
        for view, one in call.copies:
            staging, words = one.slot.buffer, round_up(view.nbytes, 4)
            if view.nbytes > 0:
                copied = view.slot.buffer, view.start, staging, 0, view.nbytes
                device.encode_copy(encoder, *copied)
                device.count("copied", view.nbytes)
            # The shader may have written to the padding in an earlier run.
            if one.written and one.size > words:
                encoder.clear_buffer(staging, words, one.size - words)
        call.kernel.encode(encoder, call.bound, call.groups, call.group, {})


def _explain(source: ShaderSource, error: Exception) -> tuple[str, int | None]:
    """The error of a shader with its source line, and the line's number."""
    found = wgpu.shader_error(error)
    if found is None:
        return wgpu.reason(error), None
    line, column, said = found
    where, line, column, number = place_in(source.wgsl, source.parts, line, column)
    rows = source.wgsl.split("\n")
    row = rows[line - 1] if line <= len(rows) else ""
    caret = " " * max(column - 1, 0) + "^"
    said = f"{where}:{column}: {said}"
    return f"{said}\n{row}\n{caret}{help_for(row, said)}", number
