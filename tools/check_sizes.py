#!/usr/bin/env python3
"""check_sizes.py: sizes of user downloads against their budgets; writes
build/sizes.json.

A budget makes growth visible; it is not a hard limit. If a size grows for a good
reason, raise its budget here, with the reason beside it.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "js" / "src"
KIB = 1024
BUDGETS = {
    # 7 of them for Arrow, with its extension types and requests
    "core_wasm_gzip": 35 * KIB,
    # 25 of them for files, 50 for dlpack_web.onnxruntime, 17 for kernels of formulas and
    # batches, 12 for dlpack_web.tinygrad, 3 of these for kernels that browsers keep, 10
    # for dlpack_web.wire; 8 because files of Python have at most 500 lines: a wheel
    # compresses each separately; 6 for what pages, archives and servers may not do
    "wheel": 306 * KIB,
    # dlpack_web.tinygrad's part of the wheel; docstrings are 3 of them, 1.5 for NaN
    # and 64-bit integers in WGSL
    "tinygrad": 13 * KIB,
    # dlpack-web/core and dlpack-web/exchange, without WebGPU; 1 of them for error
    # messages on tensors used as arrays, and for the checks of take() since version 1.1
    "core_js_gzip": 14 * KIB,
    # Loaded at once by importing dlpack-web; 5 of them for ElementwiseKernel and
    # ReductionKernel, whose run() is synchronous, 2 for batches
    "js_gzip": 43 * KIB,
    "late_js_gzip": 14 * KIB,  # loaded by connect() and webgpu when needed
    # dlpack-web/open besides dlpack-web, with its late imports; 3 for HTTP
    "open_gzip": 18 * KIB,
    # dlpack-web/wire besides dlpack-web; half of it are headers of safetensors
    "wire_gzip": 10 * KIB,
    # dlpack-web/widget besides these two: a session with a kernel, and its messages;
    # half of a KiB for reading large tensors in pieces, as much for checks of what a
    # kernel asks, of whatever form
    "widget_gzip": 6 * KIB + 256,
    # dlpack-web/conformance: tests load their own side; 1 of the producers' for checks
    # of memory after errors and aborts, 1 1/2 for those of copies and of reading back,
    # of aborts, faults and lost devices
    "conformance_producers_gzip": 12 * KIB + 512,
    "conformance_consumers_gzip": 10 * KIB,
}
# Number of files: each is compressed separately, which costs about a KiB. Bundlers make
# one file of modules with the same importing entry points, so late modules import what
# is already loaded.
FILES_AT_ONCE = 4
ADAPTER_BUDGET = 4 * KIB + 256  # besides dlpack-web, with the code that adapters share
LARGER = {
    "arrow": 5 * KIB,  # reads memory and nulls for each type
    # A session's use of the device is tracked, call by call.
    "ort": 6 * KIB + 768,
    "transformers": 6 * KIB + 768,
}
SHARED = {"all", "common", "devices", "faults", "ortruns", "watched"}
APART = ("adapters/all.ts", "open/index.ts", "open/gpu.ts", "wire/index.ts")
CONTENTS = {".py", ".pyi", ".typed", ".js", ".so"}  # the package's part of the wheel


def bundle_sizes(main: Path, *more: Path) -> tuple[int, int, int]:
    """Gzipped bytes of entry points with their imports, minified as ES modules: those
    loaded at once, and those of `import()`, without adapters and files, which have
    their own budgets; and the number of files loaded at once. With `more`: what the
    last of these loads at once in addition to the others, which are already loaded."""
    entries = [str(main), *map(str, more)]
    apart = tuple(name for name in APART if not entries[-1].endswith(name))
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    with tempfile.TemporaryDirectory() as folder:
        meta = Path(folder) / "meta.json"
        command = [str(esbuild), *entries, "--bundle", "--minify", "--splitting"]
        command += ["--format=esm", "--target=es2022", "--log-level=warning"]
        command += [f"--outdir={folder}", f"--outbase={SOURCE}"]
        command += [f"--metafile={meta}"]
        subprocess.run(command, check=True, cwd=folder)
        files: dict[str, Any] = json.loads(meta.read_text())["outputs"]
        sizes = {
            name: len(gzip.compress((Path(folder) / name).read_bytes(), 9, mtime=0))
            for name, facts in files.items()
            if not facts.get("entryPoint", "").endswith(apart)
        }

    def loaded(entry: Path) -> set[str]:
        at_once = {str(entry.relative_to(SOURCE).with_suffix(".js"))}
        while True:
            found = {
                reference["path"]
                for name in at_once
                for reference in files[name]["imports"]
                if reference["kind"] != "dynamic-import"
            }
            if found <= at_once:
                return at_once
            at_once |= found

    *before, last = main, *more
    at_once = loaded(last) - set().union(*map(loaded, before))
    size = sum(sizes[name] for name in at_once)
    return size, sum(sizes.values()) - size, len(at_once)


def core_bytes(wheel: Path) -> bytes:
    """The side module; exits if the wheel contains unexpected files."""
    with zipfile.ZipFile(wheel) as archive:
        package = [i for i in archive.infolist() if ".dist-info/" not in i.filename]
        strange = [
            i.filename for i in package if Path(i.filename).suffix not in CONTENTS
        ]
        (core, *more) = [i for i in package if i.filename.endswith(".so")]
        if strange or more:
            sys.exit(
                f"{wheel.name} contains files that do not belong there: {strange + more}"
            )
        return archive.read(core)


def part_of(wheel: Path, folder: str) -> int:
    """Compressed bytes of a folder's files."""
    with zipfile.ZipFile(wheel) as archive:
        files = archive.infolist()
    return sum(i.compress_size for i in files if i.filename.startswith(folder))


