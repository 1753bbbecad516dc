"""What a user of the kit meets, on software GPUs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from conftest import LAVAPIPE, ROOT, SWIFTSHADER, Kit, results

MIB = 2**20
QUICK = ("--software", "--quick")
SUITE = json.loads((ROOT / "tests" / "runtimes" / "suite.json").read_text())
FILES = {*SUITE["javascript"], *SUITE["python"]} - {"kernels_cases.mjs"}
PACKED_LAYOUTS = ("strided", "transposed", "f64")


def test_the_packed_kit_fits(packed: Path) -> None:
    assert packed.stat().st_size <= 60 * MIB
    with tarfile.open(packed) as archive:
        members = archive.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert all(m.isfile() or m.isdir() for m in members)
    names = {m.name.removeprefix("dlpack-web-gpu-kit/") for m in members}
    assert {"run.sh", "README.txt", "LICENSE", "site/bundle/tests.zip"} <= names


def test_runs_in_both_implementations(kit: Kit, tmp_path: Path) -> None:
    done = kit.run(tmp_path / "out", *QUICK, "--sizes", "64,1M,4M")
    assert done.returncode == 0, done.stdout
    bench, tests = results(tmp_path / "out")
    assert bench["state"] == "whole"
    assert bench["wrong"] == bench["left_out"] == []
    assert set(bench["implementations"]) == {"wgpu-core", "Dawn"}
    for name, each in bench["implementations"].items():
        assert "SwiftShader" in each["webgpu"]
        assert each["software"]
        assert each["limits"]["maxBufferSize"] >= 2**28
        assert each["wait_ms"] > 0
        assert f"{name}: {each['webgpu']}" in tests
    assert tests.count(" 0 failed, ") == 2 * (len(FILES) + 1)
    assert tests.endswith("Ended: whole, status 0\n")
    assert not list((kit.work / "tmp").iterdir())  # nothing is left beside OUT


def test_measures_every_path_beside_its_floor(kit: Kit, tmp_path: Path) -> None:
    done = kit.run(tmp_path, *QUICK, "--only", "bench", "--webgpu", "Dawn")
    assert done.returncode == 0, done.stdout
    bench, _ = results(tmp_path)
    ways: dict[tuple[str, str, int], set[str]] = {}
    for row in bench["rows"]:
        assert row["verified"]
        assert row["median_ms"] > 0
        assert row["iqr_ms"] >= 0
        assert row["n"] == 5
        ways.setdefault((row["path"], row["layout"], row["bytes"]), set()).add(
            row["way"]
        )
    expected = {
        *(
            (path, "contiguous", n)
            for path in ("upload", "download")
            for n in (64, MIB)
        ),
        *(("upload", layout, MIB) for layout in PACKED_LAYOUTS),
        *(("handover", to, MIB) for to in ("protocol", "Python")),
        ("dispatch", "contiguous", 64),
        ("kernels", "contiguous", MIB),
    }
    assert set(ways) == expected
    for (path, _, _), found in ways.items():
        if path == "kernels":
            assert {"ElementwiseKernel", "ReductionKernel, a sum"} < found
            continue
        assert "dlpack-web" in found
        if path == "handover":
            assert "through the CPU: mapAsync, writeBuffer" in found
        else:
            assert "floor" in found
        if path in ("upload", "download"):
            assert {"device to device", "dlpack-web, cold"} <= found
        if path == "upload":
            assert "dlpack-web, write() into a tensor" in found


@pytest.mark.skipif(not LAVAPIPE.exists(), reason="there is no lavapipe")
def test_one_implementation_goes_on_without_the_other(kit: Kit, tmp_path: Path) -> None:
    """Dawn refuses Debian 12's lavapipe, or takes a newer one: both must be told."""
    done = kit.run(
        tmp_path, *QUICK, "--cases", "gpu_kernels.py", "--sizes", "64", driver=LAVAPIPE
    )
    assert done.returncode == 0, done.stdout
    bench, tests = results(tmp_path)
    assert "llvmpipe" in bench["implementations"]["wgpu-core"]["webgpu"]
    assert "shader-f16" in bench["implementations"]["wgpu-core"]["features"]
    dawn = bench["implementations"]["Dawn"]
    ran = {row["webgpu"] for row in bench["rows"]}
    assert ran == {"wgpu-core", *(["Dawn"] if dawn["started"] else [])}
    if not dawn["started"]:
        assert "no adapter" in dawn["reason"]
        assert "Dawn: is not run: no adapter" in tests


