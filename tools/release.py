"""Builds and checks releases, which anyone can reproduce.

release.py version [--tag v1.2.3]   check the version's section in CHANGELOG.md, and a tag
release.py address ADDRESS          set the project's address
release.py build OUT                all files of a release into OUT, from `make package`'s
release.py install OUT              check that the files in OUT install on their own, and work

Workflows use only these commands, through make.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = Path(__file__).with_name("smoke.py")
WINDOWS = ROOT / "wasm" / "toolchain" / "windows.py"
SUMS, SBOM = "SHA256SUMS", "sbom.cdx.json"
# The project's address until it has one: a reserved name (RFC 2606).
UNSETTLED = "https://example.org/dlpack-web"
# Archives of the same files have the same bytes, whoever builds them, and whenever.
LONG_AGO = 315532800  # 1980-01-01, the oldest date that zip files can hold


class ReleaseError(Exception):
    """A reason why this cannot be released."""


# --- versions -----------------------------------------------------------------------------


def check_version(root: Path, tag: str | None = None) -> str:
    """The version in pyproject.toml, which `make generate` writes into all other files; with a tag,
    also checks what a release needs."""
    version = str(
        tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    )
    changes = (root / "CHANGELOG.md").read_text()
    first = changes.partition("\n## ")[2].partition("\n")[0]
    if tag is None:
        if first.partition(" ")[0] not in ("Unreleased", version):
            raise ReleaseError(
                f"CHANGELOG.md begins with neither Unreleased nor {version}: {first!r}"
            )
        return version
    if tag != f"v{version}":
        raise ReleaseError(
            f"the tag {tag} is not v{version}, the version in pyproject.toml"
        )
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)", first):
        raise ReleaseError(
            f"CHANGELOG.md must begin with '## {version} (YYYY-MM-DD)', not with '## {first}'"
        )
    if address(root) == UNSETTLED:
        raise ReleaseError(
            f"{UNSETTLED} is only a placeholder: run `python tools/release.py address` first"
        )
    return version


def address(root: Path) -> str:
    """The project's address, from the one file that defines it."""
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]
    return str(urls["Homepage"])


def move(new: str) -> None:
    """Replaces the address in every file that has the current one."""
    old = address(ROOT)
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+(?<!\.git)", new):
        raise ReleaseError(f"{new} is not an address like {old}")
    for name in run("git", "grep", "-lIF", old).split():
        if name != "tools/release.py":  # which defines the reserved one
            file = ROOT / name
            file.write_text(file.read_text().replace(old, new))
            print(name)


# --- building -----------------------------------------------------------------------------


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{tail}")
    return done.stdout


def build(out: Path) -> None:
    """sdist, the wheels for Pyodide, this machine and Windows, the npm package, those of the
    packages beside them, an SBOM, sums."""
    version = check_version(ROOT)
    run(sys.executable, "tools/generate.py", "--check")
    changed = run("git", "status", "--porcelain").strip()
    if changed:
        raise ReleaseError(
            f"commit everything before a release; not committed:\n{changed}"
        )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    dist = ROOT / "dist"
    wheel = json.loads((dist / "wheel.json").read_text())["file"]
    wheels = json.loads((dist / "packages.json").read_text()).values()
    everywhere = (dist / "desktop").glob(
        "*.whl"
    )  # that Pyodide has wheels of its own of
    tarballs = (dist / "packages").glob(f"*-{version}.tgz")
    for file in (dist / f"dlpack-web-{version}.tgz", *tarballs):
        shutil.copyfile(file, out / file.name)
    for file in (dist / wheel, *(dist / name for name in wheels), *everywhere):
        shutil.copyfile(file, out / file.name)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = build_sdist(work)
        normalise(source, out / source.name)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--wheel-dir", str(work / "wheels")]
        # Without debug information, which has the folder's name.
        source_date = str(LONG_AGO)
        run(*command, out / source.name, SOURCE_DATE_EPOCH=source_date, CFLAGS="-g0")
        (native,) = (work / "wheels").iterdir()
        shutil.copyfile(native, out / native.name)
        run(ROOT / "build/libs/bin/python", WINDOWS, native, out)
    (out / SBOM).write_text(json.dumps(sbom(), indent=2, sort_keys=True) + "\n")
    sums = [f"{sha256(file)}  {file.name}" for file in sorted(out.iterdir())]
    (out / SUMS).write_text("\n".join(sums) + "\n")


