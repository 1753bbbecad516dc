#!/bin/bash
# mutants.sh py|js|c FILE TESTS [COUNT]: changes one place of a file at a time, in a copy below build/mutants,
# and runs the tests in the folders TESTS. Configures mutmut, StrykerJS and universalmutator.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 # a mutant may have the size and the time of what it replaces
what=$1 file=$2 tests=$3 count=${4:-50}
root=$PWD copy=$PWD/build/mutants/$1
[ -n "$tests" ] || { echo "tools/make/tests_of.txt lists no tests for $file: name folders, TESTS='tests/js/core …'" >&2; exit 1; }
rm -rf "$copy" && mkdir -p "$copy"

# Paths of tests are relative to the project's root.
copy_project() {
  ln -s "$root"/* "$copy"
  rm "$copy/tests" && cp -r "$root/tests" "$copy"
}

# mutmut removes the folder src from the names of modules. build/libs has wgpu and onnxruntime, which some
# tests need absent; mutated functions have no docstrings.
py() {
  copy_project
  ln -s py "$copy/src"
  mkdir -p "$copy/mutants/src"
  cat >"$copy/setup.cfg" <<END
[mutmut]
source_paths = src
process_isolation = forkserver
only_mutate = src${file#py}
also_copy =
  README.md
  tools
  wasm
  web
pytest_add_cli_args_test_selection =
$(printf '  %s\n' $tests)
pytest_add_cli_args =
  -k
  not (docstring or every_package or webgpu_needs or needs_webgpu or without_a_browser or what_to_do or no_widget)
END
  cd "$copy"
  export PYTHONPATH=$copy/mutants/src # also of Pythons that tests start
  "$root/build/libs/bin/mutmut" run --max-children 2
  "$root/build/libs/bin/mutmut" results
}

js() {
  copy_project
  rm "$copy/js" "$copy/packages" && cp -r "$root/js" "$root/packages" "$copy"
  cd "$copy"
  FILE=$file TESTS=$tests "$root/build/stryker/node_modules/.bin/stryker" run tests/js/stryker.mjs
}

# The tests run under sanitizers. What compiles to the same code is no mutant. universalmutator does not count the last.
c() {
  local python=$root/build/venv/bin/python name source
  name=$(basename "$file" .c)
  tool() { PYTHONPATH=$root/build/universalmutator "$python" -m "universalmutator.$@"; }
  compile="gcc -std=c11 -O1 -fPIC -fvisibility=hidden -DPy_LIMITED_API=0x030C0000 -I$root/wasm"
  compile+=" -I$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))') -c -x c"
  sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
  "$python" wasm/toolchain/build_asan.py "$copy/asan"
  mkdir "$copy/objects" "$copy/mutants"
  for source in wasm/*.c; do
    $compile $sanitize "$source" -o "$copy/objects/$(basename "$source" .c).o"
  done
  cat >"$copy/test.sh" <<END
$compile $sanitize - -o $copy/objects/$name.o <\$1 || exit 1
gcc -shared $sanitize $copy/objects/*.o -o $copy/asan/dlpack_web/_core.abi3.so || exit 1
cd $root
export PYTHONPATH=$copy/asan PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
exec $python -m pytest -x -q -p no:cacheprovider --capture=sys -k "not million and not docstring" $tests
END
  SECONDS=0
  bash "$copy/test.sh" "$file" >"$copy/log.txt" 2>&1 || { tail "$copy/log.txt"; exit 1; }
  cd "$copy"
  $compile - -o same.o <"$root/$file"
  tool genmutants "$root/$file" c --noCheck --mutantDir mutants | tail -n 1
  tool analyze "$root/$file" "bash test.sh MUTANT" --mutantDir mutants --show --seed 1 \
    --timeout $((60 + 3 * SECONDS)) --numMutants $((count + 1)) \
    --compileCommand "$compile - -o new.o <MUTANT && ! cmp -s new.o same.o"
}

$what
