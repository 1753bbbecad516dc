#!/bin/bash
# need.sh cc|npm|emcc|chromium|valgrind|libfuzzer64|lavapipe ...: makes sure that these are there.
# What is missing is installed by apt where that is possible; otherwise says what to install.
set -euo pipefail

# Whether clang links a fuzzer with so many bits.
links_fuzzer() {
  echo 'int LLVMFuzzerTestOneInput(const char *data, __SIZE_TYPE__ size) {
    return data == 0 && size != 0; }' |
    clang -m"$1" -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null
}

present() {
  case $1 in
    libfuzzer*) links_fuzzer "${1#libfuzzer}" ;;
    emcc) command -v emcc || [ -n "${EMSDK:-}" ] ;;
    chromium)
      [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome ||
        compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium*"
      ;;
    firefox-esr) [ -n "${FIREFOX:-}" ] || command -v firefox-esr firefox ;;
    libvulkan) ldconfig -p | grep -F libvulkan.so.1 ;;
    swiftshader) [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] ;;
    lavapipe) compgen -G "/usr/share/vulkan/icd.d/lvp_icd.*.json" ;;
    Xvfb) [ -n "${DISPLAY:-}" ] || command -v Xvfb ;;
    *) command -v "$1" ;;
  esac >/dev/null
}

debian_packages() {
  case $1 in
    cc) echo gcc libc6-dev ;;
    npm) echo nodejs npm ;;
    firefox-esr) echo firefox-esr libvulkan1 ;;
    WebKitWebDriver) echo webkit2gtk-driver ;;
    Xvfb) echo xvfb ;;
    libvulkan) echo libvulkan1 ;;
    swiftshader) echo chromium ;;
    lavapipe) echo mesa-vulkan-drivers ;;
    libfuzzer64) echo clang libclang-rt-dev g++ ;;
    libfuzzer32) echo clang libclang-rt-dev g++-multilib ;;
    *) echo "${1/emcc/emscripten}" ;;
  esac
}

advice() {
  case $1 in
    cc) echo "a C compiler (gcc or clang)" ;;
    npm) echo "Node.js >= 20.16 with npm: https://nodejs.org" ;;
    emcc) echo "Emscripten: https://emscripten.org (emsdk), or Debian's package emscripten" ;;
    chromium)
      echo "Chromium: Debian's package chromium, or build/venv/bin/playwright install" \
        "chromium, or name a binary in the environment variable CHROMIUM"
      ;;
    clang) echo "clang 14 or newer: Debian's package clang" ;;
    libfuzzer*)
      echo "libFuzzer and sanitizers for ${1#libfuzzer}-bit code: Debian's packages" \
        "$(debian_packages "$1")"
      ;;
    libvulkan) echo "the loader of Vulkan's drivers: Debian's package libvulkan1" ;;
    swiftshader)
      echo "SwiftShader, a GPU made of the CPU: Debian's package chromium brings it along," \
        "in /usr/lib/chromium"
      ;;
    lavapipe) echo "lavapipe, Mesa's GPU made of the CPU: Debian's package mesa-vulkan-drivers" ;;
    WebKitWebDriver) echo "WebKitGTK: Debian's package webkit2gtk-driver" ;;
    *) echo "$1" ;;
  esac
}

apt() {
  command -v apt-get >/dev/null || return
  local root=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return
    root=(sudo -n)
  fi
  echo "[setup] apt-get install $* (log: build/apt.log)"
  mkdir -p build
  # Two at a time would refuse each other; the lock ends with this process.
  exec 9</var/lib/dpkg
  flock 9
  "${root[@]}" apt-get update -q >build/apt.log 2>&1 || return
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -yq --no-install-recommends "$@" >>build/apt.log 2>&1
}

missing=() packages=()
for program; do
  present "$program" && continue
  missing+=("$program")
  read -ra names <<<"$(debian_packages "$program")"
  packages+=("${names[@]}")
done
[ ${#missing[@]} = 0 ] && exit
apt "${packages[@]}" || true
for program in "${missing[@]}"; do
  present "$program" && continue
  echo "Missing: $program. Please install $(advice "$program")" >&2
  failed=1
done
exit "${failed:-0}"
