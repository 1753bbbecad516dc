"""A page as a reader uses it: runs a block, edits it, looks at an error, begins anew."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

FIRST = ".block >> nth=0"


def begin(open_docs: Callable, name: str = "index.html", **options: object) -> Page:
    page, _ = open_docs(name, **options)
    page.wait_for_selector("html[data-blocks]")
    return page


def test_a_block_runs_those_before_it(open_docs: Callable) -> None:
    page = begin(open_docs)
    assert page.evaluate("performance.getEntriesByType('resource').length") < 40
    count = page.locator(".block").count()
    page.click(f".block >> nth={count - 1} >> .run")
    # How far it is stands in the block: the page's bar may be out of sight.
    page.wait_for_selector(f".block >> nth={count - 1} >> .state:has-text('Loading')")
    last = f".block[data-state=done] >> nth={count - 1}"  # as many are done
    page.wait_for_selector(last)
    assert page.inner_text(".python-state") == "Python is ready."


def test_by_keyboard_edited_wrong_and_anew(open_docs: Callable) -> None:
    page = begin(open_docs, "tutorials/first-tensor.html")
    page.focus(f"{FIRST} >> pre")
    page.keyboard.press("Control+Enter")
    page.click(".block >> nth=1 >> .run")  # too early, and it says so
    assert "again when" in page.inner_text(".block >> nth=1 >> .state")
    page.wait_for_selector(".block[data-state=done] >> nth=0")
    page.focus(f"{FIRST} >> pre")
    page.keyboard.press("Enter")
    page.wait_for_selector(".block[data-edited] .editor")
    page.keyboard.press("Control+a")
    page.keyboard.type("/ # of the editor, not of the theme's search")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(
        "def deep(n): return deep(n - 1) if n else 1 / 0\ndeep(20)"
    )
    page.keyboard.press("Shift+Enter")
    error = page.wait_for_selector(f"{FIRST} >> .outputs .error")
    assert error
    assert error.inner_text().startswith("ZeroDivisionError: division by zero\n")
    assert page.inner_text(f"{FIRST} >> .state") == "It raised."
    page.keyboard.press("Escape")
    page.click(f"{FIRST} >> .edit")  # which is Reset now
    assert page.locator(".editor").count() == 0
    page.click(".restart")
    page.wait_for_selector(".python-bar[data-state=idle]")
    page.click(f"{FIRST} >> .run")
    page.wait_for_selector(".block[data-state=done] >> nth=0")


def test_without_webgpu_pages_say_so(open_docs: Callable) -> None:
    page = begin(open_docs, script="delete Navigator.prototype.gpu")
    assert "without WebGPU" in page.inner_text(f"{FIRST} >> .state")
    assert "no WebGPU" in page.inner_text(".python-state")
    assert not page.is_visible(f"{FIRST} >> .run")


def test_without_webgpu_the_other_blocks_run(open_docs: Callable) -> None:
    """Those below one that cannot run, too; and it says why."""
    script = "delete Navigator.prototype.gpu"
    page = begin(open_docs, "howto/views.html", script=script)
    assert "no WebGPU" in page.inner_text(f"{FIRST} >> .state")
    page.click(".run-all")
    page.wait_for_selector(".block:not([data-gpu])[data-state=done] >> nth=2")
    assert page.locator(".block[data-gpu][data-state]").count() == 0
    page.click(".block:not([data-gpu]) >> nth=0 >> .run")
    page.wait_for_selector(".block:not([data-gpu]) >> nth=0 >> .outputs")


def test_without_python_pages_say_so(browser: object, server: object) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]
    page.route("**/packages/pyodide.mjs", lambda route: route.fulfill(status=404))
    page.goto(f"{server.url}docs/index.html")  # type: ignore[attr-defined]
    page.wait_for_selector("html[data-blocks]")
    assert "Python is not on this site" in page.inner_text(".python-state")
    assert not page.is_visible(f"{FIRST} >> .run")
    assert page.is_enabled(f"{FIRST} >> .copy")
    assert not page.is_visible(f"{FIRST} >> .open")
    page.close()


def test_an_image_on_the_gpu_is_drawn(open_docs: Callable) -> None:
    """An image on the GPU is a canvas of its own."""
    page = begin(open_docs, "tutorials/images.html")
    page.click(f"{FIRST} >> .run")
    page.wait_for_selector(f"{FIRST} >> .outputs canvas.picture")


def test_outputs_are_as_dark_as_the_page(open_docs: Callable) -> None:
    """Also where the reader chose it, and the system prefers the other."""
    page = begin(open_docs, script="localStorage.theme = 'dark'", color_scheme="light")
    page.click(f"{FIRST} >> .run")
    page.wait_for_selector(".block[data-state=done]")
    frame = page.wait_for_selector(f"{FIRST} >> .outputs iframe")
    assert frame
    scheme = "(f) => getComputedStyle(f.contentDocument.documentElement).colorScheme"
    assert frame.evaluate(scheme) == "dark"
    page.evaluate("document.body.dataset.theme = 'light'")
    assert page.evaluate("new Promise(requestAnimationFrame).then(() => 0)") == 0
    assert frame.evaluate(scheme) == "light"
