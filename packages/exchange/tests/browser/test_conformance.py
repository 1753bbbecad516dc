"""The suite in pages: over producers and consumers of all kinds on a GPU, and over the real libraries."""

from __future__ import annotations

from collections.abc import Callable

from pages import TestPage

HERE = "/packages/exchange/tests/"


def test_conformance(open_test_page: Callable[..., TestPage]) -> None:
    # The snippets of EXCHANGE.md are text to the page that runs them.
    page = open_test_page(None, name="notebook.eval.html")
    page.cases(f"{HERE}cases/conformance_cases.mjs").must_pass()
    assert page.watch.complaints() == []


def test_adapters(open_test_page: Callable[..., TestPage]) -> None:
    page = open_test_page(None)
    page.cases(f"{HERE}browser/adapters_cases.mjs").must_pass()
    assert page.watch.complaints() == []


def test_patched_libraries(open_test_page: Callable[..., TestPage]) -> None:
    """Libraries with patches of ours exchange tensors without any adapter, on one device."""
    page = open_test_page(None)
    page.cases(f"{HERE}browser/patched_cases.mjs").must_pass()
    assert page.watch.complaints() == []
