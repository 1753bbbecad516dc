"""A page of the documentation, whose blocks run what a test writes into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import Watch, open_page
from playwright.sync_api import Browser, Locator, Page, Route, expect
from serve import Server

PAGE = "tutorials/first-tensor.html"
RAN = "[data-state=done], [data-state=failed]"

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


class Python:
    """The page, and what one does with its Python."""

    def __init__(self, page: Page, watch: Watch) -> None:
        self.page, self.watch = page, watch

    def block(self, number: int = 0) -> Locator:
        return self.page.locator(".block").nth(number)

    def outputs(self, number: int = 0) -> Locator:
        return self.block(number).locator(".outputs")

    def start(self, code: str, number: int = 0) -> None:
        """Writes code into a block, and runs it."""
        block = self.block(number)
        if block.get_attribute("data-edited") is None:
            block.locator(".edit").click()
        block.locator(".cm-content").focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")

    def run(self, code: str, number: int = 0) -> str:
        """The same, with what it says."""
        self.start(code, number)
        return self.finish(number)

    def finish(self, number: int = 0) -> str:
        self.block(number).and_(self.page.locator(RAN)).wait_for()
        said: str = self.outputs(number).evaluate(SAYS)
        return said

    def begin(self, code: str) -> None:
        """Code of which the first line has run when this returns."""
        self.start(f"print('begun')\n{code}")
        expect(self.outputs()).to_contain_text("begun")

    def stop(self) -> str:
        """Presses Stop."""
        self.block().get_by_role("button", name="Stop block 1").click()
        return self.finish()

    def restart(self) -> None:
        self.page.click(".restart")
        self.page.wait_for_selector(".python-bar[data-state=idle]")

    def bar(self) -> str:
        return self.page.inner_text(".python-state")


@contextmanager
def opened(
    browser: Browser,
    server: Server,
    *,
    script: str = "",
    policy: str = "",
    pyodide: str = "",
    wheel: Path | None = None,
    **options: object,
) -> Iterator[Python]:
    """The page; `script` runs before anything else in its worker, under `policy`."""

    def before_the_worker(route: Route) -> None:
        answer = route.fetch()
        headers = answer.headers
        if policy:
            headers["content-security-policy"] = policy
        route.fulfill(body=f"{script};\n{answer.text()}", headers=headers)

    def instead_of_pyodide(route: Route) -> None:
        headers = {"Cross-Origin-Embedder-Policy": "require-corp"}
        route.fulfill(body=pyodide, content_type="text/javascript", headers=headers)

    with open_page(browser, server.url, **options) as (page, watch):
        if script or policy:
            page.route("**/worker.eval.mjs", before_the_worker)
        if pyodide:
            page.route("**/packages/pyodide.mjs", instead_of_pyodide)
        if wheel:
            page.route(
                "**/wheel/wheel.json", lambda it: it.fulfill(json={"file": "x.whl"})
            )
            page.route("**/x.whl", lambda it: it.fulfill(path=wheel))
        page.goto(f"{server.url}docs/{PAGE}")
        page.wait_for_selector("html[data-blocks]")
        yield Python(page, watch)
