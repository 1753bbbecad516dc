"""Where memory is: what dlw.inspect() finds."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from conftest import IN_PYODIDE

import dlpack_web as dlw


def test_tensors_are_found_by_name():
    x = dlw.from_dlpack(np.zeros((2, 3)))
    y = dlw.from_dlpack(np.zeros(4, np.float32))
    gone = dlw.from_dlpack(np.zeros(5))
    gone.release()
    names = {"x": x, "layers": [y, {"again": (x,)}], "gone": gone, "n": 3}
    report = dlw.inspect(names)
    assert report.tensors == {"x": x, "layers[0]": y, "layers[1]['again'][0]": x}
    assert report.nbytes == {"cpu": 48 + 16}
    text = repr(report)
    assert "layers[0]: Tensor(shape=(4,), dtype='float32', device='cpu')" in text
    html = report._repr_html_()
    for fact in ("layers[0]", "float32", "(2, 3)", "48 B"):
        assert f">{fact}<" in html
    x.release()
    assert ">x<" not in report._repr_html_()
    y.release()


def test_what_has_no_name_is_counted():
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
        deep = [[[[x]]]]
        report = dlw.inspect({"circle": circle, "deep": deep, "near": [[[x]]]})
    assert list(report.tensors) == ["near[0][0][0]"]


def test_variables_of_a_notebook(monkeypatch):
    with dlw.from_dlpack(np.zeros(3)) as x:
        variables = {"x": x, "_": x, "_3": x, "Out": {3: x}, "In": ["", "x"]}
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda: SimpleNamespace(user_ns=variables)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert list(dlw.inspect().tensors) == ["x", "Out[3]"]


def test_variables_of_main(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with dlw.from_dlpack(np.zeros(3)) as x:
        monkeypatch.setattr(sys.modules["__main__"], "found_here", x, raising=False)
        assert dlw.inspect().tensors["found_here"] is x


@pytest.mark.skipif(IN_PYODIDE, reason="here is a browser")
def test_without_a_browser_there_are_no_devices():
    assert dlw.inspect().devices == []
