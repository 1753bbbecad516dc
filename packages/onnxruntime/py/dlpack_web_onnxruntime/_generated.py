"""Generated from tools/tables by `make generate`: do not edit."""

# onnxruntime-web's numbers of dtypes.
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
# Those that NumPy has.
NUMPY = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
# Its words for them, where they differ.
ONNX_WORDS = {"float32": "float", "float64": "double"}
