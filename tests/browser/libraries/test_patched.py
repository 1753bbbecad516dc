"""Libraries with patches of ours exchange tensors without any adapter, on one device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pages import ROOT, TestPage

CASES = "/tests/browser/libraries/patched_cases.mjs"


def test_patched_libraries(open_test_page: Callable[..., TestPage]) -> None:
    if not (ROOT / "build" / "patched" / ".done").is_file():
        pytest.fail("build/patched is missing: run `make build/patched/.done`")
    page = open_test_page(None)
    page.cases(CASES).must_pass()
    assert page.watch.complaints() == []
