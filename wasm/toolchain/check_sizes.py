#!/usr/bin/env python3
"""check_sizes.py: what a user downloads, against its limits; writes build/sizes.json."""

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KIB = 1024
LIMITS = {"core_wasm": 24 * KIB, "wheel": 80 * KIB, "js_gzip": 12 * KIB}
CONTENTS = {".py", ".pyi", ".typed", ".js", ".so"}  # the package's part of the wheel


def bundle_size(entry: Path) -> int:
    """Bytes of an entry point and all it imports: one minified ES module, gzipped."""
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    command = [str(esbuild), str(entry), "--bundle", "--minify"]
    command += ["--format=esm", "--target=es2022", "--log-level=warning"]
    bundle = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return len(gzip.compress(bundle, 9, mtime=0))


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
    sizes = {
        "core_wasm": core_size(wheel),
        "wheel": wheel.stat().st_size,
        "js_gzip": bundle_size(source / "index.ts"),
    }
    adapters = sorted((source / "adapters").glob("*.ts"))
    report = sizes | {"adapters_gzip": {a.stem: bundle_size(a) for a in adapters}}
    (ROOT / "build" / "sizes.json").write_text(json.dumps(report, indent=2) + "\n")

    for name, limit in LIMITS.items():
        verdict = "ok" if sizes[name] <= limit else "TOO BIG"
        print(f"{name:10} {sizes[name]:6,} of {limit:6,} bytes  {verdict}")
    if any(sizes[name] > limit for name, limit in LIMITS.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
