"""The page "Your GPU": rows of the benchmark in the reader's browser."""

from __future__ import annotations

import json
import re

import pytest
from browser import await_result, is_firefox, open_page
from page_checks import assert_clean
from playwright.sync_api import Browser, Page, Route
from serve import Server

WAYS = {  # by title: how many ways
    "View of a NumPy array, 4 MiB": 3,
    "Kernel call": 3,
    "Upload, 16 MiB, target idle": 13,
    "Upload, 16 MiB, target in use": 6,
    "Upload of a.T, 16 MiB": 10,
    "Download, 64 bytes": 4,
    "Download, 16 MiB": 4,
}
KEEP = """() => {
  globalThis.kept = [];
  Clipboard.prototype.writeText = async (text) => {
    if (globalThis.refuses) throw new Error("refused");
    kept.push(text);
  };
  const { createObjectURL } = URL;
  URL.createObjectURL = (blob) => createObjectURL.call(URL, (globalThis.blob = blob));
}"""


def run(page: Page) -> dict:
    page.evaluate("globalThis.__result = undefined")
    page.click("#run")
    return await_result(page)


def counts(rows: list[dict]) -> dict[str, int]:
    titles = [row["title"] for row in rows]
    return {title: titles.count(title) for title in titles}


def test_it_measures_within_a_minute_and_gives_the_figures(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}gpu.html")
        assert page.is_disabled("#copy")
        assert page.is_disabled("#download")
        result = run(page)
        assert result["ok"], result
        assert result["seconds"] < 60
        rows = result["rows"]
        assert counts(rows) == WAYS
        for row in rows:
            blocked = row.get("js_ms", row["median_ms"])
            assert min(blocked, row["median_ms"], row["n"] - 2) > 0, row
            assert ("js_ms" in row) == (not row["title"].startswith("Download")), row
        ours = [row for row in rows if row["relative"] == 1]
        assert {row["title"] for row in ours} == {*WAYS}
        assert all(row["way"].startswith("dlpack-web") for row in ours)
        pieces = {(row["layout"], row["way"]) for row in rows if "pieces" in row["way"]}
        assert pieces > {
            (layout, f"floor, pieces of {mib} MiB and a submit")
            for layout in ("contiguous", "in use")
            for mib in (1, 4, 8)
        }

        # The adapter is software, in both browsers of the tests.
        assert result["adapter"]["software"]
        assert ("swiftshader" in page.inner_text("#software")) != is_firefox()
        assert "say nothing about a GPU" in page.inner_text("#software")
        assert re.search(r"pieces of 4 MiB\.$", page.inner_text("#answer"))
        assert page.locator("#figures svg").count() == len(rows)

        page.evaluate(KEEP)
        page.click("#copy")
        page.wait_for_selector("#status:has-text('Copied')")
        [markdown] = page.evaluate("kept")
        for row in rows:
            assert f"| {row['title']} | {row['way']} | " in markdown
        assert "say nothing about a GPU" in markdown
        page.evaluate("globalThis.refuses = true")
        page.click("#copy")
        page.wait_for_selector("#markdown")
        selected = (
            "(field) => field.value.slice(field.selectionStart, field.selectionEnd)"
        )
        assert page.eval_on_selector("#markdown", selected) == markdown
        page.click("#download")
        assert json.loads(page.evaluate("() => blob.text()")) == {
            key: value for key, value in result.items() if key != "page"
        }
        assert_clean(watch)


def test_it_runs_twice(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, watch):
        page.goto(f"{server.url}gpu.html?seconds=1")
        for _ in range(2):
            result = run(page)
            assert result["ok"], result
            assert counts(result["rows"]) == WAYS
        assert page.locator("#figures tbody").count() == len(WAYS)
        assert_clean(watch)


@pytest.mark.parametrize("when", ["at first", "at last"])
def test_a_wrong_result_is_shown_as_such(
    when: str, browser: Browser, server: Server
) -> None:
    wrong = {
        "at first": "true",
        "at last": "(globalThis.views = (globalThis.views ?? 0) + 1) > 3",
    }[when]
    changes = {
        "memory": (
            "const { data } = borrowed;",
            f"const data = {wrong} ? new Float32Array(1) : borrowed.data;",
        ),
        "uploads": ("inPieces(n * MB)", "inPieces(n * MB, copied)"),  # zeros
    }

    def fulfil(route: Route) -> None:
        text = route.fetch().text()
        name = route.request.url.split("/")[-1].removesuffix(".mjs")
        if name in changes:
            right, changed = changes[name]
            assert text.count(right) == 1
            text = text.replace(right, changed)
        route.fulfill(body=text, content_type="text/javascript")

    with open_page(browser, server.url) as (page, watch):
        page.route("**/rows/*.mjs", fulfil)
        page.goto(f"{server.url}gpu.html?seconds=1")
        result = run(page)
        assert not result["ok"]
        broken = {row["way"]: row["error"] for row in result["rows"] if "error" in row}
        assert (
            broken.pop("getBuffer()+release()") == "wrong result: getBuffer()+release()"
        )
        assert len(broken) == 3
        assert all("pieces" in way for way in broken)
        assert counts(result["rows"]) == WAYS
        shown = page.locator("#figures .broken").all_inner_texts()
        assert shown[0] == "wrong result: getBuffer()+release()"
        assert len(shown) == 1 + 3 + 3 + 1
        assert "a result is wrong" in page.inner_text("#status")
        assert page.get_attribute("#checks-box", "open") is not None
        page.evaluate(KEEP)
        page.click("#copy")
        page.wait_for_selector("#status:has-text('Copied')")
        assert (
            "| getBuffer()+release() | wrong result: getBuffer()+release() |"
            in page.evaluate("kept[0]")
        )
        assert_clean(watch)
