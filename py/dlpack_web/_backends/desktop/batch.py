"""Batches of kernels over wgpu-py: one submit for all of their calls."""

from collections.abc import Sequence
from typing import Any

from ..model import batch
from ..model.batch import Ready
from ..model.faults import Fault
from ..model.views import round_up
from ..model.work import fault_of
from . import wgpu
from .device import Record


class Batch(batch.Batch):
    _record: Record

    def _submit(self, calls: Sequence[Ready]) -> Fault | None:
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

    def _blame(self, calls: Sequence[Ready], error: Exception) -> Fault:
        """The fault of the first call that the GPU refuses alone. Commands that dispatch
        nothing are checked just the same."""
        record, gpu = self._record, self._record.gpu
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
                fault = fault_of(record, call.kernel.what, own, call.kernel.label)
                fault.call = call.place
                return fault
        return fault_of(record, "a batch of kernels", error)

    def _encode(self, encoder: Any, call: Ready) -> None:
        record = self._record
        for view, one in call.asides:
            aside, words = one.slot.buffer, round_up(view.nbytes, 4)
            if view.nbytes > 0:
                copied = view.slot.buffer, view.start, aside, 0, view.nbytes
                record.encode_copy(encoder, *copied)
                record.count("copied", view.nbytes)
            # The shader may have written to the padding in an earlier run.
            if one.written and one.size > words:
                encoder.clear_buffer(aside, words, one.size - words)
        call.kernel.encode(encoder, call.bound, call.groups, call.group, {})
