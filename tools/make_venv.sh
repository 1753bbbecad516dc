#!/bin/bash
# make_venv.sh FOLDER NAME [PYTHON]: a new virtual environment with what
# tools/requirements/NAME.txt names, of that version of Python. pip takes nothing whose hash is
# not there, and no source packages: to build one, it would fetch and run build tools that
# no hash covers.
set -euo pipefail
folder=$1 requirements=tools/requirements/$2.txt log=$1.log
python=$("$(dirname "$0")/find_python.sh" ${3:+"$3"})
rm -rf "$folder" && mkdir -p "$(dirname "$folder")"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
  --require-hashes --requirement "$requirements" >"$log" 2>&1 || {
  grep -v "Expected  *or" "$log" | tail -n 15 >&2
  exit 1
}
