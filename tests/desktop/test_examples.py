"""examples/desktop, as its reader runs it."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "desktop"


def test_blur():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "blur.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 0.0, 0.0, 0.0]\n"
