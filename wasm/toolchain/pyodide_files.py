"""pyodide_files.py: those files of the npm package `pyodide` that the build relies on.

What the cross-build environment is made of ends on the compiler's command line, and the
lock's hashes are what Pyodide's packages are compared with. npm compares the tarball with
package-lock.json when it installs it; nobody looks at what lies in node_modules later.
So each file has to be a known one when it is read.
"""

import hashlib
import json
import sys
from pathlib import Path

# By version, of files as `npm ci` installs them.
SHA256 = {
    "314.0.4": {
        "pyodide-lock.json": "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",
        "python_stdlib.zip": "b5ca2308e9fa72eda319889a1ddf086389e9f1234ced279cc71267fe9ba56e54",
    },
    "314.0.0": {
        "pyodide-lock.json": "f545248ab161ead36adf7110a358334974e97b08f40c7219e97077d380f7247b",
    },
    "314.0.7": {
        "pyodide-lock.json": "5dc2fc119108bc148c7457dc86e7675b5c87e1cafd420b9c34c1eaef7b36c010",
    },
    "0.29.5": {
        "pyodide-lock.json": "14d2c2dba101277999e17135e653d8f15389ad1437f53eae213bf0c3cdff723d",
    },
}


def version_of(npm_pyodide: Path) -> str:
    return str(json.loads((npm_pyodide / "package.json").read_text())["version"])


def read(npm_pyodide: Path, name: str) -> bytes:
    """The bytes of this file; exits if they are not the known ones."""
    data = (npm_pyodide / name).read_bytes()
    version = version_of(npm_pyodide)
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != SHA256.get(version, {}).get(name):
        sys.exit(
            f"{npm_pyodide / name} is not a known file of Pyodide {version}: it was changed, "
            f"or this version is new. Its sha256 is {sha256}. `rm -r node_modules` lets the "
            "next make install what package-lock.json names; if the hash stays, and you "
            f"have changed Pyodide's version yourself, write it into {Path(__file__).name}"
        )
    return data
