"""What the notebook page keeps, shares and offers to those who have no keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from attacks import book, text
from notebook_page import PHONE, Notebook, opened, serve_script
from playwright.sync_api import Browser, BrowserContext, Page, expect
from serve import Server
from test_attacks import NO_PYTHON, open_file

KEPT = "() => document.querySelector('#draft').textContent === 'kept by this browser'"


@pytest.fixture
def notebook(browser: Browser, site: Server) -> Iterator[Notebook]:
    """Python is not needed, and not waited for."""
    with opened(browser, site, pyodide=NO_PYTHON) as made:
        yield made


# Holds up what the browser keeps until `release()`: one transaction writes at a time.
BUSY = """() => new Promise((held) => {
  const asked = indexedDB.open("dlpack-web-notebook");
  asked.onsuccess = () => {
    const store = asked.result.transaction("drafts", "readwrite").objectStore("drafts");
    let goes = true;
    globalThis.release = () => { goes = false; };
    const more = () => { if (goes) store.count().onsuccess = more; };
    store.count().onsuccess = () => { more(); held(); };
  };
})"""


def another_tab(context: BrowserContext, site: Server, at: str = "") -> Page:
    page = context.new_page()
    serve_script(page, "packages/pyodide.mjs", NO_PYTHON)
    page.goto(f"{site.url}notebook/{at}")
    page.wait_for_selector("body[data-ready]")
    return page


def add(page: Page, text: str) -> None:
    page.locator(".cell").last.focus()
    page.click("#add-code")
    page.keyboard.insert_text(text)


def sources(page: Page) -> list[str]:
    found: list[str] = page.locator(".cell .cm-content").all_inner_texts()
    return found


def test_changes_of_tabs_that_ended_are_offered(
    notebook: Notebook, site: Server
) -> None:
    first = notebook.page
    second = another_tab(first.context, site)
    for page, code in ((first, "one = 1"), (second, "two = 2")):
        add(page, code)
        page.wait_for_function(KEPT)
    third = another_tab(first.context, site)
    expect(third.locator("#offers li")).to_have_count(0)  # both are alive
    third.close()
    first.close()
    fourth = another_tab(second.context, site)
    offers = fourth.locator("#offers li")
    expect(offers).to_have_count(1)
    assert "tour.ipynb was not saved" in offers.inner_text()
    assert "one = 1" not in sources(fourth)  # only offered
    offers.get_by_text("Restore").click()
    assert sources(fourth)[-1] == "one = 1"
    expect(offers).to_have_count(0)
    fourth.wait_for_function(KEPT)  # it is this tab's now
    assert sources(second)[-1] == "two = 2"
    fourth.close()
    fifth = another_tab(second.context, site)
    expect(fifth.locator("#offers li")).to_have_count(1)
    fifth.evaluate(BUSY)
    fifth.get_by_text("Discard").click()
    assert fifth.locator("#offers li").count() == 1  # shown as long as it is kept
    fifth.evaluate("release()")
    expect(fifth.locator("#offers li")).to_have_count(0)
    fifth.close()
    sixth = another_tab(second.context, site)
    expect(sixth.locator("#offers li")).to_have_count(0)
    with sixth.expect_download():
        second.bring_to_front()
        sixth.click("#save")
    assert notebook.watch.complaints() == []


def test_what_is_saved_is_not_offered(notebook: Notebook, site: Server) -> None:
    page = notebook.page
    add(page, "saved = 1")
    page.wait_for_function(KEPT)
    with page.expect_download():
        page.click("#save")
    assert page.locator("#draft").inner_text() == ""
    other = another_tab(page.context, site)
    page.close()
    other.reload()
    other.wait_for_selector("body[data-ready]")
    assert other.locator("#offers li").count() == 0


def test_browser_that_keeps_nothing_says_so(browser: Browser, site: Server) -> None:
    with opened(browser, site, pyodide=NO_PYTHON) as notebook:
        page = notebook.page
        page.add_init_script("delete window.indexedDB; window.indexedDB = undefined")
        page.add_init_script("IDBFactory.prototype.open = () => { throw Error('off') }")
        page.reload()
        page.wait_for_selector("body[data-ready]")
        add(page, "x = 1")
        page.wait_for_function(
            "() => document.querySelector('#draft').textContent.startsWith('not kept')"
        )


@pytest.mark.parametrize("focused", ["#name", "body", "the editor"])
def test_control_s_saves_wherever_the_keyboard_is(
    notebook: Notebook, focused: str
) -> None:
    page = notebook.page
    page.fill("#name", "mine.ipynb")
    add(page, "1 + 1")
    if focused == "body":
        page.evaluate("document.activeElement.blur()")
    elif focused == "#name":
        page.focus(focused)
    with page.expect_download() as download:
        page.keyboard.press("Control+s")
    assert download.value.suggested_filename == "mine.ipynb"


def test_links_hold_the_notebook(notebook: Notebook, site: Server) -> None:
    page = notebook.page
    add(page, "mine = 'ü 🙂'")
    page.fill("#name", "mine.ipynb")
    page.click("#share")
    page.wait_for_function("() => document.getElementById('link').value !== ''")
    link = page.locator("#link").input_value()
    assert link.startswith(f"{site.url}notebook/#nb=")
    said = page.locator("#link-size").inner_text()
    assert "without outputs" in said
    assert "on this computer only" in said  # the site is on localhost
    assert "Send the saved file instead" in said
    page.keyboard.press("Escape")
    other = another_tab(page.context, site, link.split("notebook/")[1])
    assert other.locator("#name").input_value() == "mine.ipynb"
    assert sources(other) == sources(page)
    assert "None of it has run" in other.locator("#problem").inner_text()
    # Not even where a page is told to run by itself.
    hasty = another_tab(page.context, site, "?auto" + link.split("notebook/")[1])
    assert hasty.locator(".cell:not([data-state=idle])").count() == 0
    hasty.close()
    # A broken one leaves what is there.
    for broken in (
        link[:-30],
        f"{link}AAAA",
        link[:60] + "~" + link[60:],
        link[:-40] + "x" * 40,
    ):
        other.evaluate("(hash) => { location.hash = hash; }", broken.split("#")[1])
        other.wait_for_function(
            "() => document.querySelector('#problem').textContent.includes('is broken')"
        )
        other.click("#problem button")
        assert other.locator("#name").input_value() == "mine.ipynb"
        assert sources(other) == sources(page)
    assert notebook.watch.complaints() == []


BOMB = """async (count) => {
  const part = new Uint8Array(1 << 20);
  const stream = new Blob(Array(count).fill(part)).stream();
  const packed = stream.pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  location.hash = "nb=" + btoa(text).replaceAll("+", "-").replaceAll("/", "_");
}"""


def test_what_is_not_shown_is_not_lost(notebook: Notebook) -> None:
    raw = {"cell_type": "raw", "id": "r", "metadata": {}, "source": "x"}
    image = {"a.png": {"image/png": "AAAA"}}
    with_image = text("![](attachment:a.png)") | {"id": "m", "attachments": image}
    open_file(notebook.page, book(raw, with_image), "both.ipynb")
    notebook.page.wait_for_selector(".cell:nth-child(2):last-child")
    _, written = notebook.saved()
    assert written["cells"] == [raw, with_image]


def test_small_link_to_something_endless_is_refused(notebook: Notebook) -> None:
    notebook.page.evaluate(BOMB, 64)
    notebook.page.wait_for_function(
        "() => document.querySelector('#problem').textContent.includes('more than 4 MB')"
    )


def test_buttons_do_what_keys_do(notebook: Notebook) -> None:
    page = notebook.page
    cells = page.locator(".cell")
    before, count = sources(page), cells.count()

    def press(index: int, name: str) -> None:
        cells.nth(index).hover()
        cells.nth(index).locator(f".{name}").click()

    press(1, "move-down")
    assert sources(page)[1:3] == [before[2], before[1]]
    press(2, "move-up")
    assert sources(page) == before
    press(0, "move-up")  # it is the first one
    assert sources(page) == before
    press(1, "kind")
    assert cells.nth(1).get_attribute("data-type") == "markdown"
    press(1, "edit")
    assert cells.nth(1).locator(".cm-content").is_visible()
    press(1, "kind")
    assert cells.nth(1).get_attribute("data-type") == "code"
    press(1, "delete")
    assert cells.count() == count - 1
    page.keyboard.press("z")
    assert sources(page) == before
    cells.nth(1).focus()
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Alt+ArrowUp")
    assert sources(page)[1:3] == [before[2], before[1]]
    assert notebook.watch.complaints() == []


def test_phone_reaches_everything(browser: Browser, site: Server) -> None:
    with opened(browser, site, pyodide=NO_PYTHON, viewport=PHONE) as notebook:
        page = notebook.page
        for name in ("save", "share", "memory", "help", "open", "restart"):
            button = page.locator(f"#{name}")
            button.scroll_into_view_if_needed()  # the row of buttons scrolls
            box = button.bounding_box()
            assert box is not None
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= PHONE["width"], name
        page.click("#memory")
        assert page.locator("#panel").is_visible()
        page.locator(".cell").nth(1).click()
        assert page.locator(".cell .acts .delete").nth(1).is_visible()


def test_phone_has_its_screen_for_cells(browser: Browser, site: Server) -> None:
    small = {"width": 375, "height": 667}
    with opened(browser, site, pyodide=NO_PYTHON, viewport=small) as notebook:
        header = notebook.page.locator("header")
        for y in (0, 300):  # it stays while the cells scroll
            notebook.page.mouse.wheel(0, y)
            box = header.bounding_box()
            assert box is not None
            assert (box["x"], box["y"]) == (0, 0)
            assert box["height"] <= 0.15 * small["height"]
        assert notebook.page.locator("#kernel").inner_text() == "Python is loading"


DROP = """([name, text]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], name));
  const options = { bubbles: true, cancelable: true, dataTransfer };
  document.querySelector("#cells").dispatchEvent(new DragEvent("drop", options));
}"""


def test_new_and_dropped_notebooks(notebook: Notebook) -> None:
    page = notebook.page
    page.click("#new")
    assert page.locator("#name").input_value() == "untitled.ipynb"
    page.keyboard.insert_text("x = 1")  # its cell is edited
    assert sources(page) == ["x = 1"]
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click("#new")
    assert sources(page) == ["x = 1"]  # it was not saved
    page.once("dialog", lambda dialog: dialog.accept())
    page.evaluate(DROP, ["dropped.ipynb", json.dumps(book(text("*dropped*")))])
    page.wait_for_selector(".text em")
    assert page.locator("#name").input_value() == "dropped.ipynb"
    page.select_option("#examples", "images")
    page.wait_for_function(
        "() => document.querySelector('#name').value === 'images.ipynb'"
    )
    assert notebook.watch.complaints() == []


def test_pages_of_the_documentation_are_notebooks(
    browser: Browser, site: Server
) -> None:
    at = "#docs/tutorials/first-tensor:2"
    with opened(browser, site, at, pyodide=NO_PYTHON) as notebook:
        page = notebook.page
        assert page.locator("#name").input_value() == "first-tensor.ipynb"
        assert page.locator(".text h1").inner_text() == "The first tensor"
        back = page.locator(".text a").first.get_attribute("href")
        assert back == f"{site.url}docs/tutorials/first-tensor.html"
        second = page.locator(".cell[data-type=code]").nth(1)
        assert "selected" in (second.get_attribute("class") or "")
        assert "t.shape" in second.inner_text()
        assert (
            page.locator("body[data-ready] .cell:not([data-state=idle])").count() == 0
        )
        assert notebook.watch.complaints() == []
    for at in ("#docs/nothing:1", "#docs/../index:1"):
        with opened(browser, site, at, pyodide=NO_PYTHON) as notebook:
            assert notebook.page.locator("#name").input_value() == "tour.ipynb"
            words = 'no page "nothing"' if "nothing" in at else ""
            assert words in notebook.problem()


def test_outputs_come_back_with_a_draft(browser: Browser, site: Server) -> None:
    with opened(browser, site, "#images") as notebook:
        page = notebook.page
        notebook.idle()
        page.click("#new")
        notebook.run("print('kept'); 6 * 7")
        notebook.run("import matplotlib.pyplot as plt; plt.plot([1, 2]);")
        page.evaluate("() => { document.querySelector('#draft').textContent = ''; }")
        page.wait_for_function(KEPT)  # with this figure, too
        page.once("dialog", lambda dialog: dialog.accept())
        page.reload()
        page.wait_for_selector("body[data-ready]")
        page.locator("#offers li").get_by_text("Restore").click()
        shown = page.locator(".cell .outputs")
        assert shown.all_inner_texts() == ["", "kept\n\n42", ""]
        assert shown.nth(2).locator("img").count() == 1
        assert notebook.watch.complaints() == []


def test_missing_example_says_so(browser: Browser, site: Server) -> None:
    with opened(browser, site, "#nothing", pyodide=NO_PYTHON) as notebook:
        assert 'no example "nothing"' in notebook.problem()
        assert notebook.page.locator(".cell").count() == 1
