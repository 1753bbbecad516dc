"""The blocks of the tutorial of the widget, as they are written, in JupyterLab."""

import sys

import lab

sys.path.append(str(lab.ROOT / "tests" / "docs"))
from documentation import fences

TUTORIAL = lab.ROOT / "packages/page/docs/cloud-kernel.md"
# The first one that needs a page that was reloaded.
LOST = "except dlw.DeviceLostError"


def blocks():
    """Those before and after the reload."""
    found = [each.code for each in fences(TUTORIAL) if each.language == "python"]
    (at,) = [i for i, code in enumerate(found) if LOST in code]
    return found[:at], found[at:]


def size_of(canvas):
    canvas.wait_for()
    return canvas.evaluate("c => [c.width, c.height]")


def test_the_tutorial_runs_and_goes_on_after_a_reload(server, pages):
    before, after = blocks()
    assert len(before) == 9
    page = pages()
    server.notebook("tutorial", [*before, "said(page.device.id)"])
    lab.open_notebook(page, server, "tutorial")
    lab.run_all(page)
    (first,) = server.wait_for("tutorial", 1, page)
    canvas = page.locator(".jp-OutputArea canvas")
    assert size_of(canvas) == [512, 512]
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    lab.open_notebook(page, server, "tutorial")
    for code in (*after, "said(page.device.id)"):
        lab.execute(page, code)
    assert server.wait_for("tutorial", 2, page) == [first, first + 1]
    assert size_of(canvas) == [512, 512]
