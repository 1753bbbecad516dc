"""Builds the documentation: build/docs/site, which the site has as docs/.

It sends no requests to other hosts. With DOCS_DRAFT=1 in the environment, warnings do
not fail it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from notebooks import write_notebooks
from prepare import prepare
from repository import BUILD, ROOT, SITE, SOURCE
from strict import make_strict
from typescript import write_typescript


def sphinx() -> int:
    strict = [] if os.environ.get("DOCS_DRAFT") else ["--fail-on-warning"]
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--quiet"]
    command += [*strict, "--nitpicky", "--doctree-dir", str(BUILD / "doctrees")]
    environment = os.environ | {"DOCS_ROOT": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command += [str(SOURCE), str(SITE)]
    return subprocess.run(command, check=False, env=environment).returncode


def remove_stale() -> None:
    """Deletes pages whose sources are gone, which Sphinx leaves in place."""
    for page in SITE.rglob("*.html"):
        name = page.relative_to(SITE).with_suffix(".md")
        made = name.stem in {"genindex", "py-modindex", "search"}  # by Sphinx itself
        if not made and "_static" not in name.parts and not (SOURCE / name).is_file():
            page.unlink()


def main() -> int:
    began = time.monotonic()
    prepare()
    write_typescript(SOURCE / "reference" / "typescript")
    failed = sphinx()
    if failed:
        return failed
    remove_stale()
    make_strict(SITE)
    write_notebooks()
    pages = len(list(SITE.rglob("*.html")))
    where = SITE.relative_to(Path.cwd()) if SITE.is_relative_to(Path.cwd()) else SITE
    print(f"[docs] {pages} pages in {time.monotonic() - began:.0f} s: {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
