"""Lays out build/gpu-kit, all that a bare machine with a GPU needs, and packs it.

build/dlpack-web-gpu-kit.tar.xz has it in a folder of that name. Usage: build.py (by `make
gpu-kit`, which builds what goes in).
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "browser" / "hosts"), str(ROOT / "web")]
from pages import pack_tests

NAME = "dlpack-web-gpu-kit"
BUILD = ROOT / "build"
KIT = BUILD / "gpu-kit"
SITE = BUILD / "site"
PACKAGES = BUILD / "runtimes" / "node_modules"
LIBRARIES = ("libvulkan.so.1", "libstdc++.so.6", "libgcc_s.so.1")
DAWN = ("index.js", "package.json", "LICENSE.md", "dist/linux-x64/dawn.node")
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
IMPORTED = re.compile(r"""\b(?:from|import)\s*\(?\s*["']\./([\w.-]+)["']""")
# Programs shrink by a tenth where the compressor knows that they are x86. Preset 9 takes five
# times as long, for 2 MiB less. Nobody's name is in the archive.
TAR = "tar --sort=name --owner=0 --group=0 --numeric-owner --use-compress-program"
XZ = "xz --x86 --lzma2=preset=1,dict=32MiB"
LIMIT = 60 << 20  # of the archive


def run(*command: str | Path) -> str:
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def system_library(name: str) -> Path:
    """This machine's own, as the loader of programs finds it."""
    pattern = rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (.+)$"
    found = re.search(pattern, run("/sbin/ldconfig", "-p"), re.MULTILINE)
    if not found:
        sys.exit(
            f"There is no {name} for x86-64: install it, because it goes into the kit"
        )
    return Path(found[1]).resolve()


def with_imports(folder: Path, names: list[str]) -> set[Path]:
    """These modules and all that they import of their folder."""
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            names += IMPORTED.findall((folder / name).read_text("utf-8"))
    return {folder / name for name in seen}


def contents() -> Iterator[tuple[str, Path]]:
    """Path in the kit, and the file that goes there."""
    tests = ROOT / "tests"
    yield "run.sh", tests / "kit" / "run.sh"
    yield "README.txt", tests / "kit" / "README.txt"
    yield "LICENSE", ROOT / "LICENSE"
    yield "bin/deno", PACKAGES / "@deno" / "linux-x64-glibc" / "deno"
    for name in DAWN:
        yield f"lib/dawn/{name}", PACKAGES / "webgpu" / name
    for name in LIBRARIES:  # each in a folder of its own, as each may be missing alone
        yield f"lib/{name.split('.')[0]}/{name}", system_library(name)
    # The lock of build/numpy takes the place of Pyodide's own.
    for file in (
        *(SITE / "pyodide" / name for name in PYODIDE),
        *(BUILD / "numpy/pyodide").iterdir(),
    ):
        yield f"site/pyodide/{file.name}", file
    js = ROOT / "js" / "dist"
    for file in js.rglob("*.js"):
        for folder in ("js", "js-source/dist"):  # cases load a second copy
            yield f"site/{folder}/{file.relative_to(js)}", file
    for file in (ROOT / "dist" / "wheel.json", *(ROOT / "dist").glob("*.whl")):
        yield f"site/wheel/{file.name}", file
    yield "site/counters.mjs", ROOT / "web" / "site" / "counters.mjs"
    for file in with_imports(SITE / "libraries", ["arrow.mjs", "zarrita.mjs"]):
        yield f"site/libraries/{file.name}", file
    modules = [
        tests / "dtypes.json",
        tests / "runtimes" / "suite.json",
        tests / "bench/rows/ways.py",
    ]
    for name in ("bench", "browser", "kit", "runtimes"):
        modules += (tests / name).rglob("*.mjs")
    for file in modules:
        yield f"site/tests/{file.relative_to(tests)}", file


def versions() -> dict[str, str]:
    """What the kit is made of."""
    npm = json.loads((ROOT / "tests" / "runtimes" / "package.json").read_text())
    pyodide = json.loads((SITE / "pyodide" / "pyodide-lock.json").read_text())
    return {
        "dlpack-web": json.loads((ROOT / "package.json").read_text())["version"],
        "commit": run("git", "describe", "--always", "--dirty", "--abbrev=12").strip(),
        "deno": npm["optionalDependencies"]["@deno/linux-x64-glibc"],
        "dawn": npm["dependencies"]["webgpu"],
        "python": pyodide["info"]["python"],
        "numpy": pyodide["packages"]["numpy"]["version"],
    }


def main() -> None:
    if platform.machine() != "x86_64":
        sys.exit(
            "The kit is made on x86-64, because it has some of the machine's libraries"
        )
    shutil.rmtree(KIT, ignore_errors=True)
    for path, source in contents():
        (KIT / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, KIT / path)
    (KIT / "site" / "bundle").mkdir()
    pack_tests(
        KIT / "site/bundle/tests.zip", Path(pytest.__file__).resolve().parents[1]
    )
    (KIT / "site" / "kit.json").write_text(json.dumps(versions()) + "\n")
    packed = BUILD / f"{NAME}.tar.xz"
    renamed = f"--transform=s,^gpu-kit,{NAME},"
    run(*TAR.split(), XZ, renamed, "-cf", packed, "-C", BUILD, "gpu-kit")
    size = packed.stat().st_size
    print(f"{packed.relative_to(ROOT)}: {size / 2**20:.1f} MiB of {LIMIT >> 20}")
    if size > LIMIT:
        sys.exit("That is too large: machines that are lent take no more.")


if __name__ == "__main__":
    main()
