"""IOBinding: inputs and outputs that are bound before a run."""

import ctypes
import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from dlpack_web import Tensor, from_gpu_buffer, to_host
from dlpack_web.internal import share
from dlpack_web.internal import type_of as kind_of

from . import _javascript as javascript
from ._arrays import dtype_meant
from ._values import OrtValue, named_device


class IOBinding:
    """Inputs and outputs of a session; made by `session.io_binding()`.

    Outputs bound to "webgpu" stay on the GPU, and you can bind them as inputs of the
    next run: nothing is read back.

    >>> import dlpack_web_onnxruntime as ort
    >>> session = await ort.InferenceSession.create(model)
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("x", np.ones(3, "float32"))
    >>> binding.bind_output("y")
    >>> await session.run_with_iobinding_async(binding)
    >>> binding.get_outputs()[0].numpy()
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Tensor | int] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: "np.ndarray[Any, Any]") -> None:
        """Binds an array; each run reads it."""
        self._check_input(name)
        if not hasattr(arr_on_cpu, "__array__"):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        if getattr(arr_on_cpu, "dtype", np.dtype(float)).kind in "OUST":
            raise RuntimeError("Only binding non-string Tensors is currently supported")
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an OrtValue, on the CPU or on the session's device."""
        if not self._session._feeds.has(name):
            raise RuntimeError(
                "Error when binding input: Failed to find input name in the mapping: "
                f"{name}"
            )
        if not isinstance(ortvalue, OrtValue):
            raise TypeError(f"ortvalue must be an OrtValue, not {ortvalue!r}")
        self._inputs[name] = ortvalue

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: Any,
    ) -> None:
        """Binds elements that are in memory already.

        Parameters
        ----------
        name : str
            An input's.
        device_type : str
            "cpu" or "webgpu".
        device_id : int
            As for `OrtValue.ortvalue_from_numpy`.
        element_type : dtype or int
            A NumPy type, or one of ONNX's numbers.
        shape : list of int
            The extents.
        buffer_ptr : int or GPUBuffer
            An address, such as `value.data_ptr()` or `array.ctypes.data`, which must stay valid
            as long as the binding is used; for "webgpu" a GPUBuffer of the session's device.
        """
        self._check_input(name)
        if device_type.lower() == "cpu":
            self._inputs[name] = _at(buffer_ptr, shape, element_type)
            return
        named_device(device_type, device_id)
        tensor = self._over(buffer_ptr, device_type, shape, element_type)
        self._inputs[name] = OrtValue(tensor)

    def _over(
        self, buffer: Any, device_type: str, shape: Sequence[int], element_type: Any
    ) -> Tensor:
        """A Tensor over a GPUBuffer of the session's device."""
        self._session.place(device_type)
        dtype = dtype_meant(element_type)
        return from_gpu_buffer(buffer, shape, dtype, device=self._session.device)

    def _check_input(self, name: str) -> None:
        if name not in {arg.name for arg in self._session.get_inputs()}:
            raise RuntimeError(
                f"Failed to find NodeArg with name: {name} in the def list"
            )

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: Any = None,
    ) -> None:
        """Binds an output to a device, or to existing memory.

        Parameters
        ----------
        name : str
            An output's.
        device_type : str
            "cpu" or "webgpu".
        device_id, element_type, shape, buffer_ptr
            As for `bind_input`; default: new memory.
        """
        if buffer_ptr is None:
            self._outputs[name] = self._session.place(device_type)
            return
        if element_type is None or shape is None:
            raise ValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is "
                "provided"
            )
        if device_type.lower() == "cpu":
            self._outputs[name] = share(_at(buffer_ptr, shape, element_type))
            return
        self._outputs[name] = self._over(buffer_ptr, device_type, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Writes an output into an OrtValue, which must have its shape and dtype."""
        if ortvalue.device_name() != "cpu":
            self._session.place("webgpu")
        self._outputs[name] = ortvalue.tensor

    def synchronize_inputs(self) -> None:
        """Nothing: WebGPU runs everything in the order of its submission."""

    synchronize_outputs = synchronize_inputs

    def get_outputs(self) -> list[OrtValue]:
        """The results of the last run, in the order in which outputs were bound."""
        return self._results

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> "list[np.ndarray[Any, Any]]":
        """The results as arrays; reads a GPU's back, if Python can block."""
        return [value.numpy() for value in self._results]

    async def copy_outputs_to_cpu_async(self) -> "list[np.ndarray[Any, Any]]":
        """The same, asynchronously: all with one submit and one map."""
        found = [value._tensor for value in self._results]
        arrays = iter(await to_host(*(x for x in found if isinstance(x, Tensor))))
        return [next(arrays) if isinstance(x, Tensor) else x for x in found]

    def clear_binding_inputs(self) -> None:
        """Releases all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Releases all outputs, and the last results."""
        self._outputs.clear()
        self._results = []


def _at(
    address: Any, shape: Sequence[int], element_type: Any
) -> "np.ndarray[Any, Any]":
    """An array over elements at an address in Python's memory."""
    try:
        start = index(address)
    except TypeError:
        raise TypeError(
            f"buffer_ptr must be an address (int) on the CPU, not {kind_of(address)}"
        ) from None
    dtype = np.dtype(str(dtype_meant(element_type)))
    size = math.prod(shape) * dtype.itemsize
    first = 1 if size else 0  # NULL is allowed for no elements
    if size < 0 or start < first or start + size > javascript.memory_size():
        raise RuntimeError(f"Python's memory has no {size} bytes at address {start}")
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(start)
    return np.frombuffer(memory, dtype).reshape(shape)
