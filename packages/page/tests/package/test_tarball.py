"""The npm package from its tarball, beside that of dlpack-web, and without a network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from projects import ROOT, run, tarballs

PROGRAM = """
import { liveTensors, Tensor } from "dlpack-web";
import { widget } from "dlpack-web-page/widget";
import { Wire, joined } from "dlpack-web-page/wire";

const ends = [1, 0].map((to) => new Wire({
  send: (header, payload) => {
    const frame = joined(header, payload);
    queueMicrotask(() => ends[to].receive(frame));
  },
}));
ends[0].connect();
const x = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
ends[0].send("x", x);
const { data, dtype } = await ends[1].get("x");
console.log(JSON.stringify([dtype, [...data], typeof widget({})]));
for (const each of [...ends, { close: () => x.release() }]) each.close();
console.log(liveTensors());
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    (folder / "package.json").write_text(json.dumps({"type": "module"}))
    quiet = ("--offline", "--no-audit", "--no-fund")
    files = (tarballs()[name] for name in ("dlpack-web", "dlpack-web-page"))
    run("npm", "install", *quiet, *files, at=folder)
    return folder


def test_two_packages_are_all_that_is_installed(project: Path) -> None:
    there = {path.name for path in (project / "node_modules").glob("[!.]*")}
    assert there == {"dlpack-web", "dlpack-web-page"}
    page = project / "node_modules" / "dlpack-web-page"
    tops = {path.name for path in page.iterdir()}
    assert tops == {"LICENSE", "README.md", "WIRE.md", "js", "package.json"}


def test_both_have_the_same_tensors(project: Path) -> None:
    (project / "use.js").write_text(PROGRAM)
    told = run("node", "use.js", at=project).splitlines()
    assert told == [
        json.dumps(["float32", [1, 2, 3], "function"], separators=(",", ":")),
        "0",
    ]


@pytest.mark.parametrize("resolution", ["bundler", "nodenext"])
def test_types(project: Path, resolution: str) -> None:
    shutil.copy(ROOT / "packages/page/tests/typing/user.ts", project)
    module = "esnext" if resolution == "bundler" else resolution
    tsc = (ROOT / "node_modules/.bin/tsc", "--noEmit", "--strict", "--target", "es2022")
    options = ("--module", module, "--moduleResolution", resolution, "--types", "")
    run(*map(str, tsc), *options, "user.ts", at=project)
