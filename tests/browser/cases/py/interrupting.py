"""Interrupts, wherever one can come in our files.

CPython looks for an interrupt where a function begins, after a call and where a loop goes
round. Finalizers are left out: CPython reports what is raised in one, and goes on.

A trace function raises at the next opcode, but CPython at the call itself. The next opcode may
have another exception handler: after the last call in a `with` it has none, and what is raised
there leaves the lock locked, which an interrupt cannot do. Such places are left out.
"""

import dis
import sys
from functools import cache
from pathlib import Path

import dlpack_web as dlw

OURS = str(Path(dlw.__file__).parent)
LOOKS = ("CALL", "JUMP_BACKWARD", "RESUME")
FINALIZERS = ("__del__", "_on_drop", "_let_go")


@cache
def _handlers(code):
    return dis.Bytecode(code).exception_entries


def _handler(code, offset):
    """The offset of the handler of what is raised at an offset, None without one."""
    return next(
        (each.target for each in _handlers(code) if each.start <= offset < each.end),
        None,
    )


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
        before, last = "", 0

        def step(frame, event, arg):
            nonlocal before, last
            if event == "opcode":
                at, was = frame.f_lasti, last
                looks = before.startswith(LOOKS)
                before, last = dis.opname[code.co_code[at]], at
                if looks and _handler(code, at) == _handler(code, was):
                    self.count += 1
                    if self.count == self.at:
                        raise KeyboardInterrupt
            return step

        return step
