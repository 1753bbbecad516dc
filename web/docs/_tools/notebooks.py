"""Writes a notebook for each page that has blocks: build/docs/notebooks, which
web/lite/build.py copies into JupyterLite.

Its cells are the blocks, below their headings. A first cell installs what the blocks
find on a page, and addresses lead from where JupyterLite runs Python.
"""

from textwrap import indent
from typing import Any

from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes
from repository import NOTEBOOKS, SITE

FIRST = "%pip install dlpack-web numpy"
# Files that the blocks of a page find in their folder are in JupyterLite's first one.
FILES = ("photo.jpg", "digits.png", "handwriting.npz")
DRIVE = "%cd -q /drive"
# Pyodide calls it for errors that pass through JavaScript; IPython's shows those that
# the cell catches, too.
HOOK = "get_ipython().excepthook = lambda *_: None"
# From the worker of a page to the site, and from that of JupyterLite.
ADDRESSES = {
    'js.URL.new("../../../': 'js.URL.new("../',
    "js.location.href": 'js.location.href.split("extensions/")[0]',
}
# JupyterLite runs no cell below one that raised, whatever its tags are.
RAISES = """\
try:
{}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")"""


def text_of(heading: Any) -> str:
    """Without the link of a heading."""
    return str(heading.get_text()).removesuffix("#")


def cells_of(page: BeautifulSoup) -> list[NotebookNode]:
    blocks = page.select(".block")
    codes = [block.pre.get_text().removesuffix("\n") for block in blocks]
    first = [FIRST] + [DRIVE] * any(name in code for code in codes for name in FILES)
    first += [HOOK] * any(block.has_attr("data-raises") for block in blocks)
    cells = [
        new_markdown_cell(f"# {text_of(page.h1)}"),
        new_code_cell("\n".join(first)),
    ]
    heading = ""
    for element in page.select("[role=main] :is(h2, h3, .block)"):
        if element not in blocks:
            heading = f"## {text_of(element)}"
            continue
        if heading:
            cells.append(new_markdown_cell(heading))
        heading = ""
        source = element.pre.get_text().removesuffix("\n")
        for before, after in ADDRESSES.items():
            source = source.replace(before, after)
        if element.has_attr("data-raises"):
            source = RAISES.format(indent(source, "    "))
        cells.append(new_code_cell(source))
    return cells


def notebook(cells: list[NotebookNode]) -> NotebookNode:
    """One with the same bytes each time."""
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    kernel = {
        "display_name": "Python (Pyodide)",
        "language": "python",
        "name": "python",
    }
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return new_notebook(cells=cells, metadata=metadata)


def write_notebooks() -> None:
    """Writes those that changed. JupyterLite is built again when .done is newer."""
    there = set(NOTEBOOKS.rglob("*.ipynb"))
    changed = not (NOTEBOOKS / ".done").exists()
    for file in SITE.rglob("*.html"):
        html = file.read_text("utf-8")
        if 'class="block"' not in html:
            continue
        target = NOTEBOOKS / file.relative_to(SITE).with_suffix(".ipynb")
        there.discard(target)
        made = writes(notebook(cells_of(BeautifulSoup(html, "html.parser")))) + "\n"
        if target.is_file() and target.read_text("utf-8") == made:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(made, "utf-8")
        changed = True
    for file in there:
        file.unlink()
        changed = True
    if changed:
        (NOTEBOOKS / ".done").touch()
