"""Names that a parameter cannot have (js/src/webgpu/formulas/words.ts has the same)."""

import re


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# WGSL 16.1: Keyword Summary.
_KEYWORDS = _set_of("""
    alias break case const const_assert continue continuing default diagnostic discard
    else enable false fn for if let loop override requires return struct switch true var
    while
""")
# WGSL 16.2: Reserved Words.
_RESERVED = _set_of("""
    NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto
    await become cast catch class co_await co_return co_yield coherent column_major
    common compile compile_fragment concept const_cast consteval constexpr constinit
    crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit
    export extends extern external fallthrough filter final finally friend from fxgroup
    get goto groupshared highp impl implements import inline instanceof interface layout
    lowp macro macro_rules match mediump meta mod module move mut mutable namespace new
    nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
    nullptr of operator package packoffset pass patch pixelfragment precise precision
    premerge priv protected pub public readonly ref regardless register reinterpret_cast
    require resource restrict self set shared sizeof smooth snorm static static_assert
    static_cast std subroutine super target template this thread_local throw trait try
    type typedef typeid typename typeof union unless unorm unsafe unsized use using
    varying virtual volatile wgsl where with writeonly yield
""")
# What the source around a formula uses where parameters are variables.
_OURS = _set_of("f32 i32 u32 f16 i n main array arrayLength vec3u vec4u")
#: The same in reductions.
IN_REDUCTIONS = _set_of("a b vec2f vec4f vec2i vec4i vec2u vec4u")
# Types, functions and enumerants that WGSL declares. A raw parameter is a variable of the
# module, and would take their place everywhere; others are variables of a function.
_PREDECLARED = re.compile(
    r"bool|atomic|ptr|sampler|sampler_comparison|vec[234][fhiu]?|mat[234]x[234][fh]?|"
    r"texture_\w+|read|write|read_write|function|private|workgroup|uniform|storage|"
    r"(?:texture|atomic|subgroup|quad|pack|unpack|workgroup|storage)[A-Z0-9]\w*|dot4\w+|"
    r"(?:dpdx|dpdy|fwidth)(?:Coarse|Fine)?|abs|a?(?:cos|sin|tan)h?|all|any|atan2|bitcast|"
    r"ceil|clamp|count(?:LeadingZeros|OneBits|TrailingZeros)|cross|degrees|determinant|"
    r"distance|dot|exp2?|extractBits|faceForward|first(?:Leading|Trailing)Bit|floor|fma|"
    r"fract|frexp|insertBits|inverseSqrt|ldexp|length|log2?|max|min|mix|modf|normalize|"
    r"pow|quantizeToF16|radians|reflect|refract|reverseBits|round|saturate|select|sign|"
    r"smoothstep|sqrt|step|transpose|trunc",
    re.ASCII,
)


def reason_against(name: str, raw: bool, more: frozenset[str]) -> str | None:
    """Why a parameter cannot have a name: "it is …"; None if it can."""
    if name in _KEYWORDS:
        return "a keyword of WGSL"
    if name in _RESERVED:
        return "a reserved word of WGSL"
    if name.startswith("_") or name in _OURS or name in more:
        return "reserved"
    return "declared by WGSL itself" if raw and _PREDECLARED.fullmatch(name) else None
