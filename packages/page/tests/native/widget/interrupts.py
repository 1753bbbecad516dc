"""Interrupts at any place of ours that is not the page's: where CPython looks for one
(tests/browser/cases/py/interrupting.py), and before any line."""

import gc
import linecache
import sys
import threading
from pathlib import Path

HERE = Path(__file__)
sys.path.append(str(HERE.parents[5] / "tests" / "browser" / "cases" / "py"))

import interrupting

import dlpack_web_page

interrupting.OURS += (str(Path(dlpack_web_page.__file__).parent),)
PAGE = str(HERE.with_name("fake_page.py"))
NOT_OURS = "__del__", "_on_drop"  # CPython reports what is raised in finalizers


def reaches(frame):
    if threading.current_thread() is not threading.main_thread():
        return False
    while frame is not None:
        code = frame.f_code
        if code.co_name in NOT_OURS:
            return False
        if code.co_filename == PAGE and code.co_name in ("receive", "hello", "send"):
            return False
        frame = frame.f_back
    return True


class Places(interrupting.Interrupt):
    """file: its places alone."""

    def __init__(self, at, file=""):
        super().__init__(at)
        self.file = file

    def __enter__(self):
        gc.unfreeze()  # of conftest.py, or it would find no functions
        return super().__enter__()

    def step(self, code, offset):
        is_place = offset in interrupting._places[code]
        is_there = code.co_filename.endswith(self.file)
        if is_place and is_there and reaches(sys._getframe(1)):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt


def _is_with(frame):
    """CPython does not look for an interrupt as a `with` ends."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith("with ")


class Lines:
    def __init__(self, at):
        self.at, self.count = at, 0

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *exception):
        sys.settrace(None)

    def enter(self, frame, event, argument):
        is_ours = frame.f_code.co_filename.startswith(interrupting.OURS)
        return self.line if is_ours and reaches(frame) else None

    def line(self, frame, event, argument):
        if event == "line" and not _is_with(frame):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self.line
