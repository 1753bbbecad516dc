"""Wheels for Windows, made on any machine: zig compiles and links them.

windows.py WHEEL OUT   of the wheel made for this machine, those for x64 and for arm64

The extension keeps to the stable ABI, so that what it needs of Python is what python3.dll
has, whichever version that is of. Of the wheel everything is kept but the extension.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

import pefile

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("windows") / "pyconfig.h"
ZIG = (sys.executable, "-m", "ziglang")
# The tag of the wheel, what zig calls the machine, what its dlltool does, and Windows.
MACHINES = (
    ("win_amd64", "x86_64", "i386:x86-64", "IMAGE_FILE_MACHINE_AMD64"),
    ("win_arm64", "aarch64", "arm64", "IMAGE_FILE_MACHINE_ARM64"),
)
LONG_AGO = 315532800  # 1980-01-01, the oldest date that zip files can hold
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
# 16 letters in a row of 4 each have no place for a zero, and need none.
QUIET = "-Wno-unterminated-string-initialization"


class BuildError(Exception):
    """What a tool said when it failed."""


def run(*command: object, cwd: Path | None = None) -> str:
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(LONG_AGO)}
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode != 0:
        raise BuildError(f"{' '.join(map(str, command[:4]))} …:\n{done.stderr.strip()}")
    return done.stdout


def extension() -> tuple[list[Path], list[str]]:
    """The sources, and the macros that they are compiled with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (module,) = project["tool"]["setuptools"]["ext-modules"]
    macros = [f"-D{name}={value}" for name, value in module["define-macros"]]
    return [ROOT / name for name in module["sources"]], macros


def headers(folder: Path) -> Path:
    """This machine's headers of Python with the configuration of Windows."""
    given = Path(sysconfig.get_path("include"))
    shutil.copytree(given, folder, ignore=shutil.ignore_patterns("pyconfig*.h"))
    shutil.copyfile(CONFIG, folder / "pyconfig.h")
    return folder


def asked_of_python(binary: Path) -> list[str]:
    """The names that the extension, as built for this machine, takes from Python."""
    listed = run("nm", "-D", "--undefined-only", binary)
    return sorted(set(re.findall(r"\b_?Py\w+", listed)))


def link(work: Path, machine: str, kind: str, names: list[str], include: Path) -> Path:
    """The extension for a machine with Windows, in `work`."""
    target = ("-target", f"{machine}-windows-gnu")
    sources, macros = extension()
    objects = []
    for source in sources:
        objects.append(work / f"{source.stem}.obj")
        run(
            *ZIG,
            "cc",
            *target,
            "-std=c11",
            "-O3",
            "-g0",
            *WARNINGS,
            QUIET,
            *macros,
            "-I",
            include,
            "-I",
            ROOT / "wasm",
            "-c",
            source,
            "-o",
            objects[-1],
        )
    needed, given = work / "python3.def", work / "core.def"
    needed.write_text("LIBRARY python3.dll\nEXPORTS\n" + "\n".join(names) + "\n")
    given.write_text("EXPORTS\nPyInit__core\n")
    library = work / "python3.lib"
    run(*ZIG, "dlltool", "-m", kind, "-d", needed, "-l", library)
    made = work / "_core.pyd"
    # In its folder: the paths of objects must not get into what is made of them.
    names_here = [each.name for each in (*objects, given, library)]
    run(*ZIG, "cc", *target, "-shared", "-s", "-o", made.name, *names_here, cwd=work)
    return made


def check(made: Path, machine: str, names: list[str]) -> None:
    """Of that machine; gives the module alone, and asks nothing but what every Windows and
    every Python has."""
    with pefile.PE(made) as binary:
        binary.parse_data_directories()
        asked = {
            each.dll.decode(): {name.name.decode() for name in each.imports}
            for each in binary.DIRECTORY_ENTRY_IMPORT
        }
        given = [each.name.decode() for each in binary.DIRECTORY_ENTRY_EXPORT.symbols]
        found = pefile.MACHINE_TYPE[binary.FILE_HEADER.Machine]
    if found != machine or given != ["PyInit__core"]:
        raise BuildError(f"{found} for {machine}, which gives {given}")
    if not asked.pop("python3.dll", set()) <= set(names):
        raise BuildError("it asks more of Python than on this machine")
    usual = re.compile(r"(?i)kernel32\.dll|api-ms-win-crt-\w+-l1-1-0\.dll")
    if odd := [name for name in asked if not usual.fullmatch(name)]:
        raise BuildError(f"it needs {', '.join(odd)}, which may not be there")


def build(wheel: Path, out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    before = set(out.iterdir())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "wheel", "unpack", "--dest", work / "whl", wheel)
        (tree,) = (work / "whl").iterdir()
        (binary,) = tree.glob("dlpack_web/_core*.so")
        names = asked_of_python(binary)
        binary.unlink()
        include = headers(work / "include")
        (facts,) = tree.glob("*.dist-info/WHEEL")
        told = facts.read_text()
        for tag, machine, kind, windows in MACHINES:
            place = work / machine
            place.mkdir()
            made = link(place, machine, kind, names, include)
            check(made, windows, names)
            shutil.copyfile(made, tree / "dlpack_web" / "_core.pyd")
            facts.write_text(re.sub(r"(?m)^(Tag: \S+-)\S+$", rf"\g<1>{tag}", told))
            for file in tree.rglob("*"):
                os.utime(file, (LONG_AGO, LONG_AGO))
            run(sys.executable, "-m", "wheel", "pack", "--dest", out, tree)
    return sorted(set(out.iterdir()) - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    try:
        for made in build(given.wheel.resolve(), given.out):
            print(made.name)
    except BuildError as error:
        sys.exit(f"[windows] {error}")


if __name__ == "__main__":
    main()
