"""The built documentation, as files: pages, their links, their blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs" / "site"
SOURCE = ROOT / "web" / "docs"
PACKAGES = ROOT / "packages"


class Anchors(HTMLParser):
    """Ids of a page, and what it leads to or loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


@cache
def anchors(page: Path) -> Anchors:
    found = Anchors()
    found.feed(page.read_text("utf-8"))
    return found


def built() -> list[Path]:
    return sorted(SITE.rglob("*.html"))


def dead_links(page: Path, site: Path) -> Iterator[str]:
    """Links of a page to what is not there; `site` is build/site, in which docs/ is.

    Other hosts are not asked.
    """
    here = site / "docs" / page.relative_to(SITE)
    for link in anchors(page).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        # Not resolved: the site is all links to files elsewhere.
        target = here if not parts.path else here.parent / unquote(parts.path)
        plain = Path(re.sub(r"(^|/)\./", r"\1", _normal(target)))
        if plain.is_dir():
            plain /= "index.html"
        page_of_ours = plain.suffix == ".html" and "docs" in plain.parts
        if not plain.exists() or (
            page_of_ours
            and parts.fragment
            and parts.fragment not in anchors(plain.resolve()).ids
        ):
            yield link


def _normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return str(Path(*parts))


@dataclass
class Fence:
    """A listing in a page's source."""

    page: str
    line: int  # of its first line of code
    language: str
    classes: frozenset[str]
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def sources() -> list[Path]:
    """Pages as they are written; those that are generated are tested where they are from."""
    skipped = {"CONVENTIONS.md"}
    return [
        path
        for path in [
            *sorted(SOURCE.rglob("*.md")),
            *sorted(PACKAGES.glob("*/docs/*.md")),
        ]
        if path.name not in skipped and "_tools" not in path.parts
    ]


def fences(path: Path) -> Iterator[Fence]:
    """Its listings, those inside of other directives among them."""
    lines = path.read_text("utf-8").split("\n")
    name = path.relative_to(ROOT).as_posix()
    at = 0
    while at < len(lines):
        found = re.match(r"^ *(`{3,})(.*)$", lines[at])
        at += 1
        if not found:
            continue
        marks, info = found[1], found[2].strip()
        directive = re.fullmatch(r"\{(code-block|code)\} *(\S*)", info)
        if info.startswith("{") and not directive:
            continue  # a directive whose content is text: listings may be in it
        begin = at
        while at < len(lines) and lines[at].strip() != marks:
            at += 1
        body = lines[begin:at]
        at += 1
        classes: set[str] = set()
        while directive and body and re.match(r"^ *:\w+:", body[0]):
            key, _, value = body.pop(0).strip()[1:].partition(":")
            begin += 1
            if key == "class":
                classes |= set(value.split())
        indent = min((len(s) - len(s.lstrip()) for s in body if s.strip()), default=0)
        code = "\n".join(line[indent:] for line in body).strip("\n")
        language = directive[2] if directive else info.split()[0] if info else ""
        yield Fence(name, begin + 1, language, frozenset(classes), code)


def all_fences(*languages: str) -> list[Fence]:
    return [
        fence
        for path in sources()
        for fence in fences(path)
        if fence.language in languages
    ]
