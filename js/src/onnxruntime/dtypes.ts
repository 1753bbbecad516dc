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
