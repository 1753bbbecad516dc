"""Generated from tools/tables by `make generate`: do not edit."""

# ruff: noqa: N815
from enum import IntEnum
from typing import TypedDict


class DLDeviceType(IntEnum):
    """Types of device, with the names and values of DLPack 1.3 and, from kDLTPU on, of
    its main branch.

    >>> dlw.DLDeviceType.kDLWebGPU.value
    15
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18
    kDLTPU = 19
    kDLTPUHost = 20
    kDLAscend = 21


HOST_DEVICES = {
    DLDeviceType.kDLCPU,
    DLDeviceType.kDLCUDAHost,
    DLDeviceType.kDLROCMHost,
    DLDeviceType.kDLCUDAManaged,
    DLDeviceType.kDLTPUHost,
}
MAX_NDIM = 64
NPY = {
    "bool": "b1",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
}
SAFETENSORS = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
SUB_BYTE = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
ONNX = {
    "float32": 1,
    "float16": 10,
    "int32": 6,
    "int64": 7,
    "uint32": 12,
    "uint8": 2,
    "bool": 9,
    "int4": 22,
    "uint4": 21,
    "int8": 3,
    "int16": 5,
    "uint16": 4,
    "uint64": 13,
    "float64": 11,
    "string": 8,
}
ONNX_WORDS = {"float32": "float", "float64": "double"}


class Limits(TypedDict, total=False):
    """WebGPU's limits."""

    maxBindGroups: float
    maxBindGroupsPlusVertexBuffers: float
    maxBindingsPerBindGroup: float
    maxBufferSize: float
    maxColorAttachmentBytesPerSample: float
    maxColorAttachments: float
    maxComputeInvocationsPerWorkgroup: float
    maxComputeWorkgroupSizeX: float
    maxComputeWorkgroupSizeY: float
    maxComputeWorkgroupSizeZ: float
    maxComputeWorkgroupsPerDimension: float
    maxComputeWorkgroupStorageSize: float
    maxDynamicStorageBuffersPerPipelineLayout: float
    maxDynamicUniformBuffersPerPipelineLayout: float
    maxImmediateSize: float
    maxInterStageShaderVariables: float
    maxSampledTexturesPerShaderStage: float
    maxSamplersPerShaderStage: float
    maxStorageBufferBindingSize: float
    maxStorageBuffersInFragmentStage: float
    maxStorageBuffersInVertexStage: float
    maxStorageBuffersPerShaderStage: float
    maxStorageTexturesInFragmentStage: float
    maxStorageTexturesInVertexStage: float
    maxStorageTexturesPerShaderStage: float
    maxTextureArrayLayers: float
    maxTextureDimension1D: float
    maxTextureDimension2D: float
    maxTextureDimension3D: float
    maxUniformBufferBindingSize: float
    maxUniformBuffersPerShaderStage: float
    maxVertexAttributes: float
    maxVertexBufferArrayStride: float
    maxVertexBuffers: float
    minStorageBufferOffsetAlignment: float
    minUniformBufferOffsetAlignment: float


DEFAULT_LIMITS = ("maxBufferSize", "maxStorageBufferBindingSize")
DEFAULT_FEATURES = ("shader-f16", "subgroups", "timestamp-query")
