"""A marimo server of its own on this machine, for one notebook, that Chromium runs."""

import os
import socket
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

import lab


@contextmanager
def serving(folder: Path, mode: str, cells: Sequence[str]) -> Iterator[lab.Server]:
    """A server over a notebook, `marimo edit` or `marimo run`, until the block ends.
    `outcome("notebook")` is what its cells have said."""
    home = folder / ".home"
    home.mkdir()
    (folder / "notebook.py").write_text(_notebook(cells))
    # The editor runs the cells when the page is opened, as `marimo run` does.
    settings = "[tool.marimo.runtime]\nauto_instantiate = true\n"
    (folder / "pyproject.toml").write_text(settings)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": lab.PY_PATH,
        "MARIMO_SKIP_UPDATE_CHECK": "1",
    }
    command = [
        str(lab.ROOT / "build" / "libs" / "bin" / "python"),
        "-m",
        "marimo",
        mode,
        "notebook.py",
        "--headless",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--token-password={lab.TOKEN}",
    ]
    with lab.running(command, folder, environment) as process:
        url = f"http://127.0.0.1:{port}/"
        end = time.monotonic() + lab.LIMIT_S
        while True:
            try:
                urllib.request.urlopen(f"{url}health", timeout=lab.LIMIT_S).close()
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    raise AssertionError((home / "log").read_text()[-4000:]) from None
                time.sleep(0.1)
        yield lab.Server(folder, url)


def _notebook(cells: Sequence[str]) -> str:
    """marimo finds out itself what cells define and use, as soon as it has read them."""
    return "import marimo\n\napp = marimo.App()\n" + "".join(
        f"\n@app.cell\nasync def _():\n{indent(cell, '    ')}\n    return\n"
        for cell in (lab.helpers("notebook"), *cells)
    )
