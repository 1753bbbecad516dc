"""Where memory is: what dlw.inspect() finds."""

import re
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from conftest import IN_PYODIDE

import dlpack_web as dlw
from dlpack_web._tensor.inspect import Report


def holders(report):
    return [row.holders for row in report.tensors]


def test_tensors_are_found_by_name():
    x = dlw.from_dlpack(np.zeros((2, 3)))
    y = dlw.from_dlpack(np.zeros(4, np.float32))
    gone = dlw.from_dlpack(np.zeros(5))
    gone.release()
    names = {"x": x, "layers": [y, {"again": (x,)}], "gone": gone, "n": 3}
    report = dlw.inspect(names)
    assert holders(report) == [("x", "layers[1]['again'][0]"), ("layers[0]",)]
    assert report.nbytes == {"cpu": 48 + 16}
    assert "layers[0]: float32 (4,) on cpu, 16 B, NumPy's memory" in repr(report)
    with dlw.empty(2) as own:
        found = {each.memory_of for each in dlw.inspect({"own": own}).tensors}
    assert found == {"dlpack_web", "NumPy"}
    assert repr(report).startswith("2 tensors alive (64 B on cpu), 0 held by")
    html = report._repr_html_()
    for fact in ("layers[0]", "float32", "(2, 3)", "48 B"):
        assert f">{fact}<" in html
    heads = re.findall(r"<th><div[^>]*>([^<]*)</div>", html)
    assert heads[:6] == ["held by", "dtype", "shape", "device", "size", "memory of"]
    x.release()
    y.release()
    assert dlw.inspect(names).tensors == []


def test_counts_of_a_device_are_not_shown_as_bytes():
    names = "buffers bytes idleBytes created reused up down copied copies taken"
    facts = dict.fromkeys(names.split(), 7)
    report = Report([], 0, 0, [{"device": "d", "lost": None} | facts])
    assert "lost" not in repr(report)
    html = report._repr_html_()
    shown = dict(re.findall(r"'>(\w+)</div></td><td><div[^>]*>([^<]*)</div>", html))
    assert [*shown] == [*facts]
    counts = {"buffers", "created", "reused", "copies", "taken"}
    assert {name for name, text in shown.items() if text == "7"} == counts
    assert {name for name, text in shown.items() if text == "7 B"} == {*facts} - counts


class Model:
    def __init__(self):
        self.weights = dlw.from_dlpack(np.zeros(3))


class Slotted:
    __slots__ = ("_bias",)

    def __init__(self):
        self._bias = dlw.from_dlpack(np.zeros(2))


def test_tensors_without_a_name_have_their_holders():
    model, slotted = Model(), Slotted()
    local = dlw.from_dlpack(np.zeros(1))
    boxed = [dlw.from_dlpack(np.zeros(4))]
    report = dlw.inspect({})
    found = {row.shape: row.holders for row in report.tensors}
    assert found == {
        (3,): ("Model.weights",),
        (2,): ("a Slotted",),
        (1,): ("local in test_tensors_without_a_name_have_their_holders()",),
        (4,): ("a list",),
    }
    for tensor in (model.weights, slotted._bias, local, *boxed):
        tensor.release()


def test_a_generator_that_waits_holds_its_variables():
    def waiting():
        inside = dlw.from_dlpack(np.zeros(5))
        yield inside.shape
        inside.release()

    generator = waiting()
    assert next(generator) == (5,)
    assert holders(dlw.inspect({})) == [("inside in waiting()",)]
    assert next(generator, None) is None


def test_the_variables_of_all_callers_hold():
    def ask():
        return dlw.inspect({})

    def between():
        other = 3
        return ask(), other

    mine = dlw.from_dlpack(np.zeros(1))
    report, _ = between()
    expected = ("mine in test_the_variables_of_all_callers_hold()",)
    assert holders(report) == [expected]
    mine.release()


def test_a_report_holds_nothing():
    x = dlw.from_dlpack(np.zeros(3))
    report = dlw.inspect({"x": x})
    del x
    assert dlw.live_tensors() == 0
    assert holders(report) == [("x",)]


def test_what_was_left_behind():
    old = dlw.from_dlpack(np.zeros(3))
    before = dlw.inspect({"old": old})
    new = dlw.from_dlpack(np.zeros(4))
    array = np.from_dlpack(new)
    left = dlw.inspect({"old": old, "new": new}).since(before)
    assert (holders(left), left.live, left.elsewhere) == ([("new",)], 2, 1)
    del array
    new.release()
    nothing = dlw.inspect({"old": old}).since(before)
    assert (nothing.tensors, nothing.live, nothing.elsewhere) == ([], 0, 0)
    old.release()


def test_holds_of_others_are_counted():
    before = dlw.inspect({}).elsewhere
    x = dlw.from_dlpack(np.zeros(3))
    array = np.from_dlpack(x)
    report = dlw.inspect({"x": x})
    assert (report.live - report.elsewhere, report.elsewhere) == (1, before + 1)
    del array
    assert dlw.inspect({"x": x}).elsewhere == before
    x.release()


def test_circles_and_depth_come_to_an_end():
    circle = []
    circle.append(circle)
    with dlw.from_dlpack(np.zeros(3)) as x:
        names = {"circle": circle, "deep": [[[[x]]]], "near": [[[x]]]}
        assert holders(dlw.inspect(names)) == [("near[0][0][0]",)]


def test_variables_of_a_notebook(monkeypatch):
    with dlw.from_dlpack(np.zeros(3)) as x:
        variables = {"x": x, "_": x, "_3": x, "Out": {3: x}, "In": ["", "x"]}
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda: SimpleNamespace(user_ns=variables)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert holders(dlw.inspect()) == [("x", "Out[3]")]


def test_variables_of_main(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with dlw.from_dlpack(np.zeros(3)) as x:
        monkeypatch.setattr(sys.modules["__main__"], "found_here", x, raising=False)
        assert ("found_here",) in holders(dlw.inspect())


@pytest.mark.skipif(IN_PYODIDE, reason="here is a browser")
def test_without_a_browser_there_are_no_devices():
    assert dlw.inspect().devices == []


@pytest.mark.skipif(IN_PYODIDE, reason="Pyodide has no threads")
def test_other_threads_go_on_beside_it():
    """They release tensors, and build tuples that nobody else may refer to."""
    errors, stop = [], threading.Event()

    def work():
        try:
            while not stop.is_set():
                tensors = tuple(dlw.empty((i, 2)) for i in range(5))
                assert frozenset(t.shape for t in tensors) == {(i, 2) for i in range(5)}
                for tensor in tensors:
                    tensor.release()
        except BaseException as error:  # noqa: BLE001 - SystemError among them
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(30):
            dlw.inspect({})
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
        sys.setswitchinterval(interval)
    assert errors == []
