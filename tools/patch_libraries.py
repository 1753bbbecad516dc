#!/usr/bin/env python3
"""patch_libraries.py: copies of libraries that implement the exchange protocol.

The files of each package in build/libraries/node_modules that FILES names are copied to
build/patched/node_modules, where packages/*/patches/<package>.patch is applied. With
--save, edits of the copies are written to the patches.
"""

import difflib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "build" / "libraries" / "node_modules"
PATCHED = ROOT / "build" / "patched" / "node_modules"
# Readable files; minified or compiled ones are made of the same sources.
FILES = {
    "@jax-js/jax": "dist/*.js",
    "onnxruntime-web": "dist/ort.webgpu.mjs",
    "zarrita": "dist/src/**/*.js",
}


def patch_of(package: str) -> Path:
    name = f"{package.removeprefix('@').replace('/', '-')}.patch"
    (patch,) = ROOT.glob(f"packages/*/patches/{name}")
    return patch


def make(package: str) -> None:
    target = PATCHED / package
    shutil.rmtree(target, ignore_errors=True)
    source = LOCKED / package
    for file in (source / "package.json", *source.glob(FILES[package])):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    command = ["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "--input"]
    done = subprocess.run(
        [*command, str(patch_of(package))],
        check=False,
        cwd=target,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(
            f"{patch_of(package).relative_to(ROOT)} does not apply to the version of "
            f"{package} in web/libraries/package-lock.json. Apply it by hand to the "
            f"copy in build/patched/node_modules, then run {sys.argv[0]} --save.\n"
            f"{done.stdout}{done.stderr}"
        )


def save(package: str) -> None:
    parts: list[str] = []
    names = {
        file.relative_to(folder / package)
        for folder in (LOCKED, PATCHED)
        for file in (folder / package).glob(FILES[package])
    }
    for name in sorted(names):
        before, after = (lines(folder / package / name) for folder in (LOCKED, PATCHED))
        labels = (f"a/{name}" if before else "/dev/null", f"b/{name}")
        for line in difflib.unified_diff(before, after, *labels):
            parts.append(line if line.endswith("\n") else line + "\n\\ No newline\n")
    patch_of(package).write_text("".join(parts))


def lines(file: Path) -> list[str]:
    # Not splitlines(), which also splits at a form feed.
    text = file.read_bytes().decode() if file.is_file() else ""
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.rsplit("\n", 1)[-1]] if text and not text.endswith("\n") else []
    )


def main() -> None:
    for package in FILES:
        save(package) if "--save" in sys.argv[1:] else make(package)


if __name__ == "__main__":
    main()
