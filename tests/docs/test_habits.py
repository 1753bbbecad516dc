"""What people bring from Jupyter: figures, magics, shell lines, packages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from python_page import Python, opened
from serve import Server


@pytest.fixture(scope="module")
def python(browser: Browser, server: Server) -> Iterator[Python]:
    with opened(browser, server) as made:
        yield made


def images(python: Python) -> int:
    return python.outputs().locator("img").count()


def test_figures_appear_at_the_end_of_the_block(python: Python) -> None:
    said = python.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    assert (said, images(python)) == ("", 1)
    python.run("plt.plot([1, 2])\nplt.show()")
    assert images(python) == 1  # and not once more at the end
    python.run("for _ in 'ab': plt.figure(); plt.plot([1, 2])")
    assert images(python) == 2
    python.run("plt.plot([1, 2])\n1 / 0")
    assert images(python) == 1
    python.run("3")
    assert images(python) == 0
    assert python.watch.complaints() == []


def test_matplotlib_inline_does_nothing(python: Python) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
    assert python.run(f"%matplotlib inline\n{plot}") == ""
    assert images(python) == 1
    assert python.run(f"%matplotlib\n{plot}").endswith("backend: inline\n")
    assert images(python) == 1


def test_other_backends_are_refused(python: Python) -> None:
    said = python.run("%matplotlib widget")
    assert "%matplotlib widget" in said
    assert "%matplotlib inline" in said


def test_packages_load_for_imports_beside_magics(
    browser: Browser, server: Server
) -> None:
    """A line that is not Python does not hide the imports of its block."""
    with opened(browser, server) as python:
        code = 'text = """\n%d""" % 1\n%matplotlib inline\nimport PIL\nPIL.__name__'
        assert python.run(code) == "'PIL'"
        assert python.run("x = 1\n%time import six") != ""
        assert python.run("six.__name__") == "'six'"
        assert python.watch.complaints() == []


def test_there_are_no_other_programs(python: Python) -> None:
    said = python.run("!ls -l")
    assert "ls -l: a browser has no other programs" in said
    assert "Traceback" not in said
    assert python.watch.complaints() == []


def test_pip_in_a_string_is_text(python: Python) -> None:
    code = 'if True:\n    %pip install dlpack-web\n    text = """\n%pip install six\n"""\ntext'
    assert python.run(code) == r"'\n%pip install six\n'"
    assert "No closing quotation" in python.run("%pip install 'six")


def test_other_missing_packages_name_pip(python: Python) -> None:
    said = python.run("import xarray.core")
    assert "%pip install xarray" in said
