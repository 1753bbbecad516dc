"""A Jupyter server of its own on this machine, and notebooks in it that a browser
shows, in JupyterLab and in Notebook.

It is started with this checkout's dlpack_web, in an environment of its own
(build/libs), with all of its files in one folder.
"""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
PACKAGE = ROOT / "packages" / "page"
PY_PATH = os.pathsep.join(str(each / "py") for each in (ROOT, PACKAGE))
TOKEN = "token-of-the-test"
LIMIT_S = int(os.environ.get("LIMIT_S", "180"))
OUTPUTS = ".jp-OutputArea, .output-area"


def helpers(name: str) -> str:
    """The first cell of a notebook: `said(x)` appends to what `outcome` reads."""
    return (
        "import json, numpy as np, dlpack_web as dlw, dlpack_web_page.widget\n"
        "_all = []\n"
        "def said(x):\n"
        f"    _all.append(x); open('{name}.part', 'w').write(json.dumps(_all))\n"
        f"    import os; os.replace('{name}.part', '{name}.json')\n"
    )


def book_of(cells: Sequence[str], kernel: dict[str, str]) -> str:
    """A notebook, as its file has it."""
    facts = {"metadata": {}, "outputs": [], "execution_count": None}
    found = [
        {"cell_type": "code", "id": f"cell{i}", "source": cell, **facts}
        for i, cell in enumerate(cells)
    ]
    book = {"cells": found, "metadata": {"kernelspec": kernel}}
    return json.dumps({**book, "nbformat": 4, "nbformat_minor": 5})


class Server:
    """A running server; `folder` is what it shows."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def notebook(self, name: str, cells: Sequence[str]) -> Path:
        """Writes a notebook. Its cells run in its folder, after `helpers`."""
        kernel = {"name": "python3", "display_name": "Python 3"}
        path = self.folder / f"{name}.ipynb"
        path.write_text(book_of([helpers(name), *cells], kernel))
        return path

    def outcome(self, name: str) -> list[Any]:
        """What the cells have said so far."""
        try:
            found: list[Any] = json.loads((self.folder / f"{name}.json").read_text())
        except FileNotFoundError:
            return []
        return found

    def wait_for(self, name: str, count: int, page: Any = None) -> list[Any]:
        """The outcome, as soon as it has that length."""
        end = time.monotonic() + LIMIT_S
        while len(found := self.outcome(name)) < count:
            if time.monotonic() > end:
                seen = "" if page is None else page.locator(OUTPUTS).all_inner_texts()
                raise AssertionError(f"{name} said only {found}; its outputs: {seen}")
            if page is None:
                time.sleep(0.1)
            else:
                page.wait_for_timeout(100)
        return found


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server over a folder, until the block ends."""
    home = folder / ".home"
    home.mkdir()
    python = ROOT / "build" / "libs" / "bin" / "python"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": PY_PATH,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        str(python),
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with running(command, folder, environment) as process:
        yield Server(folder, _url_of(process, home))


@contextmanager
def running(
    command: Sequence[str], folder: Path, environment: dict[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process, until the block ends; it writes to `folder/.home/log`."""
    with (folder / ".home" / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _url_of(process: "subprocess.Popen[bytes]", home: Path) -> str:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and process.poll() is None:
        for file in (home / "runtime").glob("jpserver-*.json"):
            try:
                facts = json.loads(file.read_text())
                url = facts["url"]
                urllib.request.urlopen(
                    f"{url}api?token={TOKEN}", timeout=LIMIT_S
                ).close()
            except (OSError, ValueError):
                continue
            return str(url)
        time.sleep(0.1)
    raise AssertionError((home / "log").read_text()[-4000:])


def open_notebook(page: Any, server: Server, name: str, lab: str = "lab/tree") -> None:
    """Shows a notebook, as soon as it can run."""
    page.goto(f"{server.url}{lab}/{name}.ipynb?token={TOKEN}&reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=LIMIT_S * 1000)
    page.wait_for_function(
        "() => globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
        "?.connectionStatus === 'connected'",
        timeout=LIMIT_S * 1000,
    )


def run_all(page: Any) -> None:
    page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")


def execute(page: Any, code: str) -> None:
    """Runs code in the kernel of the notebook that is shown, in no cell."""
    page.evaluate(
        "(code) => void jupyterapp.shell.currentWidget.sessionContext.session.kernel"
        ".requestExecute({ code })",
        code,
    )


def save(page: Any) -> None:
    """Saves the notebook that is shown, with its outputs: a reload shows what the file has."""
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
