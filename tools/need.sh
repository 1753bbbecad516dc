#!/bin/bash
# need.sh PROGRAM...: installs what is missing with apt-get where that is possible, or says what to install.
set -euo pipefail

links_fuzzer() { # for so many bits
  echo 'int LLVMFuzzerTestOneInput(const char *data, __SIZE_TYPE__ size) { return !data && size; }' |
    clang -m"$1" -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null
}

# Sets `packages`, Debian's for a program; whether it is there.
look_for() {
  packages=$1
  case $1 in
    cc) packages="gcc libc6-dev" ;;
    npm) packages="nodejs npm" ;; # Node.js >= 20.16
    emcc) packages=emscripten; [ -n "${EMSDK:-}" ] && return ;;
    firefox-esr) packages="firefox-esr libvulkan1"; [ -n "${FIREFOX:-}" ] && return ;;
    WebKitWebDriver) packages=webkit2gtk-driver ;;
    Xvfb) packages=xvfb; [ -n "${DISPLAY:-}" ] && return ;;
    libfuzzer64) packages="clang libclang-rt-dev g++"; links_fuzzer 64; return ;;
    libfuzzer32) packages="clang libclang-rt-dev g++-multilib"; links_fuzzer 32; return ;;
    libvulkan) packages=libvulkan1; ldconfig -p | grep -F libvulkan.so.1 >/dev/null; return ;;
    swiftshader) packages=chromium; [ -e /usr/lib/chromium/vk_swiftshader_icd.json ]; return ;;
    lavapipe) packages=mesa-vulkan-drivers; compgen -G "/usr/share/vulkan/icd.d/lvp_icd.*.json" >/dev/null; return ;;
    chromium)
      [ -z "${CHROMIUM:-}" ] || return 0
      compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium*" >/dev/null && return
      command -v chromium-browser google-chrome >/dev/null && return
      ;;
  esac
  command -v "$1" >/dev/null
}

for program; do look_for "$program" || missing+=" $packages"; done
[ -n "${missing:-}" ] || exit 0
[ "$(id -u)" = 0 ] || root="sudo -n"
mkdir -p build
if command -v apt-get >/dev/null && ${root:-} true 2>/dev/null; then
  echo "[setup] apt-get install$missing (log: build/apt.log)"
  (
    flock 9 # two at a time would refuse each other
    ${root:-} apt-get update -q && ${root:-} env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends $missing
  ) 9</var/lib/dpkg >build/apt.log 2>&1 || true
fi
for program; do
  look_for "$program" && continue
  echo "Missing: $program. Install it (Debian's packages: $packages); CHROMIUM, FIREFOX and EMSDK may name other installations" >&2
  failed=1
done
exit ${failed:-0}
