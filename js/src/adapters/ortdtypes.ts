/** The dtypes that onnxruntime-web has on WebGPU. */
export const ON_GPU = [
  "float32",
  "float16",
  "int32",
  "int64",
  "uint32",
  "uint8",
  "bool",
  "int4",
  "uint4",
];

/** The dtypes that it has on the CPU. */
export const ON_CPU = [...ON_GPU, "int8", "int16", "uint16", "uint64", "float64"];
