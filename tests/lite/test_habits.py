"""What people bring from Jupyter: figures, input(), magics, shell lines, widgets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notebook_page import Notebook, opened
from playwright.sync_api import Browser, Locator, expect
from serve import Server


@pytest.fixture(scope="module")
def notebook(browser: Browser, site: Server) -> Iterator[Notebook]:
    with opened(browser, site) as made:
        made.idle()
        yield made


def images(notebook: Notebook) -> int:
    return notebook.page.locator(".cell:last-child .outputs img").count()


def asked(notebook: Notebook, code: str) -> Locator:
    """Starts a cell that calls input(); the field that it shows."""
    notebook.start(code)
    return notebook.page.locator(".cell:last-child .ask input")


def test_figures_appear_at_the_end_of_the_cell(notebook: Notebook) -> None:
    said = notebook.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    assert (said, images(notebook)) == ("", 1)
    notebook.run("plt.plot([1, 2])\nplt.show()")
    assert images(notebook) == 1  # and not once more at the end
    notebook.run("for _ in 'ab': plt.figure(); plt.plot([1, 2])")
    assert images(notebook) == 2
    notebook.run("plt.plot([1, 2])\n1 / 0")
    assert images(notebook) == 1
    notebook.run("3")
    assert images(notebook) == 0
    assert notebook.watch.complaints() == []


def test_matplotlib_inline_does_nothing(notebook: Notebook) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
    assert notebook.run(f"%matplotlib inline\n{plot}") == ""
    assert images(notebook) == 1
    assert notebook.run(f"%matplotlib\n{plot}").endswith("backend: inline\n")
    assert images(notebook) == 1


def test_other_backends_are_refused(notebook: Notebook) -> None:
    said = notebook.run("%matplotlib widget")
    assert "%matplotlib widget" in said
    assert "%matplotlib inline" in said


def test_packages_load_for_imports_beside_magics(
    browser: Browser, site: Server
) -> None:
    """A line that is not Python does not hide the imports of its cell."""
    with opened(browser, site) as notebook:
        notebook.idle()
        code = "%matplotlib inline\nimport PIL\nPIL.__name__"
        assert notebook.run(code) == "'PIL'"
        assert notebook.run("x = 1\n%time import six") != ""
        assert notebook.run("six.__name__") == "'six'"
        assert notebook.watch.complaints() == []


def test_input_is_asked_below_the_cell(notebook: Notebook) -> None:
    field = asked(notebook, "name = input('Your name? ')\nprint('Hello', name)")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_name("Your name?")
    assert notebook.page.evaluate("6 * 7") == 42  # the page goes on
    field.press_sequentially("Ada <b>")
    field.press("Enter")
    assert notebook.finish() == "Your name? Ada <b>\nHello Ada <b>\n"
    expect(field).to_have_count(0)
    twice = asked(notebook, "int(input()) + int(input())")
    for text in ("40", "2"):
        twice.fill(text)
        twice.press("Enter")
    assert notebook.finish() == "40\n2\n\n42"
    assert notebook.watch.complaints() == []


def test_passwords_are_not_shown(notebook: Notebook) -> None:
    field = asked(notebook, "import getpass\nlen(getpass.getpass())")
    expect(field).to_have_attribute("type", "password")
    field.fill("secret")
    field.press("Enter")
    assert notebook.finish() == "Password: \n\n6"


def test_input_can_be_interrupted(notebook: Notebook) -> None:
    field = asked(notebook, "input('? ')")
    expect(field).to_be_visible()
    assert "KeyboardInterrupt" in notebook.interrupt()
    expect(field).to_have_count(0)
    field = asked(notebook, "input('again ')")
    field.fill("yes")
    field.press("Enter")
    assert notebook.finish() == "again yes\n\n'yes'"
    assert notebook.watch.complaints() == []


def test_input_ends_with_the_kernel(notebook: Notebook) -> None:
    field = asked(notebook, "input('? ')")
    expect(field).to_be_visible()
    notebook.page.click("#restart")
    expect(field).to_have_count(0)
    notebook.idle()


def test_input_where_python_cannot_wait(browser: Browser, site: Server) -> None:
    script = "delete WebAssembly.Suspending; delete WebAssembly.promising"
    with opened(browser, site, script=script) as notebook:
        notebook.idle()
        said = notebook.run("input('? ')")
        assert "RuntimeError: input() has to wait" in said
        assert "set a variable" in said
        assert notebook.watch.complaints() == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("!ls -l", "os.listdir()"),
        ("found = !cat photo.jpg", "open(name).read()"),
        ("!wget https://example.org/data", "pyfetch"),
        ("!pip list", "%pip install NAME"),
        ("!git clone x", "no other programs"),
        ("!ls\n1", "os.listdir()"),
        ("%%bash\nls", "no other programs"),
        ("%frob 1", "%lsmagic"),
        ("%%frob\n1", "%lsmagic"),
        ("%system ls", "os.listdir()"),
        ("%conda install x", "%pip install NAME"),
    ],
)
def test_lines_that_are_not_python_say_what_to_do(
    notebook: Notebook, code: str, words: str
) -> None:
    said = notebook.run(code)
    assert words in said
    assert "Traceback" not in said
    assert notebook.watch.complaints() == []


def test_magics_that_work(notebook: Notebook) -> None:
    assert "Wall time" in notebook.run("%time sum(range(10))")
    assert notebook.run("%%capture it\nprint(1)") == ""
    assert notebook.run("it.stdout") == "'1\\n'"
    notebook.run("name = 'made.py'\n%time kept = 1")
    assert notebook.run("kept") == "1"
    notebook.run("%%time\nkept = 2")
    assert notebook.run("kept") == "2"
    assert notebook.run("%%writefile {name}\nvalue = 42") == "Writing made.py\n"
    assert notebook.run("%run made.py") == ""
    assert notebook.run("value") == "42"
    assert "per loop" in notebook.run("%timeit -n 2 -r 1 1 + 1")


@pytest.mark.parametrize(
    "code", ["import ipywidgets", "from ipywidgets import interact", "import anywidget"]
)
def test_widgets_name_jupyter(notebook: Notebook, code: str) -> None:
    said = notebook.run(code)
    assert "ModuleNotFoundError: No module named" in said
    assert "use JupyterLab" in said
    assert notebook.run("from dlw_page import interact, slider") == ""
    quiet = "try:\n    import ipywidgets\nexcept ImportError:\n    print('none')"
    assert notebook.run(quiet) == "none\n"


def test_other_missing_packages_name_pip(notebook: Notebook) -> None:
    said = notebook.run("import xarray.core")
    assert "%pip install xarray" in said
