"""GPU.md's figures: only those of real GPUs, all of them, and by no hand."""

import copy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.append(str(BENCH))
import gpu_table
from gpu_table import BEGIN, END, RefusedError, with_figures

PAGE = f"# Page\n\n{BEGIN}old figures\n{END}\nAfter.\n"
GIB = 1 << 30


def row(webgpu, path, way, nbytes, median_ms, **more):
    return {
        "webgpu": webgpu,
        "path": path,
        "layout": "contiguous",
        "bytes": nbytes,
        "way": way,
        "median_ms": median_ms,
        "iqr_ms": median_ms / 10,
        "n": 15,
        **more,
    }


def bench():
    limits = {"maxBufferSize": 4 * GIB, "maxStorageBufferBindingSize": 2 * GIB}
    adapter = {"vendor": "4318", "description": "Somebody's GPU 9"}
    real = {"started": True, "software": False, "limits": limits, "adapter": adapter}
    return {
        "kit": {"dlpack-web": "0.1.0", "deno": "2.9.5"},
        "machine": {
            "system": "Linux 6.1",
            "processor": "Some CPU",
            "cores": 16,
            "memory_bytes": 128 * GIB,
            "drivers": [],
            "nvidia": "NVRM 570.1",
        },
        "quick": False,
        "begun": "2026-11-22T04:00:00Z",
        "state": "whole",
        "implementations": {
            "wgpu-core": {**real, "webgpu": "4318 Somebody's GPU 9", "wait_ms": 11},
            "Dawn": {"started": False, "reason": "no adapter\nmore of it"},
        },
        "rows": [
            row("wgpu-core", "upload", "dlpack-web", 64, 0.002, js_ms=0.001),
            row("wgpu-core", "upload", "dlpack-web", GIB, 80.0, js_ms=40),
            row("wgpu-core", "upload", "floor", GIB, 78.5, js_ms=40),
            row("wgpu-core", "download", "dlpack-web", 64, 12.0),
            row("wgpu-core", "download", "dlpack-web", GIB, 90.0),
        ],
        "left_out": [
            {
                "webgpu": "wgpu-core",
                "path": "upload",
                "layout": "contiguous",
                "bytes": GIB,
                "way": "mappedAtCreation",
                "reason": "out of memory\n",
            }
        ],
        "wrong": [],
    }


def test_the_figures_stand_between_the_marks():
    text = with_figures(PAGE, [bench()])
    assert text.startswith(f"# Page\n\n{BEGIN}")
    assert text.endswith(f"{END}\nAfter.\n")
    assert "old figures" not in text
    assert with_figures(text, [bench()]) == text
    for line in (
        "### Somebody's GPU 9",
        "#### upload: wgpu-core",
        "| way | 64 B | 1024 MB |",
        "| dlpack-web | 2 µs (200 ns) | 80 ms (8 ms) |",
        "| floor |  | 78.5 ms (7.85 ms) |",
        "| dlpack-web | 12 ms (1.2 ms) waiting | 90 ms (9 ms) |",
        "- Dawn did not run: no adapter.",
        "- Left out: wgpu-core, upload, contiguous, mappedAtCreation, 1024 MB: out of memory",
    ):
        assert f"\n{line}\n" in text
    assert "NVRM 570.1; 2026-11-22, dlpack-web 0.1.0, deno 2.9.5" in text


def test_several_machines_follow_each_other():
    other = bench()
    other["implementations"]["wgpu-core"]["adapter"]["description"] = "Another GPU"
    text = with_figures(PAGE, [bench(), other])
    assert text.index("### Somebody's GPU 9") < text.index("### Another GPU")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda b: b.update(quick=True), "run the kit without --quick"),
        (lambda b: b.update(rows=[]), "there are no figures in it"),
        (lambda b: b.update(wrong=[{"way": "floor"}]), "some results were wrong"),
        (
            lambda b: b["implementations"]["wgpu-core"].update(software=True),
            "wgpu-core ran on 4318 Somebody's GPU 9, which is software",
        ),
    ],
    ids=["quick", "empty", "wrong", "software"],
)
def test_what_means_nothing_is_refused(spoil, told):
    spoilt = copy.deepcopy(bench())
    spoil(spoilt)
    with pytest.raises(RefusedError, match=told):
        with_figures(PAGE, [spoilt])


def test_a_page_without_marks_is_refused():
    with pytest.raises(RefusedError, match="the page has no"):
        with_figures("# Page\n", [bench()])


def test_the_page_has_figures_or_says_that_there_are_none():
    _, _, rest = gpu_table.PAGE.read_text("utf-8").partition(BEGIN)
    figures, mark, _ = rest.partition(END)
    assert mark
    none = "No real GPU has been measured yet: these figures are still to come."
    assert ("####" in figures) != (none in figures)
