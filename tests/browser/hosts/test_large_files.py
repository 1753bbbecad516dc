"""A file larger than what a page of Pyodide has as a rule."""

from __future__ import annotations

from collections.abc import Callable

from pages import TestPage


def test_a_gibibyte(open_test_page: Callable[..., TestPage]) -> None:
    """A page of its own, whose memory has not grown yet."""
    open_test_page().pytest(["tests/browser/cases/py/large_files.py"]).must_pass()
