"""Draw tests/bench/results.svg, which the README shows."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

OURS, COLD = "dlpack-web", "dlpack-web, cold"
COLOUR, TODAY = "#0b6e69", "#d08a4e"


def size(nbytes: int) -> str:
    return f"{nbytes >> 20} MB" if nbytes >= 1 << 20 else f"{nbytes} B"


def human(ms: float) -> str:
    """1.25e-4 -> '125 ns'."""
    for unit, scale in (("ns", 1e6), ("µs", 1e3)):
        if ms * scale < 1000:
            return f"{ms * scale:.3g} {unit}"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def panels(rows: list[dict]) -> list[tuple[str, list[dict]]]:
    """What was compared with each other, ours first, with its name."""

    def title(row: dict) -> str:
        usual = {"layout": "contiguous", "where": "page"}  # goes without saying
        told = [row[key] for key in usual if row[key] != usual[key]]
        return ", ".join([row["path"], *told, size(row["bytes"])])

    return [(name, list(group)) for name, group in groupby(rows, title)]


def draw(rows: list[dict], target: Path) -> None:
    """The best of today's ways and the floor, as multiples of our time, for each panel: warm, and
    cold where that was measured."""
    shown = []
    for title, group in panels(rows):
        times = {row["way"]: row["median_ms"] for row in group}
        today = [times[way] for way in times if not way.startswith((OURS, "floor"))]
        pieces = [times[way] for way in times if way.startswith("floor, pieces")]
        if pieces and not today:  # one writeBuffer, which most programs call
            today = [times["floor"]]
        colder = [(COLD, "floor, cold", f"{title}, cold")] if COLD in times else []
        for ours, floor, name in [(group[0]["way"], "floor", title), *colder]:
            if today:
                by_hand = [times[floor]] if floor in times else []
                least = min(by_hand + (pieces if floor == "floor" else []), default=0)
                shown.append((name, min(today) / times[ours], least / times[ours]))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "bench"}):
        figure = Figure(figsize=(8, 0.3 * len(shown) + 0.9), layout="constrained")
        axis = figure.subplots()
        places = range(len(shown))
        axis.barh(places, [today for _, today, _ in shown], color=TODAY, height=0.6)
        floors = [(place, floor) for place, (*_, floor) in enumerate(shown) if floor]
        style = {"color": "#555", "markersize": 12, "markeredgewidth": 2}
        axis.plot([x for _, x in floors], [place for place, _ in floors], "|", **style)
        axis.axvline(1, color=COLOUR, linewidth=2)
        axis.set_yticks(places, [title for title, *_ in shown], fontsize=8)
        axis.set_xscale("log")
        # Through the CPU some things take ten thousand times as long.
        axis.set_xlim(0.1, 40)
        axis.margins(y=0.01)
        axis.set_xlabel(
            "time / time of dlpack-web (1): today's best way, and the floor |"
        )
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
        figure.savefig(target, metadata={"Date": None})
