#!/usr/bin/env python3
"""make_xbuildenv.py NPM_PYODIDE OUT: a cross-build environment for `pyodide build`.

It is put together from what the npm package `pyodide` and this Python already hold, the
same everywhere and without a download: pyodide-build fetches the published one without
comparing hashes, and takes it under one version of Python only. Ours is good for
limited-API (abi3) extensions only: those see just the stable part of the headers, which
this Python shares with the one inside Pyodide.
"""

import argparse
import ast
import io
import json
import re
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pyodide_files

Variables = dict[str, str | int]

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


def literal(node: ast.expr | None, root: Path) -> str | int:
    """A constant, or an f-string that holds nothing but constants and PYODIDE_ROOT."""
    match node:
        case ast.Constant(str() | int() as value):
            return value
        case ast.JoinedStr(parts):
            return "".join(str(literal(part, root)) for part in parts)
        case ast.FormattedValue(ast.Name("PYODIDE_ROOT"), -1, None):
            return str(root)
    sys.exit(
        f"{ast.unparse(node) if node else '**'} in Pyodide's sysconfigdata: "
        "make_xbuildenv.py reads only constants and PYODIDE_ROOT, and runs nothing"
    )


def build_time_vars(code: str, root: Path) -> Variables:
    """The dict of that name in a sysconfigdata module, which is read, not run."""
    for statement in ast.parse(code).body:
        match statement:
            case ast.Assign([ast.Name("build_time_vars")], ast.Dict(keys, values)):
                names = [str(literal(key, root)) for key in keys]
                return dict(zip(names, [literal(v, root) for v in values], strict=True))
    sys.exit("Pyodide's sysconfigdata has no dict build_time_vars")


def target_variables(stdlib: bytes, root: Path) -> tuple[str, Variables]:
    """Name and content of the sysconfigdata module inside Pyodide's stdlib zip."""
    with zipfile.ZipFile(io.BytesIO(stdlib)) as archive:
        name = next(n for n in archive.namelist() if n.startswith("_sysconfigdata_"))
        return name, build_time_vars(archive.read(name).decode(), root)


def target_pyconfig(host_header: str, variables: Variables) -> str:
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
    lock = pyodide_files.read(npm_pyodide, "pyodide-lock.json")
    stdlib = pyodide_files.read(npm_pyodide, "python_stdlib.zip")
    info = json.loads(lock)["info"]
    python = info["python"]
    root = out / "xbuildenv" / "xbuildenv" / "pyodide-root"
    sysconfig_file, variables = target_variables(stdlib, root)
    install = Path(str(variables["prefix"]))  # below root
    include = install / "include" / f"python{python.rpartition('.')[0]}"

    shutil.copytree(sysconfig.get_path("include"), include)
    pyconfig = include / "pyconfig.h"
    pyconfig.write_text(target_pyconfig(pyconfig.read_text(), variables))

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
    (root / "dist" / "pyodide-lock.json").write_bytes(lock)
    marker = out / "xbuildenv" / ".build-python-version"
    marker.write_text("{}.{}".format(*sys.version_info[:2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npm_pyodide", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    out = args.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    synthesise(args.npm_pyodide, out)


if __name__ == "__main__":
    main()
