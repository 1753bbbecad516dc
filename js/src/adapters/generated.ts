/** Generated from tools/tables by `make generate`: do not edit. */

/** The dtypes of onnxruntime-web on WebGPU. */
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

/** Those on the CPU. */
export const ON_CPU = [
  "float32",
  "float16",
  "int32",
  "int64",
  "uint32",
  "uint8",
  "bool",
  "int4",
  "uint4",
  "int8",
  "int16",
  "uint16",
  "uint64",
  "float64",
];
