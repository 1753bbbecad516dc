"""What compares programs, and the table of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import comparing
import foreign_results as results
import pytest
from comparing import DIFFERENT, REFUSED, SAME, Close, Listed

NEAR = Close(1e-3, 0)


def said(*checks: dict[str, Any], ended: str = "") -> str:
    return json.dumps(
        {
            "ended": ended,
            "checks": [{"name": "x", "close": None, "found": each} for each in checks],
        }
    )


def of(native: dict[str, Any], page: dict[str, Any], close: Close = NEAR) -> str:
    (compared,) = comparing.compare(said(native), said(page), close)
    return compared.outcome


def array(dtype: str, *values: float) -> dict[str, Any]:
    shape = [len(values)]
    return {"type": "ndarray", "dtype": dtype, "shape": shape, "value": [*values]}


def raised(kind: str, words: str = "there is no such thing here") -> dict[str, Any]:
    return {"raised": kind, "kinds": [kind, "Parent", "Exception"], "words": words}


ONE = {"type": "int", "value": 1}


@pytest.mark.parametrize(
    ("native", "page", "outcome"),
    [
        (ONE, ONE, SAME),
        (ONE, ONE | {"value": 2}, DIFFERENT),
        (ONE, ONE | {"type": "bool", "value": True}, DIFFERENT),
        ({"type": "float", "value": 1.0}, {"type": "float", "value": 1.0005}, SAME),
        ({"type": "float", "value": 1.0}, {"type": "float", "value": 1.5}, DIFFERENT),
        (array("float32", 1.0), array("float32", 1.0005), SAME),
        (array("float32", 1.0), array("float32", 1.01), DIFFERENT),
        (array("float32", 1.0), array("float64", 1.0), DIFFERENT),
        (array("float32", 1.0), array("float32", 1.0, 2.0), DIFFERENT),
        (array("float32", float("nan")), array("float32", float("nan")), SAME),
        (array("float32", float("inf")), array("float32", 1.0), DIFFERENT),
        (array("float32", 1.0), array("float32", float("nan")), DIFFERENT),
        (array("int64", 1), array("int64", 2), DIFFERENT),
        (array("object", True), array("object", 1), DIFFERENT),
        (array("object", 1), array("object", True), DIFFERENT),
        ({"type": "A"}, {"type": "A", "value": 1}, DIFFERENT),
        ({"type": "A", "items": [ONE]}, {"type": "A", "items": [ONE] * 2}, DIFFERENT),
        ({"type": "A", "items": [ONE] * 2}, {"type": "A", "items": [ONE]}, DIFFERENT),
        (raised("ValueError"), raised("ValueError", "other words"), SAME),
        (raised("ValueError"), raised("TypeError"), DIFFERENT),
        (raised("Parent"), raised("ValueError"), SAME),
        (raised("ValueError"), raised("Parent"), DIFFERENT),
        (raised("ValueError"), ONE, DIFFERENT),
        (ONE, raised("ValueError"), DIFFERENT),
        (ONE, raised("NotImplemented"), REFUSED),
        (ONE, raised("NotImplemented", "no"), DIFFERENT),
        (raised("ValueError"), raised("NotImplemented"), REFUSED),
        (ONE, raised("RuntimeError", "can't start new thread"), REFUSED),
    ],
)
def test_checks_are_compared(
    native: dict[str, Any], page: dict[str, Any], outcome: str
) -> None:
    assert of(native, page) == outcome


def test_integers_are_exact_but_for_steps() -> None:
    assert of(array("uint8", 1), array("uint8", 2), Close(1, 1)) == DIFFERENT
    assert of(array("uint8", 1), array("uint8", 2), Close(steps=1)) == SAME
    assert of(array("uint8", 1), array("uint8", 3), Close(steps=1)) == DIFFERENT
    assert of(ONE, ONE | {"value": 2}, Close(1, 1, steps=1)) == DIFFERENT


def test_checks_of_one_side_differ() -> None:
    nothing = said(ended="Traceback: …")
    (missing,) = comparing.compare(said(ONE), nothing, NEAR)
    assert (missing.outcome, missing.why) == (DIFFERENT, "not reached: Traceback: …")
    page = json.loads(said(ONE, ONE))
    page["checks"][1]["name"] = "y"
    both = comparing.compare(said(ONE), json.dumps(page), NEAR)
    assert [each.outcome for each in both] == [SAME, DIFFERENT]
    (more,) = comparing.compare(said(), said(ONE), NEAR)
    assert (more.outcome, more.why) == (DIFFERENT, "only in the page")


def test_a_program_that_fails_natively_is_an_error() -> None:
    with pytest.raises(AssertionError, match="natively: Traceback"):
        comparing.compare(said(ended="Traceback"), said(), NEAR)
    with pytest.raises(AssertionError, match="more than one"):
        comparing.compare(said(ONE, ONE), said(ONE), NEAR)


def test_listed_differences_pass_as_long_as_they_differ() -> None:
    compared = comparing.compare(said(ONE), said(), NEAR)
    assert comparing.unlisted(compared, []) == (compared, [])
    entry = Listed("onnxruntime/a", "x*", "random")
    assert comparing.unlisted(compared, [entry]) == ([], [entry][:0])
    assert comparing.unlisted([], [entry]) == ([], [entry])
    assert entry.is_of("onnxruntime/a", "cpu")
    assert not entry.is_of("onnxruntime/b", "cpu")
    on_gpu = Listed("onnxruntime/a", "x", "random", "webgpu")
    assert not on_gpu.is_of("onnxruntime/a", "cpu")


def test_the_table_is_read_as_it_is_written(tmp_path: Path) -> None:
    key = ("onnxruntime/a", "cpu")
    compared = [
        comparing.Compared("one", SAME),
        comparing.Compared("two", REFUSED, "NotImplemented: no | such\nthing"),
    ]
    lines = results.lines_of(key, compared)
    assert lines == [
        "| onnxruntime/a | cpu | 2 | 1 | 1 | 0 |",
        "| onnxruntime/a | cpu | two | no \\| such thing |",
    ]
    second = ("onnxruntime/b", "cpu")
    other = {second: results.lines_of(second, compared[:1])}
    table = results.Table(tmp_path / "RESULTS.md", "# Table")
    table.write({key: lines} | other, {"onnxruntime/a", second[0]})
    assert table.parsed() == {key: lines} | other
    assert "| **all** |  | **3** | **2** | **1** | **0** |" in table.written()
    table.write({}, {second[0]})
    assert table.parsed() == other


def test_the_table_is_of_the_programs_that_there_are() -> None:
    known = results.RESULTS.parsed()
    assert {program for program, _ in known} == results.programs()
    assert results.RESULTS.rendered(known) == results.RESULTS.written()
