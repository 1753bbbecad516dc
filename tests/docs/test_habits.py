"""What people bring from Jupyter: figures, input(), magics, shell lines, widgets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect
from python_page import Python, opened
from serve import Server


@pytest.fixture(scope="module")
def python(browser: Browser, server: Server) -> Iterator[Python]:
    with opened(browser, server) as made:
        yield made


def images(python: Python) -> int:
    return python.outputs().locator("img").count()


def asked(python: Python, code: str) -> Locator:
    """Starts a block that calls input(); the field that it shows."""
    python.start(code)
    return python.block().locator(".ask input")


def test_figures_appear_at_the_end_of_the_block(python: Python) -> None:
    said = python.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    assert (said, images(python)) == ("", 1)
    python.run("plt.plot([1, 2])\nplt.show()")
    assert images(python) == 1  # and not once more at the end
    python.run("for _ in 'ab': plt.figure(); plt.plot([1, 2])")
    assert images(python) == 2
    python.run("plt.plot([1, 2])\n1 / 0")
    assert images(python) == 1
    python.run("3")
    assert images(python) == 0
    assert python.watch.complaints() == []


def test_matplotlib_inline_does_nothing(python: Python) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
    assert python.run(f"%matplotlib inline\n{plot}") == ""
    assert images(python) == 1
    assert python.run(f"%matplotlib\n{plot}").endswith("backend: inline\n")
    assert images(python) == 1


def test_other_backends_are_refused(python: Python) -> None:
    said = python.run("%matplotlib widget")
    assert "%matplotlib widget" in said
    assert "%matplotlib inline" in said


def test_packages_load_for_imports_beside_magics(
    browser: Browser, server: Server
) -> None:
    """A line that is not Python does not hide the imports of its block."""
    with opened(browser, server) as python:
        code = "%matplotlib inline\nimport PIL\nPIL.__name__"
        assert python.run(code) == "'PIL'"
        assert python.run("x = 1\n%time import six") != ""
        assert python.run("six.__name__") == "'six'"
        assert python.watch.complaints() == []


def test_input_is_asked_below_the_block(python: Python) -> None:
    field = asked(python, "name = input('Your name? ')\nprint('Hello', name)")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_name("Your name?")
    assert python.page.evaluate("6 * 7") == 42  # the page goes on
    field.press_sequentially("Ada <b>")
    field.press("Enter")
    assert python.finish() == "Your name? Ada <b>\nHello Ada <b>\n"
    expect(field).to_have_count(0)
    twice = asked(python, "int(input()) + int(input())")
    for text in ("40", "2"):
        twice.fill(text)
        twice.press("Enter")
    assert python.finish() == "40\n2\n\n42"
    assert python.watch.complaints() == []


def test_passwords_are_not_shown(python: Python) -> None:
    field = asked(python, "import getpass\nlen(getpass.getpass())")
    expect(field).to_have_attribute("type", "password")
    field.fill("secret")
    field.press("Enter")
    assert python.finish() == "Password: \n\n6"


def test_input_can_be_interrupted(python: Python) -> None:
    field = asked(python, "input('? ')")
    expect(field).to_be_visible()
    assert "KeyboardInterrupt" in python.stop()
    expect(field).to_have_count(0)
    field = asked(python, "input('again ')")
    field.fill("yes")
    field.press("Enter")
    assert python.finish() == "again yes\n\n'yes'"
    assert python.watch.complaints() == []


def test_input_ends_with_the_kernel(python: Python) -> None:
    field = asked(python, "input('? ')")
    expect(field).to_be_visible()
    python.restart()
    expect(field).to_have_count(0)


def test_input_where_python_cannot_wait(browser: Browser, server: Server) -> None:
    script = "delete WebAssembly.Suspending; delete WebAssembly.promising"
    with opened(browser, server, script=script) as python:
        said = python.run("input('? ')")
        assert "RuntimeError: input() has to wait" in said
        assert "set a variable" in said
        assert python.watch.complaints() == []


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
    python: Python, code: str, words: str
) -> None:
    said = python.run(code)
    assert words in said
    assert "Traceback" not in said
    assert python.watch.complaints() == []


def test_magics_that_work(python: Python) -> None:
    assert "Wall time" in python.run("%time sum(range(10))")
    assert python.run("%%capture it\nprint(1)") == ""
    assert python.run("it.stdout") == "'1\\n'"
    python.run("name = 'made.py'\n%time kept = 1")
    assert python.run("kept") == "1"
    python.run("%%time\nkept = 2")
    assert python.run("kept") == "2"
    assert python.run("%%writefile {name}\nvalue = 42") == "Writing made.py\n"
    assert python.run("%run made.py") == ""
    assert python.run("value") == "42"
    assert "per loop" in python.run("%timeit -n 2 -r 1 1 + 1")


@pytest.mark.parametrize(
    "code", ["import ipywidgets", "from ipywidgets import interact", "import anywidget"]
)
def test_widgets_name_jupyter(python: Python, code: str) -> None:
    said = python.run(code)
    assert "ModuleNotFoundError: No module named" in said
    assert "needs Jupyter's own pages: use JupyterLab" in said
    quiet = "try:\n    import ipywidgets\nexcept ImportError:\n    print('none')"
    assert python.run(quiet) == "none\n"


def test_other_missing_packages_name_pip(python: Python) -> None:
    said = python.run("import xarray.core")
    assert "%pip install xarray" in said
