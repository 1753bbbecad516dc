"""Generated from tools/tables by `make generate`: do not edit."""

# ruff: noqa: SIM905
RESERVED = frozenset(
    """alias break case const const_assert continue continuing default diagnostic discard else
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
OURS = frozenset("""f32 i32 u32 f16 i n main array arrayLength vec3u vec4u""".split())
IN_REDUCTIONS = frozenset("""a b vec2f vec4f vec2i vec4i vec2u vec4u""".split())
IN_MODULE = frozenset(
    """min workgroupBarrier uniform storage workgroup read read_write""".split()
)
