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
KIB = 1024
LIMITS = {"core_wasm": 24 * KIB, "wheel": 80 * KIB, "js_gzip": 12 * KIB}
CONTENTS = {".py", ".pyi", ".typed", ".js", ".so"}  # the package's part of the wheel


def bundle_sizes(entry: Path) -> tuple[int, int]:
    """Bytes, gzipped, of an entry point with all that it imports, minified as ES modules:
    what is loaded at once, and what `import()` loads when it is needed."""
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "meta.json"
        command = [str(esbuild), str(entry), "--bundle", "--minify", "--splitting"]
        command += ["--format=esm", "--target=es2022", "--log-level=warning"]
        command += [f"--outdir={folder}", f"--metafile={facts}"]
        subprocess.run(command, check=True, cwd=folder)
        files: dict[str, Any] = json.loads(facts.read_text())["outputs"]
        sizes = {
            name: len(gzip.compress((Path(folder) / name).read_bytes(), 9, mtime=0))
            for name in files
        }
    at_once = {f"{entry.stem}.js"}
    while True:
        more = {
            reference["path"]
            for name in at_once
            for reference in files[name]["imports"]
            if reference["kind"] != "dynamic-import"
        }
        if more <= at_once:
            break
        at_once |= more
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
    source = ROOT / "js" / "src"
    at_once, later = bundle_sizes(source / "index.ts")
    sizes = {
        "core_wasm": core_size(wheel),
        "wheel": wheel.stat().st_size,
        "js_gzip": at_once,
    }
    adapters = sorted((source / "adapters").glob("*.ts"))
    report = sizes | {
        "js_later_gzip": later,
        "adapters_gzip": {a.stem: bundle_sizes(a)[0] for a in adapters},
    }
    (ROOT / "build" / "sizes.json").write_text(json.dumps(report, indent=2) + "\n")

    for name, limit in LIMITS.items():
        verdict = "ok" if sizes[name] <= limit else "TOO BIG"
        print(f"{name:10} {sizes[name]:6,} of {limit:6,} bytes  {verdict}")
    print(
        f"{'js later':10} {later:6,} bytes, loaded by connect() and webgpu when needed"
    )
    if any(sizes[name] > limit for name, limit in LIMITS.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
