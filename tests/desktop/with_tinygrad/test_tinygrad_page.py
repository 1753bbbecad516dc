"""tinygrad on the GPU of a page, in a process of its own: tinygrad has one device."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_install_takes_a_page():
    file = TESTS / "native" / "widget" / "test_page_devices.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    done = subprocess.run(
        [*command, "-k", "tinygrad"],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "1 passed" in done.stdout, done.stdout
