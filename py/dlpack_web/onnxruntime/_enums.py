"""onnxruntime's enumerations, with the same numbers."""

from enum import IntEnum
from typing import Any


class _Named(IntEnum):
    """Printed by name, as by pybind11."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class GraphOptimizationLevel(_Named):
    """How far a graph is optimized before it runs.

    >>> from dlpack_web import onnxruntime as ort
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


def _made(name: str, members: dict[str, int]) -> Any:
    made: Any = _Named
    return made(name, members)


# Enumerations of features that a page lacks: scripts may use their members.
OrtAllocatorType = _made(
    "OrtAllocatorType",
    {"INVALID": -1, "ORT_DEVICE_ALLOCATOR": 0, "ORT_ARENA_ALLOCATOR": 1},
)
OrtCompileApiFlags = _made(
    "OrtCompileApiFlags",
    {"NONE": 0, "ERROR_IF_NO_NODES_COMPILED": 1, "ERROR_IF_OUTPUT_FILE_EXISTS": 2},
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
    {
        "DEFAULT": 0,
        "PREFER_CPU": 1,
        "PREFER_NPU": 2,
        "PREFER_GPU": 3,
        "MAX_PERFORMANCE": 4,
        "MAX_EFFICIENCY": 5,
        "MIN_OVERALL_POWER": 6,
    },
)
OrtHardwareDeviceType = _made("OrtHardwareDeviceType", {"CPU": 0, "GPU": 1, "NPU": 2})
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
