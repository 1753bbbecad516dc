"""Figures in words, for tables and plots."""


def size(nbytes: int) -> str:
    return f"{nbytes >> 20} MB" if nbytes >= 1 << 20 else f"{nbytes} B"


def human(ms: float) -> str:
    """1.25e-4 -> '125 ns'."""
    for unit, scale in (("ns", 1e6), ("µs", 1e3)):
        if ms * scale < 1000:
            return f"{ms * scale:.3g} {unit}"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"
