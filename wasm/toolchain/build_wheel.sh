#!/bin/bash
# build_wheel.sh VENV XBUILDENV OUT: the WebAssembly wheel, by the real `pyodide build`.
set -euo pipefail
venv=$(realpath "$1") xbuildenv=$(realpath "$2") out=$(realpath -m "$3")

# Built from a copy, so that neither a native _core.abi3.so in the source tree nor
# leftovers of another build can get into the wheel.
stage=$(mktemp -d build/wheel.XXXXXX)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/wasm" "$stage/py" "$out"
cp pyproject.toml LICENSE "$stage"
# Each visit of a page downloads the wheel: the rest of the README, and the types of the C core, are in the other wheels.
sed -E '/^(```|\[!)/,$d' README.md >"$stage/README.md"
cp wasm/*.[ch] "$stage/wasm"
(cd py && find dlpack_web -name '*.py' -o -name py.typed -o -name _bridge.js) |
  tar -C py -cf - -T - | tar -C "$stage/py" -xf -
"$venv"/bin/python wasm/toolchain/wheels.py reduce "$stage"
# Whoever builds it, and whenever, gets the same bytes.
chmod -R u=rwX,go=rX "$stage"
export SOURCE_DATE_EPOCH=315532800 # 1980-01-01, the oldest date of zip files

# An emcc on the PATH goes first; EMSDK may name an installation that is not on it.
export PATH=$venv/bin:$PATH${EMSDK:+:$EMSDK/upstream/emscripten}
export PYODIDE_XBUILDENV_PATH=$xbuildenv
wanted=$(cd "$stage" && pyodide config get emscripten_version)
found=$(emcc --version 2>/dev/null | sed -n '1s/.* \([0-9.]*[0-9]\).*/\1/p')
if [ -n "$found" ] && [ "$found" != "$wanted" ]; then
  echo "[build] emcc is $found, Pyodide was built by $wanted: fine for a C-only module"
  export SKIP_EMSCRIPTEN_VERSION_CHECK=1
fi

# What JavaScript calls exports itself (export_name), which leaves PyInit. As a list (the
# comma), because pyodide-build would otherwise look through the objects with LLVM tools
# that Debian's emscripten does not bring.
echo "[build] WebAssembly wheel (log: build/wheel.log)"
(
  cd "$stage" &&
    CFLAGS=-Werror pyodide build . --no-isolation --exports PyInit__core, -o "$PWD/dist"
) >build/wheel.log 2>&1 || {
  grep -E -A4 ' (error|warning): ' build/wheel.log >&2 || tail -40 build/wheel.log >&2
  exit 1
}
rm -f "$out"/dlpack_web-*.whl
"$venv"/bin/python wasm/toolchain/wheels.py tag "$stage"/dist/dlpack_web-*.whl "$out"
printf '{"file": "%s"}\n' "$(cd "$out" && echo dlpack_web-*.whl)" >"$out/wheel.json"
