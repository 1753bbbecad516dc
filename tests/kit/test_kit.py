"""The packed kit on software GPUs: unpacked into a fresh folder and run as on a bare machine, without a
network, and with no programs but those that run.sh needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKED = ROOT / "build" / "dlpack-web-gpu-kit.tar.xz"
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
# No network but 127.0.0.1.
IP = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin")
OFFLINE = f"{shutil.which('unshare')} --map-root-user --net /bin/sh -c".split()
OFFLINE += [f'{IP} link set lo up; exec "$@"', "sh"]
SECONDS = 1500  # the whole suite in both implementations, beside other work
MIB = 2**20
QUICK = ("--software", "--quick")
SUITE = json.loads((ROOT / "tests" / "runtimes" / "suite.json").read_text())
FILES = {*SUITE["javascript"], *SUITE["python"]} - {"kernels_cases.mjs"}


@dataclass
class Kit:
    """An unpacked kit; `work` has the only programs, and temporary files."""

    folder: Path
    work: Path
    prefix: list[str]

    def start(
        self, *args: str | Path, driver: Path = SWIFTSHADER, path: Path | None = None
    ) -> subprocess.Popen[str]:
        """Nothing of this machine's own environment goes along."""
        env = {"PATH": str(path or self.work / "bin"), "TMPDIR": str(self.work / "tmp")}
        # The second is that of older loaders.
        env |= {"VK_DRIVER_FILES": str(driver), "VK_ICD_FILENAMES": str(driver)}
        command = [*self.prefix, self.folder / "run.sh", *args]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen([*map(str, command)], env=env, text=True, **pipes)

    def run(self, status: int, *args: str | Path, **options: Path) -> str:
        """A run that must end with this status; what it printed."""
        with self.start(*args, **options) as process:
            printed, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == status, printed
        return printed

    def changed(self, target: Path, file: str, text: str) -> Kit:
        """A kit of the same files (links), but for one."""
        shutil.copytree(self.folder, target, copy_function=os.link, dirs_exist_ok=True)
        (target / file).unlink()
        (target / file).write_text(text)
        return Kit(target, self.work, self.prefix)


def results(out: Path) -> tuple[dict, str]:
    return json.loads((out / "bench.json").read_text()), (out / "tests.txt").read_text()


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    assert PACKED.is_file(), "run `make suite NAME=gpu-kit`, which makes it"
    work = tmp_path_factory.mktemp("kit")
    with tarfile.open(PACKED) as archive:
        archive.extractall(work, filter="data")
    for folder in ("tmp", "bin"):
        (work / folder).mkdir()
    (work / "bin" / "uname").symlink_to(shutil.which("uname"))
    prefix = OFFLINE
    if subprocess.run(
        [*OFFLINE, "/bin/true"], capture_output=True, check=False
    ).returncode:
        prefix = []
        warnings.warn(
            "run WITH a network: this machine allows no user namespaces", stacklevel=1
        )
    return Kit(work / "dlpack-web-gpu-kit", work, prefix)


def test_the_packed_kit_fits(kit: Kit) -> None:
    assert PACKED.stat().st_size <= 60 * MIB
    with tarfile.open(PACKED) as archive:
        members = archive.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert all(m.isfile() or m.isdir() for m in members)
    names = {m.name.removeprefix("dlpack-web-gpu-kit/") for m in members}
    assert {"run.sh", "README.txt", "LICENSE", "site/bundle/tests.zip"} <= names


