#!/bin/bash
# need.sh cc|npm|emcc|chromium|valgrind ...: makes sure that these programs are there. A
# missing one is installed by apt where that is possible; otherwise says what to install.
set -euo pipefail

present() {
  case $1 in
    emcc) command -v emcc || [ -n "${EMSDK:-}" ] ;;
    chromium)
      [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome ||
        compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium*"
      ;;
    firefox-esr) [ -n "${FIREFOX:-}" ] || command -v firefox-esr firefox ;;
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
