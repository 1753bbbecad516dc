#!/bin/sh
# find_python.sh [VERSION]: prints the path of a Python >= 3.12 that really runs, or of one
# of that very VERSION ("3.12"). PYTHON overrides the search for any.
works() {
  "$1" -c "
import ensurepip, sys, venv
version = '${wanted}' or sys.version
sys.exit(sys.version_info < (3, 12) or not sys.version.startswith(version))" >/dev/null 2>&1
}

wanted=${1:+$1.}
if [ -n "${PYTHON:-}" ] && [ -z "$wanted" ]; then
  works "$PYTHON" && command -v "$PYTHON" && exit
  echo "PYTHON=$PYTHON is not a Python >= 3.12 with the venv module" >&2
  exit 1
fi

# A pyenv shim exists for every version ever installed but runs only the selected ones,
# so each candidate is tried, and pyenv's own versions come after the PATH.
pyenv_versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
for candidate in python3.13 python3.12 python3.14 python3 \
  "$pyenv_versions"/3.13*/bin/python3 "$pyenv_versions"/3.1[24]*/bin/python3; do
  works "$candidate" && command -v "$candidate" && exit
done
if command -v uv >/dev/null; then
  candidate=$(uv python find '>=3.12' 2>/dev/null) && works "$candidate" &&
    echo "$candidate" && exit
fi

cat >&2 <<'MESSAGE'
No Python >= 3.12 with the venv module was found. Install one, for example with
  apt-get install python3.13-venv    (Debian 13 or later)
  pyenv install 3.13                 (pyenv)
  uv python install 3.13             (uv)
or name one: make PYTHON=/path/to/python3.13
MESSAGE
exit 1