def build_sdist(work: Path) -> Path:
    """Copies tracked files only, so untracked ones are not released."""
    tree = work / "tree"
    for name in run("git", "ls-files", "-z").split("\0"):
        if name and not (ROOT / name).is_symlink():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    # The wheels' JavaScript is built, and is one of their inputs.
    script = "py/dlpack_web/_bridge.js"
    shutil.copyfile(ROOT / script, tree / script)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation"]
    run(*command, "--outdir", work / "sdist", tree)
    (made,) = (work / "sdist").iterdir()
    return made


def normalise(source: Path, target: Path) -> None:
    """Repacks a tar without times, places and owners."""

    def anybody(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.mtime, info.uid, info.gid, info.uname, info.gname = LONG_AGO, 0, 0, "", ""
        info.mode = 0o755 if info.isdir() else 0o644
        info.pax_headers = {}
        return info

    with (
        tarfile.open(source) as given,
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=LONG_AGO) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for info in sorted(given.getmembers(), key=lambda info: info.name):
            content = given.extractfile(info) if info.isfile() else None
            made.addfile(anybody(info), content)


def sbom() -> dict[str, object]:
    """CycloneDX from npm, with all runtime dependencies and without the time, place and
    tools of its making."""
    command = ["npm", "sbom", "--sbom-format=cyclonedx", "--package-lock-only"]
    made = json.loads(run(*command, "--omit=dev", "--omit=optional"))
    made.pop("serialNumber", None)
    for fact in ("timestamp", "tools"):
        made["metadata"].pop(fact, None)
    made["metadata"]["component"]["name"] = "dlpack-web"  # otherwise the folder's
    return dict(made)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# --- checking -----------------------------------------------------------------------------


SCRIPT = """
import { Tensor } from "dlpack-web";
import { Tensor as Same } from "dlpack-web/core";
const tensor = Tensor.fromTypedArray(new Float32Array([1, 2, 3]));
if (Same !== Tensor || tensor.data[2] !== 3) throw new Error("no tensor");
tensor.release();
"""


def install(out: Path) -> None:
    """Installs with pip and npm, each in an empty folder and without a network."""
    run("sha256sum", "--quiet", "--check", SUMS, cwd=out)
    version = check_version(ROOT)
    elsewhere = ("wasm32", "win_")
    wheels = [
        file
        for file in out.resolve().glob("*.whl")
        if not any(part in file.name for part in elsewhere)
    ]
    (native,) = (file for file in wheels if file.name.startswith("dlpack_web-"))
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        run(sys.executable, "-m", "venv", fresh / "venv")
        python = fresh / "venv" / "bin" / "python"
        pip: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        run(*pip, "--no-index", "--no-deps", *wheels, cwd=fresh)
        told = run(python, SMOKE, cwd=fresh).strip()
        if told != version:
            raise ReleaseError(f"{native.name} has the version {told}, not {version}")
        (fresh / "package.json").write_text('{"private": true, "type": "module"}')
        command = ["npm", "install", "--offline", "--no-audit", "--no-fund"]
        run(*command, *out.resolve().glob("*.tgz"), cwd=fresh)
        (fresh / "script.mjs").write_text(SCRIPT)
        run("node", "script.mjs", cwd=fresh)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version").add_argument("--tag")
    commands.add_parser("address").add_argument("address")
    commands.add_parser("build").add_argument("out", type=Path)
    commands.add_parser("install").add_argument("out", type=Path)
    given = parser.parse_args()
    try:
        if given.command == "version":
            print(check_version(ROOT, given.tag or None))
        elif given.command == "address":
            move(given.address)
        elif given.command == "build":
            build(given.out)
            print((given.out / SUMS).read_text(), end="")
        else:
            install(given.out)
    except ReleaseError as error:
        sys.exit(f"[release] {error}")


if __name__ == "__main__":
    main()
