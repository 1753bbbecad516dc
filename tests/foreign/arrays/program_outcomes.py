"""What became of each program where: ARRAYS.md.

A test fails where a program does something else than what is kept. With PROGRAMS=write the suites
write what they see: `make tables WHAT=programs`.
"""

import os
import sys
from pathlib import Path
from typing import Any

import program_steps as steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "runner"))
from comparing import DIFFERENT, REFUSED, SAME, Compared
from foreign_results import Table, lines_of

#: Where programs run.
PLACES = ("native", "gpu", "page")
HEAD = """\
# Programs for arrays, with Tensors

Written by `make tables WHAT=programs`. Each program of `arrays/programs` runs twice: as it is, with ndarrays, and with a
`dlpack_web.Tensor` in place of each array that the comment `a Tensor` marks. What each statement gives,
prints and leaves in its arguments is compared, every element and dtype. Counted are the statements that use a
Tensor, or what was made with one:

- **same**: as with the ndarray;
- **refused**: an exception that says what to do, and the statement with `np.asarray(t)` instead is the same as with the
  ndarray;
- **different**: anything else. A test fails for it, unless `arrays/program_reasons.py` has the reason, which is
  below.

In CPython (native), in CPython with kernels (`arrays/kernels.py`) on a GPU over wgpu (gpu), and in Pyodide (page).
"""

TABLE = Table(HERE.parent / "ARRAYS.md", HEAD, "Refused, and different with the reason")


def compared(found: dict[str, Any]) -> list[Compared]:
    """Statements with what was raised, and the reason where that is no refusal."""
    rows = [Compared("", SAME)] * found["same"]
    for kind in (REFUSED, DIFFERENT):
        rows += [Compared(f"`{it}`", kind, "; ".join(why)) for it, *why in found[kind]]
    return rows


def check(place: str, name: str, found: dict[str, Any]) -> None:
    """AssertionError where a program did something that is not kept, or wrong."""
    assert not found["wrong"], f"{name} differs"
    lines = lines_of((name, place), compared(found), (REFUSED, DIFFERENT))
    if os.environ.get("PROGRAMS") == "write":
        TABLE.write({(name, place): lines}, {*steps.NAMES})
    assert TABLE.parsed().get((name, place)) == lines, (
        f"{name}, {place}: `make tables WHAT=programs` keeps it"
    )
