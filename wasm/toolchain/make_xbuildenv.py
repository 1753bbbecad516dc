#!/usr/bin/env python3
"""make_xbuildenv.py NPM_PYODIDE OUT: a cross-build environment for `pyodide build`.

The official one is installed when its host can be reached. Otherwise an equivalent is
put together from what the npm package `pyodide` and this Python already hold. It is
good for limited-API (abi3) extensions only: those see just the stable part of the
headers, which this Python shares with the one inside Pyodide.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from pyodide_build.xbuildenv_releases import cross_build_env_metadata_url

MAKEFILE_ENVS = """\
export PYVERSION={python}
export PYMAJOR={host[0]}
export PYMINOR={host[1]}
export PYMICRO={host[2]}
export PYODIDE_ABI_VERSION={abi}
export PYODIDE_EMSCRIPTEN_VERSION={emscripten}
export PLATFORM_TRIPLET=wasm32-emscripten
export SYSCONFIG_NAME={sysconfig_name}
export CPYTHONINSTALL={install}
export TARGETINSTALLDIR={install}
export SYSCONFIGDATA_DIR={install}/sysconfigdata
export PYTHONINCLUDE={include}
export CFLAGS_BASE=-fPIC
export CXXFLAGS_BASE=-fPIC
export LDFLAGS_BASE=-sWASM_BIGINT
.output_vars:
	@env
"""


def install_official(version: str, out: Path) -> bool:
    """Install the published environment; False when that is not possible here."""
    try:
        # Asked for its own sake: pyodide-build would wait and retry for long.
        urllib.request.urlopen(cross_build_env_metadata_url(), timeout=5).close()
    except OSError:
        return False
    pyodide = Path(sys.executable).with_name("pyodide")
    command = [str(pyodide), "xbuildenv", "install", version, "--path", str(out)]
    return subprocess.run(command, check=False).returncode == 0


def target_variables(stdlib: Path) -> tuple[str, dict[str, Any]]:
    """Name and content of the sysconfigdata module inside Pyodide's stdlib zip."""
    with zipfile.ZipFile(stdlib) as archive:
        name = next(n for n in archive.namelist() if n.startswith("_sysconfigdata_"))
        code = archive.read(name)
    scope: dict[str, Any] = {}
    # Ours by npm's integrity hash; it holds f-strings, so it has to be run.
    exec(code, scope)  # noqa: S102
    return name, scope["build_time_vars"]


def target_pyconfig(host_header: str, variables: dict[str, Any]) -> str:
    """A pyconfig.h with the host's names and the target's values."""
    names = set(re.findall(r"#\s*(?:define|undef)\s+(\w+)", host_header))
    lines = ["#pragma once"]
    for name in sorted(names & variables.keys()):
        value = variables[name]
        # 0 stands for "undefined", except that a size may truly be 0.
        if value not in (0, "") or name.startswith("SIZEOF_"):
            lines.append(f"#define {name} {value}")
    return "\n".join(lines) + "\n"


def synthesise(npm_pyodide: Path, out: Path) -> None:
    lock = npm_pyodide / "pyodide-lock.json"
    info = json.loads(lock.read_text())["info"]
    python = info["python"]
    root = out / "xbuildenv" / "xbuildenv" / "pyodide-root"
    install = root / "cpython" / "installs" / f"python-{python}"
    include = install / "include" / f"python{python.rpartition('.')[0]}"

    shutil.copytree(sysconfig.get_path("include"), include)
    sysconfig_file, variables = target_variables(npm_pyodide / "python_stdlib.zip")
    pyconfig = include / "pyconfig.h"
    pyconfig.write_text(target_pyconfig(pyconfig.read_text(), variables))

    prefix = variables["prefix"]
    for key, value in variables.items():
        if isinstance(value, str):
            variables[key] = value.replace(prefix, str(install))
    # In the 3.15 alpha this value holds quotes, which would end up in file names.
    variables.pop("SOABI_PLATFORM", None)
    data = install / "sysconfigdata"
    data.mkdir()
    (data / sysconfig_file).write_text(f"build_time_vars = {variables!r}\n")

    (root / "Makefile.envs").write_text(
        MAKEFILE_ENVS.format(
            python=python,
            # The build Python's version, not the target's: pyodide-build copies the
            # sysconfigdata into an environment made by the former.
            host=sys.version_info,
            abi=info["abi_version"],
            emscripten=info["platform"].removeprefix("emscripten_").replace("_", "."),
            sysconfig_name=sysconfig_file.removesuffix(".py"),
            install=install,
            include=include,
        )
    )
    (root.parent / "requirements.txt").write_text("")
    (root / "dist").mkdir()
    shutil.copy(lock, root / "dist")
    marker = out / "xbuildenv" / ".build-python-version"
    marker.write_text("{}.{}".format(*sys.version_info[:2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    out = args.out.resolve()
    version = json.loads((args.npm_pyodide / "package.json").read_text())["version"]
    shutil.rmtree(out, ignore_errors=True)
    if install_official(version, out):
        return
    print("[setup] no official cross-build environment here: making one", flush=True)
    shutil.rmtree(out, ignore_errors=True)
    synthesise(args.npm_pyodide, out)


if __name__ == "__main__":
    main()