def test_runs_in_both_implementations(kit: Kit, tmp_path: Path) -> None:
    kit.run(0, tmp_path / "out", *QUICK)
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

    ways: dict[str, set[str]] = {}
    for row in bench["rows"]:
        assert row["verified"]
        assert row["median_ms"] > 0
        assert row["iqr_ms"] >= 0
        assert row["n"] == 5
        where = ", ".join(row[key] for key in ("webgpu", "path", "layout"))
        ways.setdefault(where, set()).add(row["way"])
    for name in bench["implementations"]:
        for layout in ("contiguous", "in use", "transposed", "strided", "f64"):
            wanted = {"dlpack-web", "floor", "floor, pieces of 4 MiB and a submit"}
            assert wanted < ways[f"{name}, upload, {layout}"]
        assert {"dlpack-web, cold", "floor"} < ways[f"{name}, download, contiguous"]
        assert {"dlpack-web", "floor"} == ways[f"{name}, reduction, contiguous"]
        assert "floor, device to device" in ways[f"{name}, elementwise, contiguous"]
        calls = {"dlpack-web, from Python", "dlpack-web, from JavaScript", "floor"}
        assert calls == ways[f"{name}, calls, contiguous"]
        assert calls < ways[f"{name}, replay, contiguous"]
        for to in ("Python", "protocol"):
            assert len(ways[f"{name}, handover, {to}"]) == 2


@pytest.mark.skipif(not LAVAPIPE.exists(), reason="there is no lavapipe")
def test_one_implementation_goes_on_without_the_other(kit: Kit, tmp_path: Path) -> None:
    """Dawn refuses Debian 12's lavapipe, or takes a newer one: the results say which."""
    one = ("--cases", "gpu_kernels.py", "--minutes", "0.2")
    kit.run(0, tmp_path, *QUICK, *one, driver=LAVAPIPE)
    bench, tests = results(tmp_path)
    assert "llvmpipe" in bench["implementations"]["wgpu-core"]["webgpu"]
    assert "shader-f16" in bench["implementations"]["wgpu-core"]["features"]
    dawn = bench["implementations"]["Dawn"]
    ran = {row["webgpu"] for row in bench["rows"]}
    assert ran == ({"wgpu-core", "Dawn"} if dawn["started"] else {"wgpu-core"})
    if not dawn["started"]:
        assert "no adapter" in dawn["reason"]
        assert "Dawn: is not run: no adapter" in tests


def test_software_is_refused(kit: Kit, tmp_path: Path) -> None:
    printed = kit.run(3, tmp_path)
    bench, tests = results(tmp_path)
    assert bench["state"] == "no GPU"
    assert bench["rows"] == []
    assert printed == tests
    for each in bench["implementations"].values():
        assert each["reason"].startswith("only a software adapter: ")
        assert each["reason"] in tests
    assert "With --software the kit runs on software" in tests


def test_a_missing_driver_says_what_to_install(kit: Kit, tmp_path: Path) -> None:
    none = tmp_path / "none.json"
    printed = kit.run(3, tmp_path / "out", "--software", driver=none)
    bench, _ = results(tmp_path / "out")
    reasons = {each["reason"] for each in bench["implementations"].values()}
    assert reasons == {"no adapter"}
    advice = ("nvidia-vulkan-icd", "NVIDIA_DRIVER_CAPABILITIES", "mesa-vulkan-drivers")
    for text in (f"{none} (missing)", *advice):
        assert text in printed
    assert "With --software" not in printed  # it would not help


def test_another_architecture_is_refused(kit: Kit, tmp_path: Path) -> None:
    uname = tmp_path / "uname"
    uname.write_text('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo aarch64\n')
    uname.chmod(0o755)
    printed = kit.run(2, tmp_path / "out", path=tmp_path)
    assert printed.startswith("This is Linux/aarch64: ")
    assert not (tmp_path / "out").exists()


def test_an_out_that_cannot_be_written_is_named(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    printed = kit.run(2, tmp_path / "file" / "out")
    assert printed.startswith("OUT cannot be written: ")
    assert str(tmp_path / "file") in printed
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("", "one folder OUT is needed, 0 were given"),
        ("out more", "one folder OUT is needed, 2 were given"),
        ("out --fast", "Unknown option '--fast'"),
        ("out --only figures", "--only: figures is none of tests, bench"),
        ("out --webgpu dawn", "--webgpu: dawn is none of wgpu-core, Dawn"),
        ("out --cases none.py", "--cases: none.py is none of arrow_cases.mjs, "),
        ("out --minutes 0", "--minutes: 0 is not more than 0"),
    ],
)
def test_a_wrong_call_shows_the_right_one(kit: Kit, args: str, told: str) -> None:
    printed = kit.run(2, *args.split())
    assert told in printed
    assert "usage: run.sh OUT [options]" in printed


