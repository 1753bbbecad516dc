"""Runs a program, natively or in a page, and returns what it said as JSON: what it checked, each line
that it printed and each array that it saved in outputs.npz.

Usage: python program.py PROGRAM RESULT [ARGUMENT...]
"""

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

import checks
import numpy as np

SAVED = "outputs.npz"


def run(path, arguments):
    """Runs it in the current folder."""
    checks.RECORDED.clear()
    with contextlib.suppress(FileNotFoundError):
        os.remove(SAVED)
    before, sys.argv = sys.argv, [path, *arguments]
    printed, ended = io.StringIO(), ""
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            runpy.run_path(path, run_name="__main__")
    except Exception:  # noqa: BLE001 - whatever it is, it ends the program
        ended = traceback.format_exc()
    finally:
        sys.argv = before
    for i, line in enumerate(printed.getvalue().splitlines(), 1):
        checks.check(f"line {i}", line)
    if os.path.exists(SAVED):
        with np.load(SAVED) as saved:
            for name, array in saved.items():
                checks.check(f"{SAVED}: {name}", array)
    return json.dumps({"ended": ended, "checks": checks.RECORDED})


if __name__ == "__main__":
    program, result, *rest = sys.argv[1:]
    Path(result).write_text(run(program, rest))
