"""The packed kit, unpacked into a fresh folder and run as on a bare machine: no network, and of
programs only those that run.sh needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKED = ROOT / "build" / "dlpack-web-gpu-kit.tar.xz"
OFFLINE = [sys.executable, str(Path(__file__).with_name("offline.py"))]
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
SECONDS = 1500  # the whole suite in both implementations, beside other work
NOTES = pytest.StashKey[list[str]]()


@dataclass
class Kit:
    """An unpacked kit, and where it is run."""

    folder: Path
    work: Path
    offline: bool

    def command(self, *args: str | Path) -> list[str]:
        prefix = OFFLINE if self.offline else []
        return [*prefix, *(str(part) for part in (self.folder / "run.sh", *args))]

    def environment(
        self, driver: Path | str, path: Path | None = None
    ) -> dict[str, str]:
        """All of it: nothing of this machine's own goes along."""
        return {
            "PATH": str(path or self.work / "bin"),
            "TMPDIR": str(self.work / "tmp"),
            "VK_DRIVER_FILES": str(driver),
            "VK_ICD_FILENAMES": str(driver),  # of loaders that are older
        }

    def run(
        self,
        *args: str | Path,
        driver: Path | str = SWIFTSHADER,
        path: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args),
            env=self.environment(driver, path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def changed(self, target: Path) -> Kit:
        """A kit of the same files (links, to be replaced and never written to)."""
        shutil.copytree(self.folder, target, copy_function=os.link)
        return Kit(target, self.work, self.offline)


def results(out: Path) -> tuple[dict, str]:
    return json.loads((out / "bench.json").read_text()), (out / "tests.txt").read_text()


def can_be_offline() -> bool:
    return (
        subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode
        == 0
    )


@pytest.fixture(scope="session")
def packed() -> Path:
    if not PACKED.is_file():
        pytest.fail(
            f"There is no {PACKED}: run `make suite NAME=gpu-kit`, which makes it"
        )
    return PACKED


@pytest.fixture(scope="session")
def kit(
    packed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Kit:
    work = tmp_path_factory.mktemp("kit")
    with tarfile.open(packed) as archive:
        archive.extractall(work, filter="data")
    (work / "tmp").mkdir()
    (work / "bin").mkdir()
    (work / "bin" / "uname").symlink_to(shutil.which("uname"))
    offline = can_be_offline()
    if not offline:
        request.config.stash.setdefault(NOTES, []).append(
            "the kit was run WITH a network: this machine allows no user namespaces"
        )
    return Kit(work / "dlpack-web-gpu-kit", work, offline)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(NOTES, []):
        terminalreporter.write_line(line)
