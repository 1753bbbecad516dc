"""NaN, infinities and large integers on WebGPU, as tinygrad has them on its CPU device.

WGSL's implementations may assume that there are none (WGSL, "Floating Point
Evaluation"). SwiftShader's exp2(NaN) is infinity and its log2(-1) is 0; `!=` of NaN is
false over wgpu and Dawn; and f32 converts to i32 by clamping. So NaN is found by its
bits, and `!=` is written by `==`.

tinygrad holds integers of 8 and 16 bits in words of 32, and emulated floats in wider ones.
Each result is brought back to its dtype here: integers wrap, floats are rounded.
"""

from typing import Any

from tinygrad.codegen.decomp import dtype as decompositions
from tinygrad.dtype import DType, dtypes
from tinygrad.renderer import wgsl
from tinygrad.uop import GroupOp
from tinygrad.uop.ops import Ops, PatternMatcher, UOp, UPat

_IS_NAN = "(bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u"
_FUNCTIONS = {
    "exp2_": f"fn exp2_(x: f32) -> f32 {{ return select(exp2(x), x, {_IS_NAN}); }}",
    "log2_": "fn log2_(x: f32) -> f32 { return select(select(log2(x), -INFINITY, x == 0.0), "
    f"nan(), x < 0.0 || {_IS_NAN}); }}",
}


def _called(name: str) -> Any:
    """Renders a call of one of the functions, in float32."""

    def render(x: str, dtype: DType) -> str:
        return f"{name}({x})" if dtype == dtypes.float32 else f"f16({name}(f32({x})))"

    return render


code_for_op = {
    **wgsl.WGSLRenderer.code_for_op,
    Ops.EXP2: _called("exp2_"),
    Ops.LOG2: _called("log2_"),
}
_SMALL = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)
# Of elements within their dtype, the others' results are within, too.
_LEAVES = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.CDIV, Ops.CAST)


def _wrapped(ctx: Any, x: UOp) -> str | None:
    """A result of 8 or 16 bits in its word: its low bits, with their sign."""
    unsigned, away = x.dtype in dtypes.uints, 32 - x.dtype.bitsize
    if x.src[0].op is Ops.CONST and not (unsigned and x.src[0].val < 0):
        return None  # a number, or tinygrad's mask
    text = wgsl.WGSLRenderer.string_rewrite.rewrite(x, ctx=ctx)
    if unsigned:
        return f"({text}&{2**32 - 1 >> away}u)"
    return f"(({text}<<{away}u)>>{away}u)"


string_rewrite = (
    PatternMatcher(
        [
            (UPat(_LEAVES, _SMALL, name="x"), _wrapped),
            (
                UPat(Ops.CMPNE, src=(UPat.var("a", dtypes.floats), UPat.var("b"))),
                lambda ctx, a, b: f"(!({ctx[a]}=={ctx[b]}))",
            ),
        ]
    )
    + wgsl.WGSLRenderer.string_rewrite
)

# wgpu cannot read the bits of a float16.
extra_matcher = (
    PatternMatcher(
        [
            (
                UPat.var("a", dtypes.half) != UPat.var("a"),
                lambda a: wgsl.is_nan(a.cast(dtypes.float32)),
            ),
            (
                UPat.var("a", dtypes.half).alu(Ops.CMPEQ, UPat.var("a")),
                lambda a: wgsl.is_nan(a.cast(dtypes.float32)).ne(True),
            ),
        ]
    )
    + wgsl.WGSLRenderer.extra_matcher
)


def with_functions(source: str) -> str:
    """A shader with the functions that it calls."""
    called = [text for name, text in _FUNCTIONS.items() if f"{name}(" in source]
    return source.replace("fn nan()", "\n".join([*called, "fn nan()"]), 1)


# --- int64 from floats --------------------------------------------------------------------

_theirs: Any = decompositions.l2i


def _words(x: UOp, dtype: DType) -> tuple[UOp, UOp]:
    """A float as the low and the high word of an integer of 64 bits: of its magnitude,
    which is exact, and negated as an integer."""
    x = x.cast(dtypes.float32)
    negative = x < 0
    size = negative.where(-x, x)
    high = (size / 2**32).cast(dtypes.uint)
    low = (size - high.cast(dtypes.float32) * 2**32).cast(dtypes.uint)
    minus = _theirs(Ops.NEG, dtypes.uint, low, high)
    word = decompositions.l2i_dt[dtype]
    return (
        negative.where(minus[0], low).bitcast(word),
        negative.where(minus[1], high).bitcast(word),
    )


def _split(op: Ops, dtype: DType, *uops: UOp) -> Any:
    """tinygrad's operation on pairs of words; its conversion of a float takes the
    float's low 32 bits for what u32(x) gives, which WGSL clamps."""
    is_long = dtype in decompositions.l2i_dt
    if op is Ops.CAST and is_long and uops[0].dtype in dtypes.floats:
        return _words(uops[0], dtype)
    return _theirs(op, dtype, *uops)


# --- floats that are emulated -------------------------------------------------------------

_ROUNDED = GroupOp.ALU - GroupOp.Comparison - {Ops.WHERE, Ops.MAX, Ops.NEG}


def _rounded(x: UOp, dtype: DType) -> UOp:
    """A number of a wider dtype as it is in `dtype`, whose subnormal ones are 0."""
    (wide, most), (narrow, few) = dtypes.finfo(x.dtype), dtypes.finfo(dtype)
    bits, away = x.bitcast(decompositions.f2f_dt[x.dtype]), most - few
    near = (decompositions.rne(bits, away) << away).bitcast(x.dtype)
    if narrow < wide:
        least = 2.0 ** (1 - decompositions.exponent_bias(dtype))
        near = ((near < least) & (near > -least)).where(x.const_like(0), near)
    return x.ne(x).where(x, decompositions.f2f_clamp(near, dtype))


def _computed(ctx: Any, x: UOp) -> UOp | None:
    narrow, wide = ctx
    if x.dtype != narrow:
        return None
    if x.op is Ops.CAST:
        return _rounded(x.src[0].cast(wide), narrow)
    sources = (s.cast(wide) if s.dtype == narrow else s for s in x.src)
    return _rounded(UOp(x.op, src=tuple(sources), arg=x.arg, tag=x.tag), narrow)


float_decompositions = (
    PatternMatcher([(UPat((*_ROUNDED, Ops.CAST), dtypes.floats, name="x"), _computed)])
    + decompositions.pm_float_decomp
)


def teach() -> None:
    """Makes tinygrad's conversions of floats to 64 bits, for devices without such
    integers, exact, and its emulated floats rounded."""
    decompositions.l2i = _split
    decompositions.pm_float_decomp = float_decompositions
