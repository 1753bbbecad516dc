"""Browsers that crash or hang end their tests, with the reason; after one crash of a renderer, the failed
tests of its file run again."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from browser import is_firefox
from guard import describe

ROOT = Path(__file__).resolve().parents[3]


def minidump(address: int) -> bytes:
    """Of a renderer whose thread 8 used the address: two stacks and a module."""
    pack, start = struct.pack, 32 + 12 * 3
    context = bytes(0xF8) + pack("<Q", 0x9004)
    name = "chromium".encode("utf-16-le")
    before = context + pack("<I", len(name)) + name
    threads = pack("<I", 2)
    for number, begin in ((7, 0x1000), (8, 0x5000)):
        threads += pack("<I20xQI12x", number, begin, 0x800)
    modules = pack("<IQI8xI84x", 1, 0x9000, 0x100, start + len(context))
    exception = pack("<IIIIQQ128xII", 8, 0, 11, 1, 0, address, len(context), start)
    table, body = b"", before
    for kind, part in {6: exception, 3: threads, 4: modules}.items():
        table += pack("<III", kind, len(part), start + len(body))
        body += part
    head = pack("<4sIII16x", b"MDMP", 0xA793, 3, 32)
    return head + table + body + b"ptype\0\0\0\x08\0\0\0renderer\0"


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0x1800, "0x1800, at the end of the stack of thread 7"),
        (0x5010, "0x5010, 0x10 within the stack of thread 8"),
        (0x9000, "0x9000, 0x0 within chromium"),
        (0x4FFF, "0x4fff, in no stack or module"),
    ],
)
def test_crash_reports_say_where(address: int, place: str) -> None:
    counter = "thread 8 ran 0x9004, 0x4 within chromium"
    expected = f"renderer crashed: SIGSEGV at {place}; {counter}"
    assert describe(minidump(address)) == expected


CONFTEST = """
import pytest
from browser import open_browser
from crashes import pytest_sessionfinish

@pytest.fixture(scope="session")
def browser():
    with open_browser(patient_s=PATIENT) as running:
        yield running
"""
TEST = """
import contextlib, pathlib, pytest
from browser import open_page

@pytest.mark.parametrize("step", STEPS)
def test_page(browser, step):
    once = pathlib.Path("crashed")
    with open_page(browser, "data:") as (page, _):
        page.goto("data:text/html,")
        if step == "crash" or "once" in step and not once.exists():
            once.touch()
            with contextlib.suppress(Exception):
                page.context.new_cdp_session(page).send("Page.crash")
        if step == "hang":
            page.evaluate("new Promise(() => {})")
        assert step == "pass once" or page.evaluate("1 + 1") == 2
        if step == "fail first" and not (failed := pathlib.Path("failed")).exists():
            failed.touch()
            pytest.fail()
"""


@pytest.mark.skipif(is_firefox(), reason="crash reports are Chromium's")
@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        (
            [["", "crash once", ""], [""]],
            0,
            r"py \. .*\n1 renderer crashed: SIG.* 1 passed",
        ),
        ([["crash"], [""]], 1, r"py \. .*\n1 renderer crashed: SIG.* 1 failed"),
        (
            [["crash once"], ["crash"]],
            1,
            r" renderer crashed: SIG.* renderer crashed: SIG",
        ),
        ([[""], ["pass once"]], 0, r"\n1 renderer crashed: SIG.* 1 passed"),
        ([["crash once"], ["fail first"]], 1, r"renderer crashed: SIG.* 2 failed"),
        ([["hang", ""]], 1, r"no answer in [\d.]+ s\n.*promises: {'pending': "),
    ],
    ids=["once", "again", "twice", "passes", "others", "hang"],
)
def test_what_browsers_do_to_tests(
    tmp_path: Path, files: list[list[str]], status: int, said: str
) -> None:
    patient = "-7" if said.startswith("no") else "60"
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("PATIENT", patient))
    for number, steps in enumerate(files):
        test = TEST.replace("STEPS", repr(steps))
        (tmp_path / f"test_{number}.py").write_text(test)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    folders = [str(ROOT / name) for name in ("web", "tests/support")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:anyio"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert re.search(said, done.stdout, re.DOTALL), done.stdout
