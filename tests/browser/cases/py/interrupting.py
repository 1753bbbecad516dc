"""Interrupts, wherever one can come in our files.

CPython looks for an interrupt where a function begins, after a call or a `yield`, and where a
loop goes round. Finalizers are left out: CPython reports what is raised in one, and goes on.

A monitoring callback raises before the next instruction, but CPython at the call itself. The
next instruction may have another exception handler: after the last call in a `with` it has
none, and what is raised there leaves the lock locked, which an interrupt cannot do. Such places
are left out.
"""

import dis
import gc
import sys
import threading
import types
from pathlib import Path

import dlpack_web as dlw

#: Folders of the code that is interrupted.
OURS = (str(Path(dlw.__file__).parent),)
FINALIZERS = ("__del__", "_on_drop")
TOOL = sys.monitoring.DEBUGGER_ID
EVENT = sys.monitoring.events.INSTRUCTION

_places = {}  # of each code object of ours: the offsets of such instructions


def _looks(instruction):
    name, argument = instruction.opname, instruction.arg
    # After an await or a `yield from`, CPython does not look.
    return name.startswith("CALL") or (name == "RESUME" and argument & 3 < 2)


def _offsets(code):
    entries = dis.Bytecode(code).exception_entries

    def handler(at):
        found = (each.target for each in entries if each.start <= at.offset < each.end)
        return next(found, None)

    found, before = set(), None
    for at in dis.get_instructions(code):
        after = before is not None and _looks(before)
        if at.opname == "JUMP_BACKWARD" or (after and handler(before) == handler(at)):
            found.add(at.offset)
        before = at
    return found


def _watch(code):
    """CPython reports instructions of the code from its next call on."""
    if not code.co_filename.startswith(OURS) or code in _places:
        return
    _places[code] = _offsets(code)
    sys.monitoring.set_local_events(TOOL, code, EVENT)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            _watch(each)


def _watch_all():
    if sys.monitoring.get_tool(TOOL) is None:
        sys.monitoring.use_tool_id(TOOL, "interrupts")
    gc.unfreeze()  # what is frozen is not listed
    for each in gc.get_objects():
        if type(each) is types.FunctionType:  # isinstance() asks dead weak proxies, too
            _watch(each.__code__)


def _reaches(frame):
    """Interrupts reach the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        return False
    while frame is not None and frame.f_code.co_name not in FINALIZERS:
        frame = frame.f_back
    return frame is None


class Interrupt:
    """A with block in which the `at`-th place raises KeyboardInterrupt; counts them. The first
    one has `at` = 0, which raises none."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __enter__(self):
        if self.at == 0:
            _watch_all()
        sys.monitoring.register_callback(TOOL, EVENT, self.step)
        return self

    def __exit__(self, *exception):
        sys.monitoring.register_callback(TOOL, EVENT, None)

    def step(self, code, offset):
        if offset in _places[code] and _reaches(sys._getframe(1)):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
