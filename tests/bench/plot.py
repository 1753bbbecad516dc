"""Draw build/bench.png: a panel for each path and size, a bar for each way."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from matplotlib.figure import Figure

OURS = "dlpack-web"
COLOURS = {OURS: "#0b6e69", "floor": "#b9b4a6"}
TODAY = "#d08a4e"
COLUMNS = 4


def plot(rows: list[dict], target: Path) -> None:
    """Medians with the interquartile range as whiskers; every panel has its scale."""
    panels = [
        (name, list(group))
        for name, group in groupby(rows, lambda r: (r["path"], r["bytes"]))
    ]
    lines = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(4 * COLUMNS, 2.2 * lines), layout="constrained")
    axes = list(figure.subplots(lines, COLUMNS, squeeze=False).flat)
    for axis, ((path, nbytes), group) in zip(axes, panels, strict=False):
        medians = [row["median_ms"] * 1000 for row in group]
        axis.barh(
            [row["way"] for row in group],
            medians,
            xerr=[row["iqr_ms"] * 500 for row in group],
            color=[COLOURS.get(row["way"], TODAY) for row in group],
            error_kw={"ecolor": "#555", "lw": 1},
        )
        axis.set_title(f"{path}, {nbytes:,} bytes (µs)", fontsize=10)
        axis.set_xlim(left=0)
        axis.invert_yaxis()
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.savefig(target, dpi=120)