def main() -> None:
    dist = ROOT / "dist"
    wheel = dist / json.loads((dist / "wheel.json").read_text())["file"]
    core = core_bytes(wheel)
    at_once, late, files_at_once = bundle_sizes(SOURCE / "index.ts")
    folder = SOURCE / "adapters"
    exchange = SOURCE / "exchange" / "index.ts"
    core_js = bundle_sizes(SOURCE / "core" / "index.ts")[0]
    exchange_beside = bundle_sizes(SOURCE / "core" / "index.ts", exchange)[0]
    adapters = sorted(file for file in folder.glob("*.ts") if file.stem not in SHARED)
    files = SOURCE / "open" / "index.ts"
    open_js = bundle_sizes(SOURCE / "index.ts", files)[0]
    wire = SOURCE / "wire" / "index.ts"
    widget = SOURCE / "widget" / "index.ts"
    to_gpu = bundle_sizes(SOURCE / "index.ts", files, files.with_name("gpu.ts"))[0]
    sizes: dict[str, Any] = {
        "core_wasm": len(core),
        "core_wasm_gzip": len(gzip.compress(core, 9, mtime=0)),
        "wheel": wheel.stat().st_size,
        "tinygrad": part_of(wheel, "dlpack_web/tinygrad/"),
        "core_js_gzip": core_js + exchange_beside,
        "js_gzip": at_once,
        "late_js_gzip": late,
        "open_gzip": open_js + to_gpu,
        "wire_gzip": bundle_sizes(SOURCE / "index.ts", wire)[0],
        "widget_gzip": bundle_sizes(SOURCE / "index.ts", wire, widget)[0],
        **{
            f"conformance_{side}_gzip": bundle_sizes(
                SOURCE / "conformance" / f"{side}.ts"
            )[0]
            for side in ("producers", "consumers")
        },
        "adapters_gzip": {
            adapter.stem: bundle_sizes(SOURCE / "index.ts", adapter)[0]
            for adapter in adapters
        },
    }
    (ROOT / "build" / "sizes.json").write_text(json.dumps(sizes, indent=2) + "\n")

    rows = [(name, sizes[name], budget) for name, budget in BUDGETS.items()]
    rows += [
        (f"adapter {name}", size, LARGER.get(name, ADAPTER_BUDGET))
        for name, size in sizes["adapters_gzip"].items()
    ]
    for name, size, budget in rows:
        print(f"{name:26} {size:7,} of {budget:7,} bytes, {size / budget:4.0%} used")
    if files_at_once > FILES_AT_ONCE:
        sys.exit(
            f"importing dlpack-web loads {files_at_once} files of a bundle, {FILES_AT_ONCE} before: "
            "find the module that one late entry point imports and another does not (see late.ts)"
        )
    if over := [name for name, size, budget in rows if size > budget]:
        sys.exit(
            f"over budget: {', '.join(over)}. Find out what grew (build/sizes.json has the "
            "figures of the last run). If it is worth its bytes, raise the budget in "
            "tools/check_sizes.py, with the reason beside it; do not golf code to fit"
        )


if __name__ == "__main__":
    main()
