"""NaN, infinities and large integers on WebGPU, as tinygrad has them on its CPU device.

WGSL's implementations may assume that there are none (WGSL, "Floating Point
Evaluation"). SwiftShader's exp2(NaN) is infinity and its log2(-1) is 0; `!=` of NaN is
false over wgpu and Dawn; and f32 converts to i32 by clamping. So NaN is found by its
bits, and `!=` is written by `==`.
"""

from typing import Any

from tinygrad.codegen.decomp import dtype as decompositions
from tinygrad.dtype import DType, dtypes
from tinygrad.renderer import wgsl
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
string_rewrite = (
    PatternMatcher(
        [
            (
                UPat(Ops.CMPNE, src=(UPat.var("a", dtypes.floats), UPat.var("b"))),
                lambda ctx, a, b: f"(!({ctx[a]}=={ctx[b]}))",
            )
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


def teach() -> None:
    """Makes tinygrad's conversions of floats to 64 bits, for devices without such
    integers, exact."""
    decompositions.l2i = _split
