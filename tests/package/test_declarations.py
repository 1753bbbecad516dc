"""The declarations of the package, from its tarball, in all TypeScripts from 5.6 on (without
WHOLE=1 in the first and the last): with and without WebGPU's types, the DOM's and Node's way to
resolve modules, and checked themselves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from projects import ROOT, SOURCES, run

TYPES = SOURCES / "types"
COMPILERS = ("5.6", "5.9", "6.0", "7.0")[:: 1 if "WHOLE" in os.environ else 3]


class Host(NamedTuple):
    """Where a program runs, as its tsconfig.json says."""

    lib: list[str]
    types: list[str]
    resolution: str


HOSTS = {
    "bare": Host(["ES2022"], [], "bundler"),
    "page": Host(["ES2022", "DOM"], [], "nodenext"),
    "page-with-webgpu-types": Host(["ESNext", "DOM"], ["@webgpu/types"], "bundler"),
}
# TypeScript has WebGPU's types of its own from here on.
WEBGPU_SINCE = "6.0"
# Slow, and found what the cases beside them find.
LEFT_OUT = {"5.9-bare", "6.0-page-with-webgpu-types"}
CASES = [
    case
    for compiler, host in product(COMPILERS, HOSTS)
    if (case := f"{compiler}-{host}") not in LEFT_OUT
]


@pytest.fixture(scope="module")
def compiled(project: Path) -> Iterator[dict[str, Future[list[str]]]]:
    """What each compiler complains of in each host; all run at once."""
    folder = project / "types"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TYPES, folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {case: pool.submit(compile_case, folder, case) for case in CASES}


def compile_case(folder: Path, case: str) -> list[str]:
    compiler, _, name = case.partition("-")
    host = HOSTS[name]
    files = {file.name for file in TYPES.glob("*.ts")}
    if name == "bare" or (name == "page" and compiler < WEBGPU_SINCE):
        files.remove("webgpu.ts")
    config = folder / f"tsconfig.{case}.json"
    options = {
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "skipLibCheck": False,
        "noEmit": True,
        "target": "ES2022",
        "lib": host.lib,
        "types": host.types,
        "module": "nodenext" if host.resolution == "nodenext" else "esnext",
        "moduleResolution": host.resolution,
    }
    config.write_text(
        json.dumps({"compilerOptions": options, "files": sorted(files)}, indent=2)
    )
    tsc = folder.parent / "node_modules" / f"typescript-{compiler}" / "bin" / "tsc"
    command = ["node", str(tsc), "--pretty", "false", "--project", config.name]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert bool(complaints) == (done.returncode != 0), done.stdout + done.stderr
    return complaints


@pytest.mark.parametrize("case", CASES)
def test_declarations_compile(
    compiled: dict[str, Future[list[str]]], case: str
) -> None:
    complaints = compiled[case].result()
    compiler, _, host = case.partition("-")
    if host == "page-with-webgpu-types" and compiler >= WEBGPU_SINCE:
        # Both have WebGPU's types, and complain of each other's.
        assert complaints
        theirs = re.compile(r"[^(]*node_modules/@(webgpu|typescript)/")
        complaints = [line for line in complaints if not theirs.match(line)]
    assert complaints == []


def test_types_of_the_libraries(project: Path) -> None:
    """The adapters beside the real libraries, whose types lie in their own folder."""
    package = project / "node_modules" / "dlpack-web"
    exports = json.loads((package / "package.json").read_text())["exports"]
    entries = {name: file for name, file in exports.items() if isinstance(file, str)}
    folder = ROOT / "build" / "libraries" / "types"
    folder.mkdir(exist_ok=True)
    shutil.copy(SOURCES / "with_libraries.ts", folder)
    options = {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,  # of other people's declarations
        "target": "ES2022",
        "lib": ["ESNext", "DOM", "DOM.Iterable"],
        "types": [],
        "module": "esnext",
        "moduleResolution": "bundler",
        "paths": {
            f"dlpack-web{name.removeprefix('.')}": [
                str((package / file).with_suffix(".d.ts"))
            ]
            for name, file in entries.items()
        },
    }
    config = {"compilerOptions": options, "files": ["with_libraries.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    tsc = project / "node_modules" / "typescript-6.0" / "bin" / "tsc"
    run("node", str(tsc), "--project", str(folder), at=folder)
