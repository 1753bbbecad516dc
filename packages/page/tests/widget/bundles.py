"""Scripts of widgets, bundled as their authors do it: by esbuild, from the package's entries."""

import shutil
import subprocess
from pathlib import Path

from lab import PACKAGE, ROOT


def bundled(source: Path, folder: Path) -> Path:
    """A folder with the files of an example, and its script in one file: "x.bundle.js" for
    "x.js"."""
    there = folder / source.parent.name
    shutil.copytree(source.parent, there, dirs_exist_ok=True)
    modules = there / "node_modules"
    modules.mkdir(exist_ok=True)
    for name, target in (("dlpack-web", ROOT), ("dlpack-web-page", PACKAGE)):
        link = modules / name
        if not link.exists():
            link.symlink_to(target)
    script = there / source.name
    command = [str(ROOT / "node_modules" / ".bin" / "esbuild"), str(script), "--bundle"]
    command += ["--format=esm", "--minify", "--log-level=warning"]
    command += [f"--outfile={script.with_suffix('.bundle.js')}"]
    subprocess.run(command, check=True)
    return there
