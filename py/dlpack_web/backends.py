"""The GPU backends, for packages beside dlpack_web, without a promise between minor versions.

A backend does the GPU work of its devices; `dlpack_web.webgpu` is over them. Another one is a
driver: classes over those here, which check, bind, record and keep deferred errors, and know
no GPU's API. Pyodide has no drivers, and lacks them.

A driver of a GPU that this process uses derives:

- `Device`, of a GPUDevice: `make`, `write`, `clear`, `copy`, `stage` (with a `Staged`) and `settle`
  do its work, and `errors` and `reason` say which exceptions are the GPU's.
- `Kernel`: `_compile` gets a `ShaderSource` and sets `fault` (`fault_of`) if the GPU refuses it;
  `_dispatch` runs it with each argument as a `Bound`.
- `Batch`: `_submit` runs its calls.
- `Backend`: `kernel_type`, `batch_type`, `features`, and `request_device`, whose options a
  `Request` checks. `register` gives a device its number, by which tensors find the backend.

A driver of a GPU elsewhere sends each operation there, after the same checks: its `Backend`
overrides `empty`, `upload`, `write` and `read`, which use `View`, the properties of a tensor, and
make tensors by `Slot.tensor`; its kernels use `Kernel.check`, and its batches are `Calls`, each
a `Recorded`.
"""

import sys

from ._backends import default, owner

if sys.platform != "emscripten":
    from ._backends.checks import ShaderSource
    from ._backends.model.backend import Backend
    from ._backends.model.buffers.table import Slot
    from ._backends.model.buffers.views import View, step_of
    from ._backends.model.device.device import Device, Staged
    from ._backends.model.device.request import Request
    from ._backends.model.errors.operations import fault_of
    from ._backends.model.kernels.arguments import Bound
    from ._backends.model.kernels.batch import Batch, Calls, Recorded
    from ._backends.model.kernels.kernels import Kernel

__all__ = [
    "Backend",
    "Batch",
    "Bound",
    "Calls",
    "Device",
    "Kernel",
    "Recorded",
    "Request",
    "ShaderSource",
    "Slot",
    "Staged",
    "View",
    "default",
    "fault_of",
    "owner",
    "step_of",
]