def processes_of(kit: Kit) -> list[str]:
    """Those that run the kit's Deno."""
    found = []
    for program in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):  # it has ended
            found.append(os.readlink(program))
    return [each for each in found if each.startswith(str(kit.folder))]


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def test_an_interrupted_run_leaves_what_was_done(kit: Kit, tmp_path: Path) -> None:
    only = ("--only", "bench", "--webgpu", "Dawn")
    with kit.start(tmp_path, *QUICK, *only) as process:
        written = tmp_path / "bench.json"
        wait_until(
            lambda: (
                process.poll() is not None
                or (written.exists() and results(tmp_path)[0]["rows"])
            )
        )
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 130
    bench, tests = results(tmp_path)
    assert bench["state"] == "interrupted"
    assert bench["rows"]
    assert tests.endswith("Ended: interrupted, status 130\n")
    assert not list((kit.work / "tmp").iterdir())
    wait_until(lambda: not processes_of(kit))
    assert processes_of(kit) == []


def test_a_run_ends_when_its_time_is_over(kit: Kit, tmp_path: Path) -> None:
    only = ("--only", "bench", "--webgpu", "Dawn", "--minutes", "0.0001")
    kit.run(0, tmp_path, *QUICK, *only)
    bench, _ = results(tmp_path)
    assert bench["state"] == "out of time"
    assert (
        len({(row["path"], row["layout"], row["bytes"]) for row in bench["rows"]}) < 2
    )


FAILING = """
import { Skip } from "./expect.mjs";
export async function is_well() {}
export async function is_skipped() { throw new Skip("for a reason"); }
export async function fails() { throw new Error("seven is not eight"); }
"""
CRASHING = 'export async function crashes() { Deno.kill(Deno.pid, "SIGKILL"); }'
CASES = "site/tests/browser/cases/js"


def test_failures_and_crashes_are_reported(kit: Kit, tmp_path: Path) -> None:
    changed = kit.changed(tmp_path / "one", f"{CASES}/cpu_cases.mjs", FAILING)
    changed = changed.changed(tmp_path / "two", f"{CASES}/arrow_cases.mjs", CRASHING)
    names = "cpu_cases.mjs,arrow_cases.mjs,counter_cases.mjs"
    only = ("--only", "tests", "--webgpu", "Dawn", "--cases", names)
    changed.run(1, tmp_path / "out", "--software", *only)
    _, tests = results(tmp_path / "out")
    for text in (
        "cpu_cases.mjs: 1 passed, 1 failed, 1 skipped",
        "FAILED cpu_cases.mjs::fails\n    Error: seven is not eight",
        "skipped cpu_cases.mjs::is_skipped: for a reason",
        "FAILED arrow_cases.mjs\n",
        "Dawn gave no answer (SIGKILL)",
        "counter_cases.mjs: 4 passed, 0 failed",  # in a new process
        "Dawn: 5 passed, 2 failed, 1 skipped",
    ):
        assert text in tests


def test_wrong_results_are_no_figures(kit: Kit, tmp_path: Path) -> None:
    rows = "site/tests/bench/rows/kernels.mjs"
    text = (kit.folder / rows).read_text()
    assert text.count("          dispatch();") == 1
    changed = kit.changed(
        tmp_path / "kit", rows, text.replace("          dispatch();", "")
    )
    only = ("--only", "bench", "--webgpu", "Dawn", "--minutes", "0.1")
    changed.run(1, tmp_path / "out", *QUICK, *only)
    bench, tests = results(tmp_path / "out")
    step = {"webgpu": "Dawn", "path": "calls", "layout": "contiguous", "bytes": 64}
    wrong = {**step, "way": "floor", "reason": "wrong result: floor"}
    assert wrong in bench["wrong"]
    measured = {row["way"] for row in bench["rows"] if row["path"] == "calls"}
    assert measured == {"dlpack-web, from Python", "dlpack-web, from JavaScript"}
    assert (
        "FAILED Dawn, calls, contiguous, 64 bytes, floor: wrong result: floor" in tests
    )
