"""The names of DLPack's dtypes, and what NumPy has for them.

A dtype travels as one integer, the four bytes of a `DLDataType`: code, bits and, from
bit 16 on, lanes. Vectors are named as in "float32x4".
"""

from functools import cache

# Codes and widths of DLPack 1.3; the names are the array API's and those of ml_dtypes.
_NAMES = {
    (6, 8): "bool",
    **{(0, bits): f"int{bits}" for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)},
    **{(5, bits): f"complex{bits}" for bits in (32, 64, 128)},
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn",
    (16, 6): "float6_e3m2fn",
    (17, 4): "float4_e2m1fn",
}
_TRIPLES = {name: triple for triple, name in _NAMES.items()}


@cache
def dtype_name(packed: int) -> str:
    """The name of a dtype: "float32", or "float32x4" with lanes."""
    lanes = packed >> 16
    name = _NAMES[packed & 0xFF, packed >> 8 & 0xFF]
    return name if lanes == 1 else f"{name}x{lanes}"


def bytes_of(packed: int, size: int, padded: bool) -> int:
    """Bytes of so many elements; DLPack: size * bits * lanes / 8, rounded up."""
    bits = 8 if padded else (packed >> 8 & 0xFF) * (packed >> 16)
    return -(-size * bits // 8)


def split_name(name: str) -> tuple[str, int]:
    """The name of one lane, and how many there are."""
    scalar, _, lanes = name.rpartition("x")
    if scalar in _TRIPLES and lanes.isdecimal() and lanes[0] != "0":
        return scalar, int(lanes)
    return name, 1


def element_bits(name: str) -> int:
    """Bits of one lane, both parts of a complex number together."""
    return _TRIPLES[split_name(name)[0]][1]


def is_dtype(name: object) -> bool:
    """Whether DLPack has a scalar dtype of that name."""
    return name in _TRIPLES


@cache
def pack_dtype(name: str) -> int:
    """The integer for a name; TypeError lists what there is."""
    scalar, lanes = split_name(name)
    if scalar not in _TRIPLES or lanes > 0xFFFF or (lanes == 1) != (scalar == name):
        raise TypeError(
            f"unknown dtype {name!r}: 'bool', 'int1' to 'int64', 'uint1' to 'uint64', "
            "'float16' to 'float64', 'complex32' to 'complex128', 'bfloat16', DLPack's "
            "floats of 8, 6 and 4 bits, and vectors such as 'float32x4' are supported"
        )
    code, bits = _TRIPLES[scalar]
    return code | bits << 8 | lanes << 16
