"""Draw build/bench.png, a panel for each comparison and a bar for each way, and
tests/bench/results.svg, what the README shows of it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from textwrap import fill

import matplotlib
from matplotlib.figure import Figure
from words import size

OURS = "dlpack-web"
COLD = f"{OURS}, cold"
COLOURS = {
    OURS: "#0b6e69",
    COLD: "#6fa8a4",
    "floor": "#b9b4a6",
    "floor, cold": "#d5d1c4",
}
TODAY = "#d08a4e"
COLUMNS = 4


UNITS = (
    ("ms", 1),
    ("µs", 1e3),
    ("ns", 1e6),
)  # the first in which the longest bar is >= 1


def colour(way: str) -> str:
    """Ours, in its several ways, the floor's, or that of today's ways."""
    other = COLOURS[OURS] if way.startswith(OURS) else TODAY
    return COLOURS.get(way, other)


def panels(rows: list[dict]) -> list[tuple[str, list[dict]]]:
    """What was compared with each other, with its name."""

    def title(row: dict) -> str:
        usual = {"layout": "contiguous", "where": "page"}  # goes without saying
        told = [row[key] for key in usual if row[key] != usual[key]]
        return ", ".join([row["path"], *told, size(row["bytes"])])

    return [(name, list(group)) for name, group in groupby(rows, title)]


def plot(rows: list[dict], target: Path) -> None:
    """Medians with the interquartile range as whiskers; every panel has its scale."""
    groups = panels(rows)
    lines = -(-len(groups) // COLUMNS)
    figure = Figure(figsize=(5 * COLUMNS, 2.4 * lines), layout="constrained")
    axes = list(figure.subplots(lines, COLUMNS, squeeze=False).flat)
    for axis, (title, group) in zip(axes, groups, strict=False):
        longest = max(row["median_ms"] for row in group)
        unit, scale = next(each for each in UNITS if longest * each[1] >= 1)
        axis.barh(
            [fill(row["way"], 28) for row in group],
            [row["median_ms"] * scale for row in group],
            xerr=[row["iqr_ms"] / 2 * scale for row in group],
            color=[colour(row["way"]) for row in group],
            error_kw={"ecolor": "#555", "lw": 1},
        )
        axis.set_title(f"{title} ({unit})", fontsize=10)
        axis.set_xlim(left=0)
        axis.invert_yaxis()
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(groups) :]:
        axis.set_axis_off()
    figure.savefig(target, dpi=120)


def summarise(rows: list[dict], target: Path) -> None:
    """The best of today's ways and the floor, as multiples of our time, for each panel:
    warm, and cold where that was measured."""
    shown = []
    for title, group in panels(rows):
        times = {row["way"]: row["median_ms"] for row in group}
        today = [
            time for way, time in times.items() if not way.startswith((OURS, "floor"))
        ]
        for ours, floor, name in (
            (OURS, "floor", title),
            (COLD, "floor, cold", f"{title}, cold"),
        ):
            if today and ours in times:
                best, least = min(today), times.get(floor, 0)
                shown.append((name, best / times[ours], least / times[ours]))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "bench"}):
        figure = Figure(figsize=(8, 0.3 * len(shown) + 0.9), layout="constrained")
        axis = figure.subplots()
        places = range(len(shown))
        axis.barh(places, [today for _, today, _ in shown], color=TODAY, height=0.6)
        floors = [(place, floor) for place, (*_, floor) in enumerate(shown) if floor]
        axis.plot(
            [floor for _, floor in floors],
            [place for place, _ in floors],
            "|",
            color="#555",
            markersize=12,
            markeredgewidth=2,
        )
        axis.axvline(1, color=COLOURS[OURS], linewidth=2)
        axis.set_yticks(places, [title for title, *_ in shown], fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(
            0.1, 40
        )  # through the CPU some things take ten thousand times as long
        axis.margins(y=0.01)
        axis.set_xlabel(
            "time / time of dlpack-web (1): today's best way, and the floor |"
        )
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
        figure.savefig(target, metadata={"Date": None})
