"""Runs a program with arrays, then with Tensors, and compares statement by statement.

What a statement gives is its value, what it prints, and what the names that it uses are
afterwards: so what should have been written into an array counts, too.
"""

import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from described import described
from program_reasons import REASONS
from program_steps import Step, steps

import dlpack_web as dlw

#: Words that say what to do: ours, or those of a library that says it wants an ndarray.
WORDS = re.compile(
    r"t\.numpy\(\)|np\.asarray\(t\)|t\.reshape\(\(|to_host\(\)|ndarray|[Nn]um[Pp]y array"
)
_LONGEST = 200


@dataclass
class Outcome:
    """By kind, how many statements there were, or which and why.

    same: as with arrays. refused: with words that say what to do, which helps. different: what is
    raised, if anything, and the reason in program_reasons.py. wrong: anything else, as text.
    """

    same: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    different: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run(name: str) -> Outcome:
    """The outcome of a program."""
    program = steps(name)
    with _world():
        names = _fresh()
        originals = [_perform(step, names) for step in program]
        names.clear()
    outcome = Outcome()
    with _world():
        names = _fresh()
        for step, original in zip(program, originals, strict=True):
            _with_tensors(name, step, original, names, outcome)
        names.clear()
    return outcome


def _fresh() -> dict[str, Any]:
    return {"__name__": "__main__", "np": np, "dlw": dlw}


@contextlib.contextmanager
def _world() -> Iterator[None]:
    """A folder of its own; figures that pyplot keeps are closed afterwards."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield
    if pyplot := _loaded("matplotlib.pyplot"):
        pyplot.close("all")


def _loaded(name: str) -> Any:
    return sys.modules.get(name)


def _perform(step: Step, names: dict[str, Any]) -> Any:
    """What a statement gives, described."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        value = eval(step.code, names)
    if not step.checked:
        return None
    left = {name: names[name] for name in step.names if name in names}
    return described((value, printed.getvalue(), left))


def _with_tensors(
    name: str, step: Step, original: Any, names: dict[str, Any], outcome: Outcome
) -> None:
    refusal = None
    try:
        found = _perform(step, names)
    except Exception as error:  # whatever a library raises
        refusal = f"{type(error).__name__}: {' '.join(str(error).split())}"
        refusal = re.sub(r" at 0x\w+", "", refusal)
        found = _after_refusal(step, names)
    if step.tensor is not None:
        _make_tensor(step, names)
    if not step.checked and refusal is None:
        return
    same = found == original
    if same and refusal is None:
        outcome.same += 1
    elif same and WORDS.search(refusal or ""):
        outcome.refused.append((step.source, _cut(refusal)))
    else:
        reason = REASONS.get((name, step.source))
        if reason is None:
            outcome.wrong.append(_difference(step, refusal, original, found))
        else:
            outcome.different.append((step.source, _cut(refusal), reason))


def _cut(refusal: str | None) -> str:
    if refusal is None:
        return "no error"
    return refusal if len(refusal) <= _LONGEST else f"{refusal[:_LONGEST]} …"


def _after_refusal(step: Step, names: dict[str, Any]) -> Any:
    """The statement again with np.asarray(t) for every t, as the words say."""
    kept = {name: names[name] for name in step.names if name in names}
    names |= {name: _as_arrays(value) for name, value in kept.items()}
    try:
        found = _perform(step, names)
    except Exception as error:
        found = f"with np.asarray(t): {error!r}"
    names |= {name: kept[name] for name in kept if name not in step.stored}
    return found


def _as_arrays(value: Any) -> Any:
    if isinstance(value, dlw.Tensor):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_as_arrays, value))
    if type(value) is dict:
        return {key: _as_arrays(each) for key, each in value.items()}
    return value


def _make_tensor(step: Step, names: dict[str, Any]) -> None:
    (target,) = step.stored
    value = eval(step.tensor, names) if step.tensor else dlw.from_dlpack(names[target])
    assert isinstance(value, dlw.Tensor), step.source
    assert described(value) == described(names[target]), step.source
    names[target] = value


def _difference(step: Step, refusal: str | None, original: Any, found: Any) -> str:
    lines = [step.source]
    if refusal is not None:
        lines.append(f"raises {refusal}")
    if found != original:
        lines += [f"with arrays:  {_short(original)}", f"with Tensors: {_short(found)}"]
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 2000 else f"{text[:2000]}..."
