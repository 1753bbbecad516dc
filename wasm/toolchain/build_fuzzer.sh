#!/bin/bash
# build_fuzzer.sh 64|32 OUT: the fuzzer of the C core without Python, with libFuzzer, ASan
# and UBSan. 32 bits are those of x86, with doubles and 64-bit ints aligned as on wasm32.
set -euo pipefail
bits=$1 out=$2 fuzz=tests/fuzz/core objects=$2.objects
target=(-m"$bits")
[ "$bits" = 64 ] || target+=(-malign-double -msse2 -mfpmath=sse)
flags=("${target[@]}" -std=gnu11 -O2 -g -fno-omit-frame-pointer -Iwasm -I"$fuzz")
checks=(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
rm -rf "$objects" && mkdir -p "$objects"

compile() { # FILE FLAGS...: an object of it
  clang "${flags[@]}" "${@:2}" -c "$1" -o "$objects/$(basename "$1" .c).o"
}

knows_python() { clang -MM -MG -Iwasm "$1" | grep 'Python\.h' >/dev/null; }

for file in wasm/*.c; do
  case $file in
    wasm/handles.c) ;; # part of fuzz_handles.c
    *) knows_python "$file" || compile "$file" "${checks[@]}" ;;
  esac
done
for file in "$fuzz"/*.c; do
  case $file in
    */reference.c) compile "$file" -Wall -Wextra -Wconversion -Werror ;; # has to be fast
    # Their own comparisons are not what inputs shall get past.
    *) compile "$file" "${checks[@]}" -fno-sanitize-coverage=trace-cmp \
      -Wall -Wextra -Wconversion -Werror ;;
  esac
done
clang "${target[@]}" -fsanitize=fuzzer,address,undefined \
  -Wl,--wrap=malloc,--wrap=realloc,--wrap=aligned_alloc "$objects"/*.o -o "$out"
