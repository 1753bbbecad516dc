"""gpu_table.py BENCH.json ...: writes what the kit measured into GPU.md, between its marks.

Figures of software, or of a quick run, mean nothing and are refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from words import human, size

PAGE = Path(__file__).resolve().parent / "GPU.md"
BEGIN, END = "<!-- figures: by gpu_table.py -->\n", "<!-- end of figures -->\n"
# So many times what waiting takes, and a download is about the device and not the wait.
WAITS = 3


class RefusedError(ValueError):
    """These figures do not belong on the page."""


def started(bench: dict) -> dict[str, dict]:
    """The implementations that ran, by name; all of them on a real GPU."""
    found = {
        name: each for name, each in bench["implementations"].items() if each["started"]
    }
    if bench["quick"]:
        raise RefusedError("a quick run measures nothing: run the kit without --quick")
    for name, each in found.items():
        if each["software"]:
            raise RefusedError(
                f"{name} ran on {each['webgpu']}, which is software and no GPU"
            )
    if not found or not bench["rows"]:
        raise RefusedError("there are no figures in it: no implementation was measured")
    if bench["wrong"]:
        raise RefusedError(f"some results were wrong: {bench['wrong'][0]}")
    return found


def cell(row: dict | None, wait_ms: float) -> str:
    """The median and, in brackets, the IQR. What is awaited one by one has no js_ms."""
    if row is None:
        return ""
    told = f"{human(row['median_ms'])} ({human(row['iqr_ms'])})"
    if "js_ms" not in row and wait_ms / 2 < row["median_ms"] < WAITS * wait_ms:
        return f"{told} waiting"
    return told


def table(rows: list[dict], wait_ms: float) -> Iterator[str]:
    """A line for each way, a column for each size; all were measured in turn."""
    sizes = sorted({row["bytes"] for row in rows})
    yield f"| way | {' | '.join(size(n) for n in sizes)} |"
    yield f"|---|{'--:|' * len(sizes)}"
    by_way: dict[str, dict[int, dict]] = {}
    for row in rows:
        by_way.setdefault(row["way"], {})[row["bytes"]] = row
    for way, found in by_way.items():
        yield f"| {way} | {' | '.join(cell(found.get(n), wait_ms) for n in sizes)} |"


def facts(bench: dict, implementations: dict[str, dict]) -> Iterator[str]:
    machine, kit = bench["machine"], bench["kit"]
    gigabytes = machine["memory_bytes"] / 2**30
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {gigabytes:.0f} GB, "
        f"{machine['system']}{', ' + machine['nvidia'] if machine['nvidia'] else ''}; "
        f"{bench['begun'][:10]}, {', '.join(f'{k} {v}' for k, v in kit.items())}. "
        f"The run ended: {bench['state']}."
    )
    yield ""
    for name, each in implementations.items():
        limits = each["limits"]
        yield (
            f"- {name}: {each['webgpu']}; buffers of {limits['maxBufferSize']} bytes at most, "
            f"{limits['maxStorageBufferBindingSize']} in a kernel; to learn that an idle queue "
            f"is done takes {human(each['wait_ms'])}."
        )
    for name, each in bench["implementations"].items():
        if name not in implementations:
            yield f"- {name} did not run: {each['reason'].splitlines()[0]}."
    for each in bench["left_out"]:
        where = ", ".join(
            f"{each[key]}" for key in ("webgpu", "path", "layout", "way") if key in each
        )
        reason = each["reason"].splitlines()[0]
        yield f"- Left out: {where}, {size(each['bytes'])}: {reason}"


def section(bench: dict) -> Iterator[str]:
    """All of one run."""
    implementations = started(bench)
    names = dict.fromkeys(
        each["adapter"]["description"] or each["webgpu"]
        for each in implementations.values()
    )
    yield from (f"### {' / '.join(names)}", "")
    yield from facts(bench, implementations)
    kinds = dict.fromkeys((row["path"], row["layout"]) for row in bench["rows"])
    for path, layout in kinds:
        for name, each in implementations.items():
            rows = [
                row
                for row in bench["rows"]
                if (row["webgpu"], row["path"], row["layout"]) == (name, path, layout)
            ]
            if rows:
                told = path if layout == "contiguous" else f"{path}, {layout}"
                yield from ("", f"#### {told}: {name}", "")
                yield from table(rows, each.get("wait_ms", 0))
    yield ""


def with_figures(page: str, benches: list[dict]) -> str:
    """The page's text with these figures in place of those that it had."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise RefusedError(f"the page has no {BEGIN.strip()} … {END.strip()}")
    lines = (line for bench in benches for line in section(bench))
    return f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}"


def main(files: list[str]) -> int:
    if not files:
        print(__doc__)
        return 2
    benches = [json.loads(Path(file).read_text()) for file in files]
    try:
        text = with_figures(PAGE.read_text("utf-8"), benches)
    except RefusedError as error:
        print(f"GPU.md stays as it is: {error}")
        return 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