def test_software_is_refused(kit: Kit, tmp_path: Path) -> None:
    done = kit.run(tmp_path)
    assert done.returncode == 3, done.stdout
    bench, tests = results(tmp_path)
    assert bench["state"] == "no GPU"
    assert bench["rows"] == []
    assert done.stdout == tests
    for each in bench["implementations"].values():
        assert each["reason"].startswith("only a software adapter: ")
        assert each["reason"] in tests
    assert "With --software the kit runs on software" in tests


def test_a_missing_driver_says_what_to_install(kit: Kit, tmp_path: Path) -> None:
    done = kit.run(tmp_path / "out", "--software", driver=tmp_path / "none.json")
    assert done.returncode == 3, done.stdout
    bench, _ = results(tmp_path / "out")
    assert {each["reason"] for each in bench["implementations"].values()} == {
        "no adapter"
    }
    assert f"{tmp_path / 'none.json'} (missing)" in done.stdout
    for advice in (
        "nvidia-vulkan-icd",
        "NVIDIA_DRIVER_CAPABILITIES",
        "mesa-vulkan-drivers",
    ):
        assert advice in done.stdout
    assert "With --software" not in done.stdout  # it would not help


def test_another_architecture_is_refused(kit: Kit, tmp_path: Path) -> None:
    uname = tmp_path / "uname"
    uname.write_text('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo aarch64\n')
    uname.chmod(0o755)
    done = kit.run(tmp_path / "out", path=tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("This is Linux/aarch64: ")
    assert not (tmp_path / "out").exists()


def test_an_out_that_cannot_be_written_is_named(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = kit.run(tmp_path / "file" / "out")
    assert done.returncode == 2
    assert done.stdout.startswith("OUT cannot be written: ")
    assert str(tmp_path / "file") in done.stdout
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "one folder OUT is needed, 0 were given"),
        (("out", "more"), "one folder OUT is needed, 2 were given"),
        (("out", "--fast"), "Unknown option '--fast'"),
        (("out", "--sizes", "63"), "--sizes: 63 is no power of two from 64 to 1G"),
        (("out", "--sizes", "2G"), "--sizes: 2G is no power of two from 64 to 1G"),
        (("out", "--only", "figures"), "--only: figures is none of tests, bench"),
        (("out", "--webgpu", "dawn"), "--webgpu: dawn is none of wgpu-core, Dawn"),
        (
            ("out", "--cases", "none.py"),
            "--cases: none.py is none of arrow_cases.mjs, ",
        ),
        (("out", "--minutes", "0"), "--minutes: 0 is no number from 0 to 1440"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_call_shows_the_right_one(
    kit: Kit, args: tuple[str, ...], told: str
) -> None:
    done = kit.run(*args)
    assert done.returncode == 2
    assert told in done.stdout
    assert "usage: run.sh OUT [options]" in done.stdout


def processes_of(kit: Kit) -> list[str]:
    """Those that run the kit's Deno."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if os.readlink(entry / "exe").startswith(str(kit.folder)):
                found.append(entry.name)
        except OSError:
            continue  # it has ended, or is no process
    return found


def test_an_interrupted_run_leaves_what_was_done(kit: Kit, tmp_path: Path) -> None:
    args = (tmp_path, *QUICK, "--only", "bench", "--webgpu", "Dawn", "--sizes", "64,1M")
    with subprocess.Popen(
        kit.command(*args), env=kit.environment(SWIFTSHADER), stdout=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            if (tmp_path / "bench.json").exists() and results(tmp_path)[0]["rows"]:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 130
    bench, tests = results(tmp_path)
    assert bench["state"] == "interrupted"
    assert {row["path"] for row in bench["rows"]} >= {"dispatch"}
    assert tests.endswith("Ended: interrupted, status 130\n")
    assert not list((kit.work / "tmp").iterdir())
    end = time.monotonic() + 120
    while processes_of(kit) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_of(kit) == []


def test_a_run_ends_when_its_time_is_over(kit: Kit, tmp_path: Path) -> None:
    bench_only = ("--only", "bench", "--webgpu", "Dawn", "--minutes", "0.01")
    done = kit.run(tmp_path, *QUICK, *bench_only)
    assert done.returncode == 0, done.stdout
    bench, _ = results(tmp_path)
    assert bench["state"] == "out of time"
    assert len({(row["path"], row["bytes"]) for row in bench["rows"]}) == 1


FAILING = """
import process from "node:process";
import { Skip } from "./expect.mjs";
export function is_well() {}
export function is_skipped() { throw new Skip("for a reason"); }
export function fails() { throw new Error("seven is not eight"); }
"""
CRASHING = 'export function crashes() { Deno.kill(Deno.pid, "SIGKILL"); }'


def test_failures_and_crashes_are_told(kit: Kit, tmp_path: Path) -> None:
    changed = kit.changed(tmp_path / "kit")
    cases = tmp_path / "kit" / "site" / "tests" / "browser" / "cases" / "js"
    for name, text in (("cpu_cases.mjs", FAILING), ("arrow_cases.mjs", CRASHING)):
        (cases / name).unlink()
        (cases / name).write_text(text)
    names = "cpu_cases.mjs,arrow_cases.mjs,counter_cases.mjs"
    only = ("--only", "tests", "--webgpu", "Dawn", "--cases", names)
    done = changed.run(tmp_path / "out", "--software", *only)
    assert done.returncode == 1, done.stdout
    _, tests = results(tmp_path / "out")
    assert "cpu_cases.mjs: 1 passed, 1 failed, 1 skipped" in tests
    assert "FAILED cpu_cases.mjs::fails\n    Error: seven is not eight" in tests
    assert "skipped cpu_cases.mjs::is_skipped: for a reason" in tests
    assert "FAILED arrow_cases.mjs\n" in tests
    assert "Dawn gave no answer (SIGKILL)" in tests
    assert "counter_cases.mjs: 4 passed, 0 failed" in tests  # in a new process
    assert "Dawn: 5 passed, 2 failed, 1 skipped" in tests


def test_wrong_results_are_no_figures(kit: Kit, tmp_path: Path) -> None:
    changed = kit.changed(tmp_path / "kit")
    ways = tmp_path / "kit" / "site" / "tests" / "bench" / "paths.mjs"
    text = ways.read_text()
    right = "queue.writeBuffer(existing, 0, wasm.HEAPU8.buffer, byteOffset, bytes)"
    assert right in text
    ways.unlink()
    ways.write_text(
        text.replace(right, "queue.writeBuffer(existing, 0, new Uint8Array(bytes))")
    )
    only = ("--only", "bench", "--webgpu", "Dawn", "--sizes", "64")
    done = changed.run(tmp_path / "out", *QUICK, *only)
    assert done.returncode == 1, done.stdout
    bench, tests = results(tmp_path / "out")
    reason = "wrong result: upload, contiguous, floor"
    step = {"webgpu": "Dawn", "path": "upload", "layout": "contiguous", "bytes": 64}
    assert bench["wrong"] == [{**step, "way": "floor", "reason": reason}]
    measured = {row["way"] for row in bench["rows"] if row["path"] == "upload"}
    assert "dlpack-web" in measured
    assert "floor" not in measured
    assert f"FAILED Dawn, upload, contiguous, 64 bytes, floor: {reason}" in tests
