"""Generated from tools/tables by `make generate`: do not edit."""

# ruff: noqa: N815
from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, TypedDict


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


class DeviceOptions(Limits, total=False):
    """Keyword arguments of `request_device`: the limits of the device by WebGPU's names,
    in bytes or counts, where math.inf requests the adapter's maximum, and:

    features
        WebGPU's names of features that the device must have, e.g. ["shader-f16"].
        Without the list: shader-f16, subgroups and timestamp-query, as far as the
        adapter has them.

    powerPreference
        Which adapter, where there are several.

    featureLevel
        With compatibility, adapters that lack parts of WebGPU's core suffice, too.

    forceFallbackAdapter
        Whether to use an adapter in software, even where there is a GPU.

    label
        Shown in error messages.

    A dict of this type can be passed as `**options`.

    Examples
    --------
    >>> options: dlw.webgpu.DeviceOptions = {"maxBufferSize": 2**28}
    >>> device = await dlw.webgpu.request_device(**options)
    >>> device.gpu.limits.maxBufferSize == 2**28
    True
    """

    features: Iterable[str]
    powerPreference: Literal["low-power", "high-performance"]
    featureLevel: Literal["core", "compatibility"]
    forceFallbackAdapter: bool
    label: str


DeviceOptions.__module__ = "dlpack_web.webgpu"  # where users find it

AdapterName = Literal[
    "arrow",
    "jax",
    "litert",
    "ndarray",
    "opencv",
    "ort",
    "tfjs",
    "three",
    "transformers",
]
# For dtypes that WGSL lacks.
NARROWER = {
    "float64": "float32",
    "complex128": "complex64",
    "int64": "int32",
    "uint64": "uint32",
}
# What to say of mistakes: see tools/tables/hints.toml.
INSTEAD = {
    "use t.to_device('webgpu'); the GPUBuffer is t.gpu_buffer": "gpu to_gpu toDevice upload",
    "use t.to_device('webgpu')": "cuda",
    "use t.to_device(device)": "to",
    "use t.to_device('cpu'), or await t.to_host()": "cpu",
    "use t.to_device(device, dtype=...), which converts, or {array}": "astype",
    "use await t.to_host()": "download get read to_cpu",
    "use t.numpy()": "values to_py",
    "use t.numpy().tolist()": "tolist to_list to_pylist",
    "use t.numpy(); in JavaScript t.js.data": "data",
    "use t.gpu_buffer, or memoryview(t) on the CPU": "buffer",
    "use t.numpy().item()": "item",
    "use t.release()": "delete dispose free close destroy",
    "use dlw.from_dlpack(t, copy=True)": "clone contiguous",
    "use dlw.from_dlpack(t, copy=True), or {array}": "copy",
    "use t.permute_dims((1, 0)), a view, or {array}": "T",
    "use t.permute_dims(...), a view, or {array}": "mT",
    "use t.permute_dims(axes), a view, or {array}": "transpose swapaxes",
    "use t.permute_dims(axes), a view": "permute",
    "use t.reshape(shape) or t[...], which are views, or {array}": "view",
    "use t.reshape(-1), a view, or {array}": "flatten ravel",
    "use t.reshape(shape), a view, or {array}": "squeeze",
    "use t[..., None], a view": "unsqueeze",
    "use t[None], a view": "expand_dims",
    "a Tensor does no arithmetic; use {way}": "fill abs argmax argmin dot max mean min sum all any argpartition argsort clip conj conjugate cumprod cumsum nonzero prod ptp repeat round sort std trace var",
    "a Tensor is only memory and has no gradient": "detach grad requires_grad",
    "use dlw.to_js(t), or t.js": "to_js toJs",
    "use t.byte_offset": "byteOffset",
    "use t.read_only": "readOnly",
    "use t.size": "numel",
    "use t.itemsize": "element_size",
    "use t.ndim": "dim",
    "use t.strides, which count elements": "stride",
    "a Tensor has no nulls: dlw.from_arrow(x, nulls='mask') returns which elements are valid": "validity",
    "use np.asarray(t), whose elements are native-endian, as DLPack's": "newbyteorder",
    "pandas needs an array here; use np.asarray(t)": "_hasna",
    "a Tensor does no arithmetic; use np.asarray(t)": "__array_namespace__",
    "use {array}": "base byteswap choose compress ctypes diagonal dump dumps flags flat getfield imag itemset partition put real resize searchsorted setfield setflags take tofile tostring",
}
ML_DTYPES = {"V1": "float8_e4m3fn", "V2": "bfloat16", "f1": "float8_e5m2"}
