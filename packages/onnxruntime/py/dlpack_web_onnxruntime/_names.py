"""Names of onnxruntime: its enumerations, with the same numbers, and what has no counterpart
in a page, where using it raises the reason."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn

from ._state import unsupported


class _Named(IntEnum):
    """Printed by name, as by pybind11."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class GraphOptimizationLevel(_Named):
    """How far a graph is optimized before it runs.

    >>> import dlpack_web_onnxruntime as ort
    >>> ort.GraphOptimizationLevel.ORT_ENABLE_ALL.value
    99
    """

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Whether independent nodes may run at once; in a page they do not."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """The order of nodes, which onnxruntime-web chooses."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _made(name: str, members: dict[str, int] | str, start: int = 0) -> Any:
    made: Any = _Named
    return made(name, members, start=start)


# Enumerations of features that a page lacks: scripts may use their members.
OrtAllocatorType = _made(
    "OrtAllocatorType", "INVALID ORT_DEVICE_ALLOCATOR ORT_ARENA_ALLOCATOR", start=-1
)
OrtCompileApiFlags = _made(
    "OrtCompileApiFlags",
    "NONE ERROR_IF_NO_NODES_COMPILED ERROR_IF_OUTPUT_FILE_EXISTS",
)
OrtDeviceMemoryType = _made("OrtDeviceMemoryType", {"DEFAULT": 0, "HOST_ACCESSIBLE": 5})
OrtDeviceVendorId = IntEnum(
    "OrtDeviceVendorId",
    {
        "NONE": 0,
        "AMD": 0x1002,
        "NVIDIA": 0x10DE,
        "ARM": 0x13B5,
        "MICROSOFT": 0x1414,
        "HUAWEI": 0x19E5,
        "QUALCOMM": 0x5143,
        "INTEL": 0x8086,
    },
)
OrtExecutionProviderDevicePolicy = _made(
    "OrtExecutionProviderDevicePolicy",
    "DEFAULT PREFER_CPU PREFER_NPU PREFER_GPU MAX_PERFORMANCE MAX_EFFICIENCY "
    "MIN_OVERALL_POWER",
)
OrtHardwareDeviceType = _made("OrtHardwareDeviceType", "CPU GPU NPU")
OrtMemType = _made(
    "OrtMemType", {"CPU_INPUT": -2, "CPU_OUTPUT": -1, "CPU": -1, "DEFAULT": 0}
)
OrtMemoryInfoDeviceType = _made(
    "OrtMemoryInfoDeviceType", {"CPU": 0, "GPU": 1, "NPU": 3, "FPGA": 2}
)
OrtSparseFormat = _made(
    "OrtSparseFormat",
    {
        "ORT_SPARSE_UNDEFINED": 0,
        "ORT_SPARSE_COO": 1,
        "ORT_SPARSE_CSRC": 2,
        "ORT_SPARSE_BLOCK_SPARSE": 4,
    },
)


_NATIVE = "it is for native execution providers; a page has only WebGPU and WebAssembly"
_PACKAGES = "onnxruntime-web does not read model packages: load the .onnx file inside"
# name -> reason.
REASONS = {
    "AdapterFormat": "onnxruntime-web does not support LoRA adapters",
    "LoraAdapter": "onnxruntime-web does not support LoRA adapters",
    "ModelCompiler": "onnxruntime-web does not compile models: compile them on the desktop",
    "ModelPackage": _PACKAGES,
    "ModelPackageComponentContext": _PACKAGES,
    "ModelPackageContext": _PACKAGES,
    "ModelPackageOptions": _PACKAGES,
    "ModelPackageWriteMode": _PACKAGES,
    "OrtArenaCfg": "the memory of a page has no arenas to configure",
    "OrtEpAssignedNode": _NATIVE,
    "OrtEpAssignedSubgraph": _NATIVE,
    "OrtEpContextData": _NATIVE,
    "OrtEpContextDataBuffer": _NATIVE,
    "OrtEpDevice": _NATIVE,
    "OrtExternalInitializerInfo": "onnxruntime-web does not compile models",
    "OrtHardwareDevice": _NATIVE,
    "OrtMemoryInfo": "the memory of a page has no allocators to choose from",
    "OrtSyncStream": "WebGPU has one queue, which runs everything in order",
    "SessionIOBinding": "use session.io_binding()",
    "SparseTensor": "onnxruntime-web has no sparse tensors: feed a dense array",
    "create_and_register_allocator": "the memory of a page has no allocators to choose from",
    "create_and_register_allocator_v2": "the memory of a page has no allocators to choose from",
    "get_ep_devices": _NATIVE,
    "register_execution_provider_library": "a page cannot load native libraries",
    "set_default_logger_callback": "onnxruntime-web logs to the page's console",
    "unregister_execution_provider_library": "a page cannot load native libraries",
}
# Methods of InferenceSession.
METHODS = {
    "get_input_epdevices": _NATIVE,
    "get_input_memory_infos": "the memory of a page has no allocators to choose from",
    "get_output_memory_infos": "the memory of a page has no allocators to choose from",
    "get_provider_graph_assignment_info": "onnxruntime-web does not report which nodes run where",
    "set_ep_dynamic_options": "the providers of a page have no options that change",
}


def refused(name: str, why: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplemented with the reason."""

    def function(*args: Any, **options: Any) -> NoReturn:
        raise unsupported(f"{name} is not available in a page: {why}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplemented: {why}."
    return function


class _Refused(type):
    """A class whose calls and members raise the reason why it is missing."""

    def __call__(cls, *args: Any, **options: Any) -> NoReturn:
        refused(cls.__name__, REASONS[cls.__name__])()

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refused(f"{cls.__name__}.{name}", REASONS[cls.__name__])()


REFUSED = {
    name: _Refused(name, (), {"__doc__": f"Not available in a page: {why}."})
    if name[0].isupper()
    else refused(name, why)
    for name, why in REASONS.items()
}


class RefusedMethods:
    """The methods of a session without a counterpart in a page."""

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return refused(name, METHODS[name])
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            name=name,
            obj=self,
        )
