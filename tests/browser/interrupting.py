"""Interrupts, wherever one can come in our files.

CPython looks for an interrupt where a function begins, after a call and where a loop goes
round. Finalizers are left out: CPython reports what is raised in one, and goes on.
"""

import dis
import sys
from pathlib import Path

import dlpack_web as dlw

OURS = str(Path(dlw.__file__).parent)
LOOKS = ("CALL", "JUMP_BACKWARD", "RESUME")
FINALIZERS = ("__del__", "_on_drop", "_let_go")


class Interrupt:
    """A with block in which the `at`-th place raises KeyboardInterrupt; counts them."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *exception):
        sys.settrace(None)

    def enter(self, frame, event, arg):
        """Called where a function of ours begins, or a coroutine goes on."""
        code = frame.f_code
        if not code.co_filename.startswith(OURS) or code.co_name in FINALIZERS:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        before = ""

        def step(frame, event, arg):
            nonlocal before
            if event == "opcode":
                looks = before.startswith(LOOKS)
                before = dis.opname[frame.f_code.co_code[frame.f_lasti]]
                if looks:
                    self.count += 1
                    if self.count == self.at:
                        raise KeyboardInterrupt
            return step

        return step
