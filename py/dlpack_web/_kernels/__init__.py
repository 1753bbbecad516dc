"""Generated from tools/tables by `make generate`: do not edit."""

# ruff: noqa: SIM905
RESERVED = frozenset(
    r"""alias break case const const_assert continue continuing default diagnostic discard else
enable false fn for if let loop override requires return struct switch true var while
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await
become cast catch class co_await co_return co_yield coherent column_major common compile
compile_fragment concept const_cast consteval constexpr constinit crate debugger
decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends
extern external fallthrough filter final finally friend from fxgroup get goto
groupshared highp impl implements import inline instanceof interface layout lowp macro
macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept
noinline nointerpolation non_coherent noncoherent noperspective null nullptr of operator
package packoffset pass patch pixelfragment precise precision premerge priv protected
pub public readonly ref regardless register reinterpret_cast require resource restrict
self set shared sizeof smooth snorm static static_assert static_cast std subroutine
super target template this thread_local throw trait try type typedef typeid typename
typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where
with writeonly yield""".split()
)
OURS = frozenset(r"""f32 i32 u32 f16 i n main array arrayLength vec3u vec4u""".split())
IN_REDUCTIONS = frozenset(r"""a b vec2f vec4f vec2i vec4i vec2u vec4u""".split())
PREDECLARED = frozenset(
    r"""bool atomic ptr sampler sampler_comparison vec[234][fhiu]? mat[234]x[234][fh]?
texture_\w+ read write read_write function private workgroup uniform storage
(?:texture|atomic|subgroup|quad|pack|unpack|workgroup|storage)[A-Z0-9]\w* dot4\w+
(?:dpdx|dpdy|fwidth)(?:Coarse|Fine)? abs a?(?:cos|sin|tan)h? all any atan2 bitcast ceil
clamp count(?:LeadingZeros|OneBits|TrailingZeros) cross degrees determinant distance dot
exp2? extractBits faceForward first(?:Leading|Trailing)Bit floor fma fract frexp
insertBits inverseSqrt ldexp length log2? max min mix modf normalize pow quantizeToF16
radians reflect refract reverseBits round saturate select sign smoothstep sqrt step
transpose trunc""".split()
)
