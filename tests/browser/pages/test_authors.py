"""The authors' page: it judges producers that the reader types."""

from __future__ import annotations

from browser import open_page
from page_checks import assert_clean, open_and_run
from playwright.sync_api import Browser
from serve import Server


def test_authors_page_judges_what_the_reader_types(
    browser: Browser, server: Server
) -> None:
    with open_page(browser, server.url) as (page, watch):
        result = open_and_run(page, "authors", server)
        assert result["figures"] == page.locator("#figures tr").count() == 5

        def broken(name: str) -> list[str]:
            page.click(f"#breaks button:text-is('{name}')")
            page.wait_for_selector("#verdict[data-running=false]")
            found = page.locator("#rules [data-state=broken]")
            return [str(each.get_attribute("data-rule")) for each in found.all()]

        assert broken("claim a neighbour") == ["S5"]
        assert broken("ignore copy: true") == ["R4"]
        assert broken("forget the versions") == ["R2"]
        assert broken("share the shape") == ["F14"]
        assert broken("clear at release") == ["O1"]
        assert broken("hang") == []
        assert page.text_content("#verdict") == "it did not end within 5 s"
        assert broken("restore it") == []
        kept = page.text_content("#verdict")
        text = page.input_value("#producer")
        assert "\nfunction make(" in text
        text = text.replace("\nfunction make(", "\nexport default function make(")
        page.fill("#producer", text)  # as in a file for `npx dlpack-web conformance`
        page.wait_for_selector("#verdict[data-running=false]")
        assert page.text_content("#verdict") == kept
        page.fill("#producer", "function make() {")
        page.wait_for_selector("#verdict:has-text('SyntaxError')")
        page.fill("#producer", "throw new Error('what is this?')")
        page.wait_for_selector("#verdict:has-text('what is this?')")
        assert_clean(watch)
