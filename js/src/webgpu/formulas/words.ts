/** Names that a parameter cannot have (py/dlpack_web/_kernels/words.py has the same). */

/** WGSL 16.1: Keyword Summary. */
const KEYWORDS =
  "alias break case const const_assert continue continuing default diagnostic discard else enable " +
  "false fn for if let loop override requires return struct switch true var while";
/** WGSL 16.2: Reserved Words. */
const RESERVED =
  "NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become " +
  "cast catch class co_await co_return co_yield coherent column_major common compile " +
  "compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete " +
  "demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough " +
  "filter final finally friend from fxgroup get goto groupshared highp impl implements import inline " +
  "instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable " +
  "namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null " +
  "nullptr of operator package packoffset pass patch pixelfragment precise precision premerge " +
  "priv protected pub public readonly ref regardless register reinterpret_cast require resource " +
  "restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super " +
  "target template this thread_local throw trait try type typedef typeid typename typeof union unless " +
  "unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield";
/** What the source around a formula uses where parameters are variables. */
const OURS = "f32 i32 u32 f16 i n main array arrayLength vec3u vec4u";
/** The same in reductions. */
export const IN_REDUCTIONS = "a b vec2f vec4f vec2i vec4i vec2u vec4u";
/**
 * Types, functions and enumerants that WGSL declares. A raw parameter is a variable of the module,
 * and would take their place everywhere; others are variables of a function.
 */
const PREDECLARED = new RegExp(
  "^(?:bool|atomic|ptr|sampler|sampler_comparison|vec[234][fhiu]?|mat[234]x[234][fh]?|texture_\\w+|" +
    "read|write|read_write|function|private|workgroup|uniform|storage|" +
    "(?:texture|atomic|subgroup|quad|pack|unpack|workgroup|storage)[A-Z0-9]\\w*|dot4\\w+|" +
    "(?:dpdx|dpdy|fwidth)(?:Coarse|Fine)?|abs|a?(?:cos|sin|tan)h?|all|any|atan2|bitcast|ceil|clamp|" +
    "count(?:LeadingZeros|OneBits|TrailingZeros)|cross|degrees|determinant|distance|dot|exp2?|" +
    "extractBits|faceForward|first(?:Leading|Trailing)Bit|floor|fma|fract|frexp|insertBits|" +
    "inverseSqrt|ldexp|length|log2?|max|min|mix|modf|normalize|pow|quantizeToF16|radians|reflect|" +
    "refract|reverseBits|round|saturate|select|sign|smoothstep|sqrt|step|transpose|trunc)$",
);

/** Why a parameter cannot have a name: "it is …"; undefined if it can. */
export function reasonAgainst(name: string, raw: boolean, more: string): string | undefined {
  const isIn = (words: string) => words.split(" ").includes(name);
  if (isIn(KEYWORDS)) return "a keyword of WGSL";
  if (isIn(RESERVED)) return "a reserved word of WGSL";
  if (name.startsWith("_") || isIn(OURS) || isIn(more)) return "reserved";
  return raw && PREDECLARED.test(name) ? "declared by WGSL itself" : undefined;
}
