#!/usr/bin/env python3
"""check_sizes.py: what a user downloads, against its limits; writes build/sizes.json."""

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "js" / "src"
KIB = 1024
LIMITS = {"core_wasm": 24 * KIB, "wheel": 80 * KIB, "js_gzip": 12 * KIB}
ADAPTER_LIMIT = 2 * KIB  # beside dlpack-web/exchange
CONTENTS = {".py", ".pyi", ".typed", ".js", ".so"}  # the package's part of the wheel


def bundle_sizes(main: Path, *more: Path) -> tuple[int, int]:
    """Bytes, gzipped, of entry points with all that they import, minified as ES modules:
    what is loaded at once, and what `import()` loads when it is needed. With `more`: what
    the last of these loads at once beside the others, which are loaded already."""
    entries = [str(main), *map(str, more)]
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "meta.json"
        command = [str(esbuild), *entries, "--bundle", "--minify", "--splitting"]
        command += ["--format=esm", "--target=es2022", "--log-level=warning"]
        command += [f"--outdir={folder}", f"--outbase={SOURCE}"]
        command += [f"--metafile={facts}"]
        subprocess.run(command, check=True, cwd=folder)
        files: dict[str, Any] = json.loads(facts.read_text())["outputs"]
        sizes = {
            name: len(gzip.compress((Path(folder) / name).read_bytes(), 9, mtime=0))
            for name in files
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
    return size, sum(sizes.values()) - size


def core_size(wheel: Path) -> int:
    """Bytes of the side module; exits if the wheel holds what it should not."""
    with zipfile.ZipFile(wheel) as archive:
        package = [i for i in archive.infolist() if ".dist-info/" not in i.filename]
    strange = [i.filename for i in package if Path(i.filename).suffix not in CONTENTS]
    (core, *more) = [i for i in package if i.filename.endswith(".so")]
    if strange or more:
        sys.exit(f"{wheel.name} holds files that do not belong there: {strange + more}")
    return core.file_size


def main() -> None:
    dist = ROOT / "dist"
    wheel = dist / json.loads((dist / "wheel.json").read_text())["file"]
    at_once, later = bundle_sizes(SOURCE / "index.ts")
    sizes = {
        "core_wasm": core_size(wheel),
        "wheel": wheel.stat().st_size,
        "js_gzip": at_once,
    }
    folder = SOURCE / "adapters"
    exchange = SOURCE / "fit.ts"
    adapters = sorted(
        set(folder.glob("*.ts")) - {folder / "shared.ts", folder / "all.ts"}
    )
    report = sizes | {
        "js_later_gzip": later,
        "exchange_gzip": bundle_sizes(SOURCE / "index.ts", exchange)[0],
        "adapters_gzip": {
            adapter.stem: bundle_sizes(exchange, adapter)[0] for adapter in adapters
        },
    }
    (ROOT / "build" / "sizes.json").write_text(json.dumps(report, indent=2) + "\n")

    for name, limit in LIMITS.items():
        verdict = "ok" if sizes[name] <= limit else "TOO BIG"
        print(f"{name:10} {sizes[name]:6,} of {limit:6,} bytes  {verdict}")
    print(
        f"{'js later':10} {later:6,} bytes, loaded by connect() and webgpu when needed"
    )
    sizes |= report["adapters_gzip"]
    limits = LIMITS | dict.fromkeys(report["adapters_gzip"], ADAPTER_LIMIT)
    print(f"{'exchange':10} {report['exchange_gzip']:6,} bytes, which adapters share")
    print(f"adapters, each of {ADAPTER_LIMIT:,} bytes: {report['adapters_gzip']}")
    if too_big := [name for name, limit in limits.items() if sizes[name] > limit]:
        sys.exit(f"too big: {too_big}")


if __name__ == "__main__":
    main()
