"""DLPack for the browser: NumPy, JavaScript and WebGPU share tensors.

A `Tensor` is one hold on the memory of a tensor: of a NumPy array, a JavaScript typed
array or a GPUBuffer. Nothing is copied unless the docstring says so. In CPython without
a browser everything but JavaScript works; WebGPU then needs the package wgpu.
"""

try:
    from . import _core  # noqa: F401 - only to see whether it loads
except ImportError as error:
    if "interpreter" in str(error):
        raise  # CPython's message, and ours, for sub-interpreters
    from sysconfig import get_platform

    raise ImportError(
        f"the C extension of this dlpack_web cannot be loaded on {get_platform()} "
        f"({error}): it was built for another ABI; install a wheel for this one, or "
        "build it from source. In the browser, use Pyodide 0.29 or newer"
    ) from None

from . import _moved as _moved
from . import webgpu
from ._adapters import Adapter, adapter
from ._arrow import Masked, from_arrow, to_arrow
from ._backends import features
from ._core import CopyError, DeviceLostError, KernelError, ReleasedError, live_tensors
from ._files.open import TensorFile, TensorInfo, TensorPart, open
from ._files.save import save
from ._layout import DLDeviceType
from ._layout.dtype import DType
from ._tensor.device import Device
from ._tensor.inspect import inspect
from ._tensor.making import empty, from_gpu_buffer, from_js, to_host, to_js
from ._tensor.tensor import Tensor, from_buffer, from_dlpack
from ._traceback import shorten_tracebacks as _shorten_tracebacks

#: The version of the package.
__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "CopyError",
    "DLDeviceType",
    "DType",
    "Device",
    "DeviceLostError",
    "KernelError",
    "Masked",
    "ReleasedError",
    "Tensor",
    "TensorFile",
    "TensorInfo",
    "TensorPart",
    "__version__",
    "adapter",
    "empty",
    "features",
    "from_arrow",
    "from_buffer",
    "from_dlpack",
    "from_gpu_buffer",
    "from_js",
    "inspect",
    "live_tensors",
    "open",
    "save",
    "to_arrow",
    "to_host",
    "to_js",
    "webgpu",
]

_shorten_tracebacks()
