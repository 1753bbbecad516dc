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
/** Options beside the limits. */
export interface Options {
  /** WebGPU's names of features that the device must have, e.g. ["shader-f16"]. Without the list: shader-f16, subgroups and timestamp-query, as far as the adapter has them. */
  features?: (Iterable<string> & object) | undefined;
  /** Which adapter, where there are several. */
  powerPreference?: "low-power" | "high-performance" | undefined;
  /** With compatibility, adapters that lack parts of WebGPU's core suffice, too. */
  featureLevel?: "core" | "compatibility" | undefined;
  /** Whether to use an adapter in software, even where there is a GPU. */
  forceFallbackAdapter?: boolean | undefined;
  /** Shown in error messages. */
  label?: string | undefined;
}
/** The kind of each, and what it must be. */
export const OPTIONS: Record<string, readonly [kind: string | readonly string[], needed: string]> =
  {
    features: ["names", 'a list of names: ["shader-f16"]'],
    powerPreference: [["low-power", "high-performance"], "low-power or high-performance"],
    featureLevel: [["core", "compatibility"], "core or compatibility"],
    forceFallbackAdapter: ["flag", "a boolean"],
    label: ["text", "a string"],
  };
/** Those that requestAdapter() takes. */
export const OF_ADAPTER: readonly string[] = [
  "powerPreference",
  "featureLevel",
  "forceFallbackAdapter",
];
