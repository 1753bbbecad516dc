/** Generated from tools/tables by `make generate`: do not edit. */

/** Options of a request by WebGPU's names in its descriptor. */
export const REQUEST: Record<string, string> = {
  requiredFeatures: "features",
  requiredLimits: "each limit by its own name, for example maxBufferSize",
};

/** WebGPU's limits, by their names in `GPUSupportedLimits`. */
export type LimitName =
  | "maxBindGroups"
  | "maxBindGroupsPlusVertexBuffers"
  | "maxBindingsPerBindGroup"
  | "maxBufferSize"
  | "maxColorAttachmentBytesPerSample"
  | "maxColorAttachments"
  | "maxComputeInvocationsPerWorkgroup"
  | "maxComputeWorkgroupSizeX"
  | "maxComputeWorkgroupSizeY"
  | "maxComputeWorkgroupSizeZ"
  | "maxComputeWorkgroupsPerDimension"
  | "maxComputeWorkgroupStorageSize"
  | "maxDynamicStorageBuffersPerPipelineLayout"
  | "maxDynamicUniformBuffersPerPipelineLayout"
  | "maxImmediateSize"
  | "maxInterStageShaderVariables"
  | "maxSampledTexturesPerShaderStage"
  | "maxSamplersPerShaderStage"
  | "maxStorageBufferBindingSize"
  | "maxStorageBuffersInFragmentStage"
  | "maxStorageBuffersInVertexStage"
  | "maxStorageBuffersPerShaderStage"
  | "maxStorageTexturesInFragmentStage"
  | "maxStorageTexturesInVertexStage"
  | "maxStorageTexturesPerShaderStage"
  | "maxTextureArrayLayers"
  | "maxTextureDimension1D"
  | "maxTextureDimension2D"
  | "maxTextureDimension3D"
  | "maxUniformBufferBindingSize"
  | "maxUniformBuffersPerShaderStage"
  | "maxVertexAttributes"
  | "maxVertexBufferArrayStride"
  | "maxVertexBuffers"
  | "minStorageBufferOffsetAlignment"
  | "minUniformBufferOffsetAlignment";
/** Requested by default. */
export const DEFAULT_LIMITS = {
  maxBufferSize: Number.POSITIVE_INFINITY,
  maxStorageBufferBindingSize: Number.POSITIVE_INFINITY,
};
export const DEFAULT_FEATURES = ["shader-f16", "subgroups", "timestamp-query"];
