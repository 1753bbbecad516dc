#!/usr/bin/env python3
"""What users download, in build/sizes.json, against the budgets of the totals. If a total grows for a good
reason, raise its budget, with the reason in the commit; do not golf code to fit."""

import gzip
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "js" / "dist"
# js_gzip: layouts of arrays in shaders, uploads in pieces, updates checked as calls: wrong numbers otherwise.
# And names that code loaded later, for packages, takes from the index. Messages are functions of a table, for both
# languages.
BUDGETS = {
    "core_js_gzip": 14_336,
    "js_gzip": 42_500,
    "wheel": 230_000,
    # Pyodide's wheels of all packages, with the bridge's.
    "wheels": 318_000,
}
# Late imports of the index that are entry points of their own.
ENTRIES = (
    "adapters/all.js",
    "pyodide/names.js",
    "open/library.js",
)


def packed(data: bytes) -> int:
    return len(gzip.compress(data, 9, mtime=0))


def bundled(*entries: str) -> tuple[int, int]:
    """Gzipped bytes of the bundle of the last entry that the others do not load, at once and by `import()`."""
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--bundle",
            "--minify",
            "--splitting",
            "--format=esm",
            "--target=es2022",
            "--log-level=warning",
            "--preserve-symlinks",
        ]
        paths = ["--outdir=.", "--outbase=dist", "--metafile=meta.json"]
        # The names of chunks depend on the way to their sources.
        Path(folder, "dist").symlink_to(SOURCE)
        esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
        subprocess.run(
            [esbuild, *(f"dist/{e}" for e in entries), *options, *paths],
            check=True,
            cwd=folder,
        )
        files: dict[str, Any] = json.loads(Path(folder, "meta.json").read_text())[
            "outputs"
        ]
        sizes = {name: packed(Path(folder, name).read_bytes()) for name in files}

    def loaded(name: str) -> set[str]:
        static = [
            i["path"] for i in files[name]["imports"] if i["kind"] != "dynamic-import"
        ]
        return {name}.union(*map(loaded, static))

    *before, at_once = (loaded(entry) for entry in entries)
    late = [
        n
        for n in files
        if n not in at_once and not files[n].get("entryPoint", "").endswith(ENTRIES)
    ]
    return sum(sizes[n] for n in at_once.difference(*before)), sum(
        sizes[n] for n in late
    )


DIST = ROOT / "dist"
wheel = DIST / json.loads((DIST / "wheel.json").read_text())["file"]
with zipfile.ZipFile(wheel) as archive:
    core = archive.read("dlpack_web/_core.abi3.so")
parts = sorted(file.stem for file in (SOURCE / "adapters").glob("*.js"))
found: dict[str, Any] = {
    "core_wasm": len(core),
    "core_wasm_gzip": packed(core),
    "wheel": wheel.stat().st_size,
    "wheels": wheel.stat().st_size
    + sum(
        (DIST / name).stat().st_size
        for name in json.loads((DIST / "packages.json").read_text()).values()
    ),
    "core_js_gzip": bundled("core/index.js")[0]
    + bundled("core/index.js", "exchange/index.js")[0],
    "js_gzip": bundled("index.js")[0],
    "late_js_gzip": bundled("index.js")[1],
    "adapters_gzip": {
        name: bundled("index.js", f"adapters/{name}.js")[0] for name in parts
    },
    **{
        f"{name}_gzip": bundled("index.js", f"{name}/index.js")[0] for name in ("open",)
    },
}
(ROOT / "build" / "sizes.json").write_text(json.dumps(found, indent=2) + "\n")
for name, budget in BUDGETS.items():
    print(f"{name:12} {found[name]:7,} of {budget:7,} bytes")
page = (ROOT / "web" / "docs" / "howto" / "bundle-size.md").read_text("utf-8")
rows = [int(size) for size in re.findall(r"\| (\d+) KB \|$", page, re.MULTILINE)]
shown = ("core_js_gzip", "js_gzip", "late_js_gzip", "open_gzip", "wheel")
for size, name in zip(rows, shown, strict=True):
    if abs(size * 1000 - found[name]) > 500 + found[name] / 20:
        sys.exit(f"bundle-size.md has {size} KB for {name}: it is {found[name]} bytes")
if over := [name for name, budget in BUDGETS.items() if found[name] > budget]:
    sys.exit(f"over budget: {', '.join(over)}. build/sizes.json says what is large")
