"""What one does with our own notebook page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import Watch, is_firefox, open_page
from playwright.sync_api import Browser, Page
from serve import ROOT, Server

PHONE = {"width": 390, "height": 844}

CATCH_DOWNLOAD = """() => {
  globalThis.caught = undefined;
  let text;
  URL.createObjectURL = (blob) => {
    text = blob.text();
    return "#";
  };
  HTMLAnchorElement.prototype.click = async function () {
    globalThis.caught = [this.download, await text];
  };
}"""


# What an output says, with what its frame says.
SAYS = """(area) => new Promise((resolve) => {
  const frames = [...area.querySelectorAll("iframe")];
  const ready = (each) => each.contentDocument?.readyState === "complete";
  const tell = (left) => {
    if (left && !frames.every(ready)) return setTimeout(tell, 20, left - 1);
    const texts = frames.map((each) => each.contentDocument.body.innerText);
    resolve([area.innerText, ...texts].filter(Boolean).join("\\n"));
  };
  tell(200);
})"""


class Notebook:
    """The page, and what one does with it."""

    def __init__(self, page: Page, watch: Watch) -> None:
        self.page, self.watch = page, watch

    def idle(self) -> None:
        self.page.wait_for_selector(
            "#kernel[data-state=idle], #kernel[data-state=dead]"
        )

    def start(self, code: str) -> None:
        """A new cell at the end, run."""
        self.page.locator(".cell").last.focus()
        self.page.click("#add-code")
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")

    def run(self, code: str) -> str:
        """The same, with what it says."""
        self.start(code)
        return self.finish()

    def finish(self) -> str:
        # A software GPU works off what a loop has submitted.
        self.page.wait_for_selector(".cell:last-child[data-state=idle]")
        self.idle()
        said: str = self.page.locator(".cell").last.locator(".outputs").evaluate(SAYS)
        return said

    def interrupt(self) -> str:
        self.page.wait_for_timeout(500)
        if self.page.locator("#interrupt").is_enabled():
            self.page.click("#interrupt")
        return self.finish()

    def problem(self) -> str:
        return self.page.locator("#problem span").inner_text()

    def saved(self, by: Callable[[], object] | None = None) -> tuple[str, Any]:
        """Name and content of the file that saving makes."""
        by = by or (lambda: self.page.click("#save"))
        if is_firefox():  # Playwright is not told of downloads there
            self.page.evaluate(CATCH_DOWNLOAD)
            by()
            self.page.wait_for_function("() => globalThis.caught")
            name, text = self.page.evaluate("() => globalThis.caught")
            return name, json.loads(text)
        with self.page.expect_download() as download:
            by()
        file = download.value
        return file.suggested_filename, json.loads(Path(file.path()).read_text())

    def sources(self) -> list[str]:
        _, written = self.saved(lambda: self.page.keyboard.press("Control+s"))
        return [each["source"] for each in written["cells"]]


@contextmanager
def opened(
    browser: Browser,
    site: Server,
    at: str = "",
    *,
    script: str = "",
    policy: str = "",
    pyodide: str = "",
    wheel: Path | None = None,
    **options: object,
) -> Iterator[Notebook]:
    """The page; `script` runs before anything else in its worker, under `policy`."""
    with open_page(browser, site.url, **options) as (page, watch):
        worker = (ROOT / "web" / "docs" / "_static" / "run" / "worker.eval.mjs").read_text()
        if script or policy:
            serve_script(page, "worker.eval.mjs", f"{script};\n{worker}", policy)
        if pyodide:
            serve_script(page, "packages/pyodide.mjs", pyodide)
        if wheel:
            page.route(
                "**/wheel/wheel.json", lambda it: it.fulfill(json={"file": "x.whl"})
            )
            page.route("**/x.whl", lambda it: it.fulfill(path=wheel))
        page.goto(f"{site.url}notebook/{at}")
        page.wait_for_selector("body[data-ready]")
        yield Notebook(page, watch)


def serve_script(page: Page, name: str, text: str, policy: str = "") -> None:
    """Has a script of this text instead of the site's own."""
    headers = {"Cross-Origin-Embedder-Policy": "require-corp"}
    if policy:
        headers["Content-Security-Policy"] = policy
    page.route(
        f"**/{name}",
        lambda route: route.fulfill(
            body=text, content_type="text/javascript", headers=headers
        ),
    )
