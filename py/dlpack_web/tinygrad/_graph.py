"""What TinyJit has captured, as a Batch: one submit, without Python for each kernel."""

from typing import Any

from tinygrad.engine.jit import GraphRunner

from .._kernels.batch import batch
from .._tensor.tensor import Tensor
from ._place import place


class Graph(GraphRunner):
    """Recorded kernels. Inputs, numbers and sizes that changed are updated before a
    run."""

    def __init__(self, linear: Any, input_uops: tuple[Any, ...] = ()) -> None:
        super().__init__(linear, input_uops)
        #: (call, position of the argument, number of the input, the tensor there)
        self._inputs: list[tuple[int, int, int, Tensor]] = []
        #: For each call how many buffers come before its numbers.
        self._buffers: list[int] = []
        with batch() as self._batch:
            for call, (_, ast, bufs, fixed) in enumerate(self.calls):
                program = ast.arg
                values = dict.fromkeys((*self.vars, *program.runtimevars), 1) | fixed
                sizes, local = program.launch_dims(values)
                tensors = [bufs[i]._buf for i in program.globals]
                self.runtimes[call](
                    *tensors,
                    global_size=sizes,
                    local_size=local,
                    vals=program.vals(values),
                )
                self._buffers.append(len(tensors))
                for position, number in self.uop_replace[call]:
                    if position in program.globals:
                        at = program.globals.index(position)
                        self._inputs.append((call, at, number, tensors[at]))

    def __call__(
        self, input_uops: tuple[Any, ...], var_vals: dict[str, int], wait: bool = False
    ) -> float | None:
        changes: dict[int, dict[int, Any]] = {}
        for i, (call, at, number, before) in enumerate(self._inputs):
            tensor = input_uops[number].buffer.ensure_allocated()._buf
            if tensor is not before:
                changes.setdefault(call, {})[1 + at] = tensor
                self._inputs[i] = call, at, number, tensor
        for call, i, value in self.updated_vars(var_vals):
            changes.setdefault(call, {})[1 + self._buffers[call] + i] = value
        sizes = {call: size for call, size, _ in self.updated_launch_dims(var_vals)}
        for call in {*changes, *sizes}:
            groups = tuple(map(int, sizes[call])) if call in sizes else None
            self._batch.update(call, changes.get(call), workgroups=groups)
        if wait:
            return place().elapsed(self._batch.run)
        self._batch.run()
        return None
