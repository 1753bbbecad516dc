"""The keyword arguments of `request_device`."""

from collections.abc import Iterable
from typing import Literal, TypedDict


class DeviceOptions(TypedDict, total=False):
    """Keyword arguments of `request_device`, by WebGPU's names: features, powerPreference
    and label of the device, and its limits. Sizes are bytes; math.inf requests the
    adapter's maximum. A dict of this type can be passed as `**options`.

    >>> options: dlw.webgpu.DeviceOptions = {"maxBufferSize": 2**28}
    >>> device = await dlw.webgpu.request_device(**options)
    >>> device.gpu.limits.maxBufferSize == 2**28
    True
    """

    features: Iterable[str]
    powerPreference: Literal["low-power", "high-performance"]
    label: str
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
