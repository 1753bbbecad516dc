#!/bin/bash
# make_venv.sh FOLDER NAME [PYTHON]: a new virtual environment with what
# tools/requirements/NAME.txt names, of that version of Python. pip takes nothing whose hash is
# not there, and no source packages: to build one, it would fetch and run build tools that
# no hash covers. Python compiles a module when it is first imported: compiling all takes as long as
# installing, which is why its pip is unpacked, too, and not installed by ensurepip (7 s).
set -euo pipefail
folder=$1 requirements=tools/requirements/$2.txt log=$1.log
python=$("$(dirname "$0")/find_python.sh" ${3:+"$3"})
rm -rf "$folder" && mkdir -p "$(dirname "$folder")"
"$python" -m venv --without-pip "$folder"
"$folder/bin/python" -c '
import ensurepip, sysconfig, zipfile
from pathlib import Path

folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).parent / "_bundled"
wheel = max(Path(folder).glob("pip-*.whl"))
zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib"))'
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  --require-hashes --requirement "$requirements" >"$log" 2>&1 || {
  grep -v "Expected  *or" "$log" | tail -n 15 >&2
  exit 1
}
