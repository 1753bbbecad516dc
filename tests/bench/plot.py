"""Draw tests/bench/results.svg, which the README shows."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from words import size

OURS = "dlpack-web"
COLD = f"{OURS}, cold"
COLOUR, TODAY = "#0b6e69", "#d08a4e"


def panels(rows: list[dict]) -> list[tuple[str, list[dict]]]:
    """What was compared with each other, with its name."""

    def title(row: dict) -> str:
        usual = {"layout": "contiguous", "where": "page"}  # goes without saying
        told = [row[key] for key in usual if row[key] != usual[key]]
        return ", ".join([row["path"], *told, size(row["bytes"])])

    return [(name, list(group)) for name, group in groupby(rows, title)]


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
        axis.axvline(1, color=COLOUR, linewidth=2)
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
