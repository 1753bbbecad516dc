"""Why a node test did not pass, in words that many have in common."""

from __future__ import annotations

import re

# The first that is found in what was said, in this order.
REASONS = (
    (
        "the model's IR version is newer than this onnxruntime",
        r"[Uu]nsupported model IR",
    ),
    (
        "the opset is newer than this onnxruntime",
        r"under development|only \*?guarantees\*? support|ValidateOpsetForDomain|Unrecognized attribute",
    ),
    ("no such operator", r"is not a registered function/op|No Op registered"),
    (
        "bfloat16, float8, float4, int4 or another dtype that NumPy has not",
        r"NumPy has no such dtype|can't be converted to MLDataType|Numpy_type|bfloat16|float8|float4|u?int[24]\b",
    ),
    ("float16 on a GPU without shader-f16", r"requires f16 but the device"),
    (
        "a sequence, a map or an optional",
        r"[Ss]equence|[Oo]ptional|seq\(|\bmap\b|but received a tensor",
    ),
    ("strings", r"\bstrings?\b|locale"),
    (
        "no kernel for the operator with this dtype",
        r"NOT_IMPLEMENTED|Could not find|[Nn]o kernel|not implemented|Provider type for",
    ),
    ("the model contradicts itself about shapes", r"ShapeInferenceError"),
    ("a dtype", r"dtype|[Dd]ata type|tensor\(\w+\)"),
)
BY_KIND = {
    "values": "values beyond the tolerance",
    "hung": "no answer in time",
    "died": "the runtime stopped",
    "load": "the model is refused, for another reason",
    "run": "the kernel refuses it, for another reason",
    "dtype": "bfloat16, float8, float4, int4 or another dtype that NumPy has not",
}


def reason(kind: str, detail: str) -> str:
    """ "" for what passed."""
    if kind == "passed":
        return ""
    if kind == "values":
        if re.search(r": (dtype|shape) ", detail):
            return "another dtype or shape"
        return BY_KIND[kind]
    if kind in {"hung", "died"}:
        return BY_KIND[kind]
    for text, pattern in REASONS:
        if re.search(pattern, detail):
            return text
    return BY_KIND[kind]
