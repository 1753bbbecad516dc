"""Runs a notebook of web/lite on the desktop, in IPython, as its own process: what the cells say,
as a notebook has it.

Usage: build/libs/bin/python tests/desktop/notebook.py NAME FOLDER   (prints JSON)
FOLDER is where they find their files.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# By name, those of packages among them.
NOTEBOOKS = {
    path.stem: path
    for folder in ("web/lite", "packages/*")
    for path in sorted(ROOT.glob(f"{folder}/notebooks/*.py"))
}
MODEL = ROOT / "build" / "model" / "site"
PYTHON = ROOT / "build" / "libs" / "bin" / "python"
DRIVER = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")


def lay_out(folder: Path) -> None:
    """The files that notebooks open, as the site has them."""
    import matplotlib

    sample = Path(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg")
    shutil.copy(sample, folder / "photo.jpg")
    for name in ("digits.png", "digits.onnx", "pictures.onnx", "handwriting.npz"):
        if not (MODEL / name).is_file():
            raise FileNotFoundError(
                f"{MODEL / name} is missing: run `make suite NAME=desktop`, which makes it"
            )
        shutil.copy(MODEL / name, folder)


def run(name: str, folder: Path) -> list[dict[str, Any]]:
    """The code cells of a notebook with their outputs, from a fresh Python."""
    command = [str(PYTHON), str(Path(__file__)), name, str(folder)]
    # lavapipe, where nothing else is named: pictures and numbers of all machines are alike.
    environment = {"VK_DRIVER_FILES": str(DRIVER), "XDG_RUNTIME_DIR": "/tmp"}
    environment |= os.environ | {
        "PYTHONPATH": os.pathsep.join(
            map(str, [ROOT / "py", *ROOT.glob("packages/*/py")])
        ),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": str(folder),
        "IPYTHONDIR": str(folder),
        "PYTHONWARNINGS": "error::RuntimeWarning",
    }
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cells: list[dict[str, Any]] = json.loads(done.stdout)
    return cells


async def run_here(name: str) -> list[dict[str, Any]]:
    sys.path.append(str(ROOT / "web" / "lite"))
    import build

    outputs: list[dict[str, Any]] = []
    shell = shell_into(outputs)
    cells = build.notebook(NOTEBOOKS[name].read_text("utf-8"))["cells"]
    cells = [cell for cell in cells if cell["cell_type"] == "code"]
    for cell in cells:
        # pip is not asked for anything: what notebooks install is here already.
        lines = cell["source"].split("\n")
        source = "\n".join(line for line in lines if not line.startswith("%pip"))
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            code = shell.transform_cell(source)
            result = await shell.run_cell_async(
                source, store_history=True, transformed_cell=code
            )
        if printed.getvalue():
            outputs.insert(0, {"output_type": "stream", "text": printed.getvalue()})
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            told = {"ename": type(error).__name__, "evalue": str(error)}
            outputs.append({"output_type": "error"} | told)
        cell["outputs"], cell["execution_count"] = (
            outputs.copy(),
            result.execution_count,
        )
        outputs.clear()
        if error is not None:
            break
    return cells


def shell_into(outputs: list[dict[str, Any]]) -> Any:
    """IPython; what is shown and what cells result in goes into the list."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    def show(data: Any, *_: Any, **__: Any) -> None:
        outputs.append({"output_type": "display_data", "data": plain(data)})

    class Hook(DisplayHook):
        write_output_prompt = staticmethod(lambda: None)
        write_format_data = staticmethod(show)

    class Publisher(DisplayPublisher):
        publish = staticmethod(show)

    class Shell(InteractiveShell):
        displayhook_class = Type(Hook)
        display_pub_class = Type(Publisher)

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    return Shell.instance(config=config)


def plain(data: dict[str, Any]) -> dict[str, str]:
    """Pictures as notebooks have them."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for kind, value in data.items()
    }


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    os.chdir(folder)
    json.dump(asyncio.run(run_here(name)), sys.stdout)


if __name__ == "__main__":
    main()
