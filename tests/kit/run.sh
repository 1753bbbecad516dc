#!/bin/sh
# The tests and measurements of dlpack-web on this machine's GPU: README.txt tells more.
# Nothing is needed but a C library (glibc 2.34 or newer) and the GPU's driver for Vulkan.
set -eu
case $0 in
  */*) here=$(cd "${0%/*}" && pwd) ;;
  *) here=$(pwd) ;; # sh run.sh
esac
machine=$(uname -s)/$(uname -m)
if [ "$machine" != Linux/x86_64 ]; then
  echo "This is $machine: the kit's programs are for Linux/x86_64 alone." >&2
  exit 2
fi

# The machine's own libraries go first: the kit's stand in for what is missing.
folders="/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib64 /usr/lib64 /usr/lib /usr/local/lib"
missing() {
  for folder in $folders; do
    [ ! -e "$folder/$1" ] || return 1
  done
}
for library in "$here"/lib/*/*.so.*; do
  if missing "${library##*/}"; then
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${library%/*}
  fi
done
# Where machines that lend their GPU to a container put the driver.
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64"
export XDG_DATA_DIRS="${XDG_DATA_DIRS:-/usr/local/share:/usr/share}:/usr/local/nvidia/share"
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}" # Mesa wants it, or complains

if ! said=$("$here/bin/deno" --version 2>&1); then
  echo "Deno does not start here, which needs glibc 2.27 or newer and libgcc_s.so.1:" >&2
  echo "$said" >&2
  exit 2
fi
export DENO_DIR="${TMPDIR:-/tmp}/dlpack-web-kit-$$" DENO_NO_UPDATE_CHECK=1 NO_COLOR=1
exec "$here/bin/deno" run --allow-all --no-prompt --no-lock --no-config --quiet \
  "$here/site/tests/kit/kit.mjs" "$@"
