"""Lays out build/gpu-kit, all that a bare machine with a GPU needs, and packs it.

build/dlpack-web-gpu-kit.tar.xz has it in a folder of that name. Usage: build.py (by `make
gpu-kit`, which builds what goes in).
"""

from __future__ import annotations

import json
import lzma
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path += [
    str(ROOT / "tests" / "browser" / "hosts"),
    str(ROOT / "web"),
]  # pages.py, browser.py
from pages import pack_tests

NAME = "dlpack-web-gpu-kit"
KIT = ROOT / "build" / "gpu-kit"
PACKED = ROOT / "build" / f"{NAME}.tar.xz"
LIMIT = 60 << 20  # of what is packed
SITE = ROOT / "build" / "site"
PACKAGES = ROOT / "build" / "runtimes" / "node_modules"
LIBRARIES = ("libvulkan.so.1", "libstdc++.so.6", "libgcc_s.so.1")
# Programs shrink by a tenth where the compressor knows that they are x86. Preset 9 takes five
# times as long, for 2 MiB less.
XZ = (
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 32 << 20},
)
IMPORTED = re.compile(r"""\b(?:from|import)\s*\(?\s*["']\./([\w.-]+)["']""")


def system_library(name: str) -> Path:
    """This machine's own, as the loader of programs finds it."""
    known = subprocess.run(
        ["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    found = re.search(
        rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (.+)$", known, re.MULTILINE
    )
    if not found:
        sys.exit(
            f"There is no {name} here for x86-64: install it, as it goes into the kit"
        )
    return Path(found[1]).resolve()


def with_imports(folder: Path, names: list[str]) -> Iterator[Path]:
    """These modules and all that they import of their folder."""
    wanted, seen = list(names), set()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            yield folder / name
            wanted += IMPORTED.findall((folder / name).read_text("utf-8"))


def contents() -> Iterator[tuple[str, Path]]:
    """Path in the kit, and the file that goes there."""
    here = ROOT / "tests" / "kit"
    for name in ("run.sh", "README.txt"):
        yield name, here / name
    yield "LICENSE", ROOT / "LICENSE"
    yield "bin/deno", PACKAGES / "@deno" / "linux-x64-glibc" / "deno"
    webgpu = PACKAGES / "webgpu"
    for name in ("index.js", "package.json", "LICENSE.md", "dist/linux-x64/dawn.node"):
        yield f"lib/dawn/{name}", webgpu / name
    for name in LIBRARIES:  # each in a folder of its own, as each may be missing alone
        yield f"lib/{name.split('.')[0]}/{name}", system_library(name)
    for name in (
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "python_stdlib.zip",
    ):
        yield f"site/pyodide/{name}", SITE / "pyodide" / name
    for file in (ROOT / "build" / "numpy" / "pyodide").iterdir():
        yield f"site/pyodide/{file.name}", file  # the lock, and NumPy's wheel
    for file in (ROOT / "js" / "dist").rglob("*.js"):
        for folder in ("js", "js-source/dist"):  # cases load a second copy
            yield f"site/{folder}/{file.relative_to(ROOT / 'js' / 'dist')}", file
    for file in (ROOT / "dist" / "wheel.json", *(ROOT / "dist").glob("*.whl")):
        yield f"site/wheel/{file.name}", file
    yield "site/counters.mjs", ROOT / "web" / "site" / "counters.mjs"
    for file in with_imports(SITE / "libraries", ["arrow.mjs", "zarrita.mjs"]):
        yield f"site/libraries/{file.name}", file
    tests = ROOT / "tests"
    modules = (
        [tests / "dtypes.json", tests / "runtimes" / "suite.json"],
        *(
            (tests / name).rglob("*.mjs")
            for name in ("bench", "browser", "kit", "runtimes")
        ),
    )
    for file in (each for group in modules for each in group):
        yield f"site/tests/{file.relative_to(tests)}", file


def versions() -> dict[str, str]:
    """What the kit is made of."""
    package = json.loads((ROOT / "package.json").read_text())
    pinned = json.loads((ROOT / "tests" / "runtimes" / "package.json").read_text())
    lock = json.loads((SITE / "pyodide" / "pyodide-lock.json").read_text())
    git = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(
        git,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return {
        "dlpack-web": package["version"],
        "commit": commit.stdout.strip() or "unknown",
        "deno": pinned["optionalDependencies"]["@deno/linux-x64-glibc"],
        "dawn": pinned["dependencies"]["webgpu"],
        "pyodide": json.loads((ROOT / "node_modules/pyodide/package.json").read_text())[
            "version"
        ],
        "numpy": lock["packages"]["numpy"]["version"],
    }


def lay_out() -> None:
    shutil.rmtree(KIT, ignore_errors=True)
    for path, source in contents():
        target = KIT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    bundle = KIT / "site" / "bundle"
    bundle.mkdir()
    pack_tests(bundle / "tests.zip", Path(pytest.__file__).resolve().parents[1])
    (KIT / "site" / "kit.json").write_text(json.dumps(versions()) + "\n")


def pack() -> int:
    """The size of the packed kit, in bytes. Nobody's name is in it."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with (
        lzma.open(PACKED, "wb", filters=list(XZ)) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        archive.add(KIT, NAME, filter=plain)
    return PACKED.stat().st_size


def main() -> int:
    if platform.machine() != "x86_64":
        print(
            f"The kit is made on x86-64, of whose libraries it takes some: {platform.machine()}"
        )
        return 1
    lay_out()
    size = pack()
    print(f"{PACKED.relative_to(ROOT)}: {size / 2**20:.1f} MiB of {LIMIT >> 20}")
    if size > LIMIT:
        print(
            "That is too large: machines that are lent take no more. What grew is in build/gpu-kit."
        )
    return size > LIMIT


if __name__ == "__main__":
    sys.exit(main())
