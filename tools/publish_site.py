"""The site for a static host: the newest version whole, and the documentation of each version.

publish_site.py pack SITE OUT           dlpack-web-VERSION-docs.tar.gz into OUT, for a release
publish_site.py lay-out SITE OLD OUT    what the host gets, into OUT: the site at the root, and
                                        v/VERSION/docs of it and of each archive in OLD

Older versions consist of pages only: their blocks report that Python is missing.
"""

import argparse
import gzip
import html
import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"dlpack-web-(\d+(?:\.\d+)+(?:\w*))-docs\.tar\.gz")
LONG_AGO = 315532800  # 1980-01-01: a fixed date for archives
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dlpack-web: versions</title>
<h1>Documentation by version</h1>
<ul>
{items}
</ul>
<p><a href="../index.html">The newest, with all pages</a></p>
"""

# Targets of links in a version that are not documentation.
ONWARD = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=../../{name}">
<title>dlpack-web</title>
<a href="../../{name}">The newest {name}</a>
"""


class SiteError(Exception):
    """A file is missing, or does not match."""


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def docs_of(site: Path) -> Path:
    docs = site / "docs"
    if not (docs / "index.html").is_file():
        raise SiteError(f"{site} has no docs: build them with `make docs`")
    return docs


def pack(site: Path, out: Path) -> Path:
    """Packs the documentation reproducibly."""
    docs = docs_of(site)
    made = out / f"dlpack-web-{version()}-docs.tar.gz"
    out.mkdir(parents=True, exist_ok=True)
    with (
        made.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=LONG_AGO) as packed,
        tarfile.open(fileobj=packed, mode="w", dereference=True) as archive,
    ):
        for file in sorted(each for each in docs.rglob("*") if each.is_file()):
            info = archive.gettarinfo(file, f"docs/{file.relative_to(docs)}")
            info.mtime, info.uid, info.gid = LONG_AGO, 0, 0
            info.uname = info.gname = ""
            info.mode = 0o644
            with file.open("rb") as content:
                archive.addfile(info, content)
    return made


def newest_first(versions: list[str]) -> list[str]:
    def key(text: str) -> tuple[list[int], bool, str]:
        numbers = re.match(r"\d+(\.\d+)*", text)
        assert numbers
        rest = text[numbers.end() :]
        return [int(n) for n in numbers[0].split(".")], rest == "", rest

    return sorted(versions, key=key, reverse=True)


def lay_out(site: Path, old: Path, out: Path) -> list[str]:
    """The available versions, newest first."""
    docs_of(site)
    if out.exists():
        raise SiteError(f"{out} already exists")
    shutil.copytree(site, out)  # follows links
    found = {
        match[1]: file for file in old.iterdir() if (match := NAME.fullmatch(file.name))
    }
    for name, file in found.items():
        with tarfile.open(file) as archive:
            archive.extractall(out / "v" / name, filter="data")
    if version() not in found:
        shutil.copytree(docs_of(site), out / "v" / version() / "docs")
    versions = newest_first([*found, *({version()} - {*found})])
    for name in versions:
        for page in site.glob("*.html"):
            onward = ONWARD.format(name=html.escape(page.name))
            (out / "v" / name / page.name).write_text(onward)
    items = "\n".join(
        f'<li><a href="{html.escape(each)}/docs/index.html">{html.escape(each)}</a>'
        for each in versions
    )
    (out / "v" / "index.html").write_text(PAGE.format(items=items))
    return versions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("site", type=Path)
    packing.add_argument("out", type=Path)
    laying = commands.add_parser("lay-out")
    for name in ("site", "old", "out"):
        laying.add_argument(name, type=Path)
    given = parser.parse_args()
    try:
        if given.command == "pack":
            print(pack(given.site, given.out))
        else:
            print("\n".join(lay_out(given.site, given.old, given.out)))
    except SiteError as error:
        sys.exit(f"[site] {error}")


if __name__ == "__main__":
    main()
