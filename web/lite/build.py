"""Build a JupyterLite site that runs offline and can install dlpack-web.

It builds in build/lite: `source` is the input of `jupyter lite build` (notebooks,
Pyodide with the packages that the kernel needs), `site` its output.

Usage: build/venv/bin/python web/lite/build.py
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LITE = ROOT / "build" / "lite"
SOURCE = LITE / "source"
PYODIDE = ROOT / "node_modules" / "pyodide"
PACKAGES = LITE / "packages"  # made by tools/fetch_packages.py
PYPI_WHEELS = ROOT / "build" / "wheels"  # made by tools/fetch_wheels.py
DOCS = ROOT / "build" / "docs" / "notebooks"  # made by web/docs/_tools/notebooks.py
# Files that notebooks open: beside them in the file browser, and beside the pages.
FILES = {
    "digits.png": ROOT / "build" / "model" / "site" / "digits.png",
    "pictures.onnx": ROOT / "build" / "model" / "site" / "pictures.onnx",
    "handwriting.npz": ROOT / "build" / "model" / "site" / "handwriting.npz",
    "photo.jpg": ROOT / "build" / "site" / "photo.jpg",
}
BESIDE = {
    "libraries/ort": [
        *(ROOT / "build" / "libraries" / "site" / "ort").glob(
            "ort.webgpu.bundle.min.mjs"
        ),
        *(ROOT / "build" / "libraries" / "site" / "ort").glob("*.asyncify.*"),
    ],
    "model": [ROOT / "build" / "model" / "site" / "digits.onnx"],
}
# JupyterLite's kernel in Python comes with its extension.
KERNEL = Path(sys.prefix).joinpath(
    "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
)
# Pyodide loads these while it starts; the kernel would ask micropip for one after the
# other. Notebooks here import NumPy.
PRELOADED = ["micropip", "piplite", "ipykernel", "comm", "pyodide-kernel"]
PRELOADED += ["jedi", "ipython", "numpy"]
RUNTIME = ("pyodide*.mjs", "pyodide*.js", "pyodide*.wasm", "python_stdlib.zip")
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def normal(name: str) -> str:
    """The normalized name of a package, as in locks (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def notebook(text: str) -> dict[str, object]:
    """A notebook from a Python file whose cells start with `# %%`, as in Jupytext.

    A line `# %magic` becomes the magic itself; in Markdown cells the `# ` is removed.
    """
    _, *parts = CELL.split(text)
    cells = []
    for number, (head, body) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        cell: dict[str, object] = {"id": f"cell-{number}", "metadata": {}}
        if "[markdown]" in head:
            lines = [
                line.removeprefix("#").removeprefix(" ") for line in body.splitlines()
            ]
            cell |= {"cell_type": "markdown", "source": "\n".join(lines).strip()}
        else:
            source = re.sub(r"^# (%\w)", r"\1", body, flags=re.MULTILINE).strip()
            cell |= {"cell_type": "code", "source": source}
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {
        "display_name": "Python (Pyodide)",
        "language": "python",
        "name": "python",
    }
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def our_wheel() -> Path:
    name = json.loads((ROOT / "dist" / "wheel.json").read_text())["file"]
    return ROOT / "dist" / str(name)


def more_wheels() -> list[Path]:
    """Ours and tinygrad's, which Pyodide's lock lacks."""
    names = json.loads((ROOT / "dist" / "packages.json").read_text()).values()
    packages = [ROOT / "dist" / name for name in names]
    return [our_wheel(), *packages, *PYPI_WHEELS.glob("tinygrad-*.whl")]


def kernel_wheels() -> list[Path]:
    """What the kernel consists of, which Pyodide's lock lacks, too."""
    names = ("piplite", "ipykernel", "pyodide_kernel")
    own = [next(KERNEL.glob(f"{name}-*.whl")) for name in names]
    return [*own, *(LITE / "wheels").glob("comm-*.whl")]


def download(wheels: Path) -> None:
    """The packages of packages.txt; pip checks their hashes."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += [
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
    ]
    command += ["--dest", str(wheels), "--requirement", str(HERE / "packages.txt")]
    subprocess.run(command, check=True)


def lay_out_pyodide(target: Path, wheels: list[Path]) -> None:
    """Pyodide's runtime and the packages, compiled, with a lock that names only these."""
    target.mkdir(parents=True)
    for pattern in RUNTIME:
        for file in PYODIDE.glob(pattern):
            shutil.copy(file, target)
    shutil.copy(PYODIDE / "package.json", target)
    lock = json.loads((PACKAGES / "pyodide-lock.json").read_text())
    packages = {}
    files = [*wheels, *PACKAGES.glob("*.whl")]
    ours = more_wheels()
    added = [*ours, *kernel_wheels()]
    for file in [*added, *files]:
        shutil.copy(file, target)
    compiling = ["node", str(HERE / "compile.mjs"), str(target)]
    subprocess.run([*compiling, *(wheel.name for wheel in ours)], check=True)
    for file in files:
        name = normal(file.name.split("-")[0])
        digest = hashlib.sha256((target / file.name).read_bytes()).hexdigest()
        known = lock["packages"].get(name)
        if known:
            packages[name] = known | {"file_name": file.name, "sha256": digest}
    # micropip, which uses no other index here, then finds these as piplite does.
    for wheel in added:
        name, version, *_ = wheel.name.split("-")
        packages[normal(name)] = {
            "name": normal(name),
            "version": version,
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256((target / wheel.name).read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": [name],
            "depends": [],
        }
    for package in packages.values():
        package["depends"] = [
            normal(name) for name in package["depends"] if normal(name) in packages
        ]
    lock["packages"] = packages
    (target / "pyodide-lock.json").write_text(json.dumps(lock))
    pack_shell(target, packages)


def pack_shell(target: Path, packages: dict[str, dict[str, Any]]) -> None:
    """IPython and what it needs, for our notebook, in one archive that Python imports
    from: to unpack 800 files takes it a second."""
    names = ["ipython", "matplotlib-inline"]
    for name in names:  # which grows
        names += [each for each in packages[name]["depends"] if each not in names]
    with zipfile.ZipFile(target / "shell.zip", "w") as shell:
        for name in names:
            with zipfile.ZipFile(target / packages[name]["file_name"]) as wheel:
                for file in wheel.namelist():
                    info = zipfile.ZipInfo(file)
                    shell.writestr(info, wheel.read(file), zipfile.ZIP_DEFLATED)


def distrust(build: Path) -> None:
    """Outputs of files are sanitized, whatever the file says. A server of Jupyter signs
    notebooks and removes `trusted` from others; JupyterLite believes the file."""
    believes = '!!this.getMetadata("trusted")||'
    changed = [
        file for file in build.glob("*.js") if believes in file.read_text("utf-8")
    ]
    for file in changed:
        text = file.read_text("utf-8")
        if text.count(believes) == 1:
            file.write_text(text.replace(believes, ""), "utf-8")
            return
    sys.exit(f"JupyterLab has changed: {believes} is not once in {build}")


def main() -> None:
    wheels = LITE / "wheels"
    if not (wheels / ".done").exists():
        shutil.rmtree(wheels, ignore_errors=True)
        download(wheels)
        (wheels / ".done").touch()
    for folder in (SOURCE, LITE / "site"):
        shutil.rmtree(folder, ignore_errors=True)
    everything = sorted(wheels.glob("*.whl"))
    lay_out_pyodide(SOURCE / "static" / "pyodide", everything)
    files = SOURCE / "files"
    files.mkdir()
    folders = HERE / "notebooks", *(ROOT / "packages").glob("*/notebooks")
    for script in (script for folder in folders for script in folder.glob("*.py")):
        made = json.dumps(notebook(script.read_text("utf-8")), indent=1)
        (files / f"{script.stem}.ipynb").write_text(made + "\n")
    for target, file in FILES.items():
        shutil.copy(file, files / target)
    shutil.copytree(DOCS, files / "docs", ignore=shutil.ignore_patterns(".done"))
    installable = [*more_wheels(), *wheels.glob("comm-*.whl")]
    config = {
        "LiteBuildConfig": {
            # A link to the app "repl" may have code, which runs without a click.
            "apps": ["lab", "notebooks", "tree", "edit", "consoles"],
            "contents": ["files"],
            "no_sourcemaps": True,
        },
        "PipliteAddon": {"piplite_urls": [str(wheel) for wheel in installable]},
    }
    settings = {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "exposeAppInBrowser": True,  # lets tests run all cells
            # A database for the layout alone takes half a second to open.
            "workspacesStorageDrivers": ["localStorageWrapper"],
            "litePluginSettings": {
                "@jupyterlite/pyodide-kernel-extension:kernel": {
                    "disablePyPIFallback": True,
                    "loadPyodideOptions": {"packages": PRELOADED},
                }
            },
        },
    }
    (SOURCE / "jupyter_lite_config.json").write_text(json.dumps(config, indent=1))
    (SOURCE / "jupyter-lite.json").write_text(json.dumps(settings, indent=1))
    command = [str(Path(sys.executable).with_name("jupyter")), "lite", "build"]
    command += ["--output-dir", str(LITE / "site")]
    done = subprocess.run(
        command, cwd=SOURCE, capture_output=True, text=True, check=False
    )
    (LITE / "build.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        sys.exit((done.stdout + done.stderr)[-3000:])
    distrust(LITE / "site" / "build")
    # Browsers request one at the root.
    shutil.copy(LITE / "site" / "tree" / "favicon.ico", LITE / "site")
    for target, sources in BESIDE.items():
        (LITE / "site" / target).mkdir(parents=True)
        for file in sources:
            shutil.copy(file, LITE / "site" / target)


if __name__ == "__main__":
    main()
