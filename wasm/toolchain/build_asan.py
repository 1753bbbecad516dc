#!/usr/bin/env python3
"""build_asan.py OUT [--faults]: the package in OUT, its extension under ASan and UBSan.

Compiled directly, from the sources and flags that pyproject.toml lists. --faults links
tests/fuzz/faults.c into it, which lets allocations fail.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SANITIZE = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)


FAULTS = (
    "tests/fuzz/faults.c",
    *(f"-Wl,--wrap={name}" for name in ("malloc", "realloc", "aligned_alloc", "free")),
)


def main() -> None:
    out = Path(sys.argv[1]).resolve() / "dlpack_web"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (extension,) = settings["tool"]["setuptools"]["ext-modules"]

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    package = ROOT / "py" / "dlpack_web"
    for file in package.rglob("*"):
        if file.suffix not in (".so", ".pyc") and file.is_file():
            link = out / file.relative_to(package)
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(os.path.relpath(file, link.parent))

    command = ["gcc", "-shared", "-fPIC", *extension["extra-compile-args"]]
    command += ["-Werror", "-O1", "-g", *SANITIZE]
    command += [f"-D{name}={value}" for name, value in extension["define-macros"]]
    command += [f"-I{folder}" for folder in extension["include-dirs"]]
    command += [f"-I{sysconfig.get_path('include')}", *extension["sources"]]
    command += FAULTS if "--faults" in sys.argv else ()
    command += ["-o", str(out / "_core.abi3.so")]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
