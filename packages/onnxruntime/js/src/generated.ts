/** Generated from tools/tables by `make generate`: do not edit. */

/** onnxruntime's words for TensorProto.DataType. */
export const ELEMENTS: Record<string, string> = {
  "1": "float",
  "10": "float16",
  "6": "int32",
  "7": "int64",
  "12": "uint32",
  "2": "uint8",
  "9": "bool",
  "22": "int4",
  "21": "uint4",
  "3": "int8",
  "5": "int16",
  "4": "uint16",
  "13": "uint64",
  "11": "double",
  "8": "string",
  "14": "complex64",
  "15": "complex128",
  "16": "bfloat16",
  "17": "float8e4m3fn",
  "18": "float8e4m3fnuz",
  "19": "float8e5m2",
  "20": "float8e5m2fnuz",
  "23": "float4e2m1",
};
