"""What is in the tarball, what of it gets into a bundle, and the wheel as Node finds it."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import wheels
from projects import ROOT, lay_out, run, shipped_wheel, tarballs, unpack

# What only code that talks to a GPU says.
WEBGPU = re.compile(
    r"writeBuffer|mapAsync|createComputePipeline|createBuffer|requestAdapter"
    r"|@compute|beginComputePass"
)
# Several entry points, as users of tensors alone have them.
WITHOUT_GPU = {
    "core": 'import { Tensor } from "dlpack-web/core"; console.log(Tensor);',
    "core and exchange": (
        'import { liveTensors } from "dlpack-web/core";'
        'import { fit, take } from "dlpack-web/exchange";'
        "console.log(liveTensors, fit, take);"
    ),
}
WITH_GPU = 'import { Tensor } from "dlpack-web"; console.log(Tensor);'


def esbuild(project: Path, source: str) -> str:
    options = (
        "--bundle",
        "--format=esm",
        "--minify",
        "--splitting",
        "--outdir=bundled",
    )
    return _bundle(project, source, "esbuild", "entry.js", *options)


def rollup(project: Path, source: str) -> str:
    options = ("--dir", "bundled", "--plugin", "node-resolve", "--silent")
    return _bundle(project, source, "rollup", "entry.js", *options)


def _bundle(project: Path, source: str, *command: str) -> str:
    """All that is written, what is loaded later included."""
    folder = project / "bundles"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "entry.js").write_text(source)
    run("npx", *command, at=folder)
    return "\n".join(file.read_text() for file in (folder / "bundled").glob("*.js"))


@pytest.mark.parametrize("bundle", [esbuild, rollup])
@pytest.mark.parametrize("source", WITHOUT_GPU.values(), ids=WITHOUT_GPU)
def test_tensors_alone_bring_no_webgpu(project: Path, bundle, source: str) -> None:
    text = bundle(project, source)
    assert "ReleasedError" in text
    assert WEBGPU.findall(text) == []


@pytest.mark.parametrize("bundle", [esbuild, rollup])
def test_the_whole_library_brings_webgpu(project: Path, bundle) -> None:
    """A tensor of `dlpack-web` moves to a GPU, even if nothing else is imported."""
    found = set(WEBGPU.findall(bundle(project, WITH_GPU)))
    assert {"writeBuffer", "mapAsync", "createComputePipeline"} <= found


@pytest.mark.parametrize("bundle", [esbuild, rollup])
def test_adapters_are_shaken_from_the_tree(project: Path, bundle) -> None:
    """A page that imports one adapter does not download the others."""
    used = 'import { toArrow } from "dlpack-web/arrow"; console.log(toArrow);'
    unused = 'import { toJax } from "dlpack-web/jax";'
    text = bundle(project, used + unused)
    assert "FixedSizeList" in text
    assert "jax-js" not in text
    assert "onnxruntime" not in text


def test_tarball_holds_what_it_should(project: Path) -> None:
    package = project / "node_modules" / "dlpack-web"
    files = {str(path.relative_to(package)) for path in package.rglob("*.*")}
    assert {"README.md", "package.json", "js/KERNELS.md"} <= files
    assert sum(name.endswith(".whl") for name in files) == 1
    kinds = {Path(name).suffix for name in files}
    assert kinds <= {".js", ".ts", ".map", ".json", ".md", ".whl"}
    for entry in json.loads((package / "package.json").read_text())["exports"].values():
        file = entry if isinstance(entry, str) else entry["types"]
        assert file.removeprefix("./") in files


def test_tarball_has_each_source_and_what_is_built_of_it(project: Path) -> None:
    package = project / "node_modules" / "dlpack-web"
    found = [path for path in package.rglob("*") if path.is_file()]
    files = {path.relative_to(package).as_posix() for path in found}
    tops = {file for file in files if not file.startswith(("js/src/", "js/dist/"))}
    assert {file for file in tops if not file.endswith(".whl")} == {
        *(
            "LICENSE",
            "README.md",
            "package.json",
            "js/KERNELS.md",
        )
    }
    sources = {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("js/src/**/*.ts")
    }
    assert {file for file in files if file.startswith("js/src/")} == sources
    stems = {
        source.removeprefix("js/src/").removesuffix(".ts")
        for source in sources
        if not source.endswith(".d.ts")
    }
    ends = ("js", "js.map", "d.ts", "d.ts.map")
    built = {f"js/dist/{stem}.{end}" for stem in stems for end in ends}
    assert {file for file in files if file.startswith("js/dist/")} - built == set()
    assert built - files == set()


def test_wheel_has_each_source_but_those_of_other_places(project: Path) -> None:
    with zipfile.ZipFile(shipped_wheel(project)) as wheel:
        names = [name for name in wheel.namelist() if "dist-info/" not in name]
    folder = ROOT / "py" / "dlpack_web"
    kinds = ("*.py", "*.pyi", "py.typed", "_bridge.js")
    sources = {path for kind in kinds for path in folder.rglob(kind)}
    others = {*folder.glob("_backends/desktop/*"), *folder.glob("_backends/model/**/*")}
    others |= {*folder.rglob("*.pyi")}
    others |= {folder / "_backends/no_javascript.py", folder / "_files/remote.py"}
    others = {path for path in others if path.is_file() and path.suffix != ".pyc"}
    assert others < sources
    wanted = {path.relative_to(folder.parent).as_posix() for path in sources - others}
    assert {*names} == {*wanted, "dlpack_web/_core.abi3.so"}
    assert len(names) == len({*names})


def test_wheel_has_the_sources_as_they_are_reduced(
    project: Path, tmp_path: Path
) -> None:
    """tests/tools/test_wheels.py has what is left of them."""
    shutil.copytree(ROOT / "py", tmp_path / "py")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    wheels.reduce(tmp_path)
    with zipfile.ZipFile(shipped_wheel(project)) as wheel:
        for name in wheel.namelist():
            if name.endswith(".py"):
                assert wheel.read(name) == (tmp_path / "py" / name).read_bytes(), name


def test_entry_points_for_those_who_do_not_read_exports(project: Path) -> None:
    """Parcel does not unless it is told to: it has the same files from `main` and `alias`."""
    package = project / "node_modules" / "dlpack-web"
    manifest = json.loads((package / "package.json").read_text())
    exports = manifest["exports"]
    assert manifest["main"] == exports.pop(".")
    del exports["./package.json"], exports["./types"]  # of no file that runs
    assert manifest["alias"] == exports


@pytest.mark.parametrize("name", ["plain", "a blank, 100%20 ümläut #1 [x]"])
def test_node_finds_the_wheel_in_any_folder(
    project: Path, tmp_path: Path, name: str, wheel_hash: str
) -> None:
    folder = tmp_path / name
    lay_out(folder, "wheel", "package.json")
    unpack(folder)
    assert run("node", "run.js", at=folder).strip() == wheel_hash
    # As a path and as a URL, too.
    moved = shutil.move(shipped_wheel(folder), folder / "moved #2.whl")
    assert run("node", "run.js", "moved #2.whl", at=folder).strip() == wheel_hash
    assert run("node", "run.js", moved.as_uri(), at=folder).strip() == wheel_hash
    told = run("node", "run.js", at=folder)
    assert "cannot be loaded (ENOENT" in told
    assert "Pass the URL of dist/*.whl" in told


def test_the_bridge_and_its_packages_install_in_one_command(tmp_path: Path) -> None:
    """They have one version, and all files that their exports name."""
    (tmp_path / "package.json").write_text("{}")
    quiet = ("--offline", "--no-audit", "--no-fund")
    files = tarballs()
    run("npm", "install", *quiet, *files.values(), at=tmp_path)
    versions = set()
    for name in files:
        package = tmp_path / "node_modules" / name
        assert (package / "LICENSE").is_file()
        manifest = json.loads((package / "package.json").read_text())
        versions.add(manifest["version"])
        for entry in manifest["exports"].values():
            file = entry if isinstance(entry, str) else entry["types"]
            assert (package / file).is_file(), file
    assert versions == {json.loads((ROOT / "package.json").read_text())["version"]}
