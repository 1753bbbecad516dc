"""Makes built pages comply with the policy of web/serve.py: no scripts, styles or
handlers inside pages. Those of the theme are moved into files, unchanged and in their
place. And makes wide elements scrollable by keyboard, names the theme's landmarks,
gives each page a heading, and makes cells of empty headers."""

import hashlib
import json
import re
from pathlib import Path

from bs4 import BeautifulSoup

LEFT = re.compile(
    r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|<pre>|class=\"table-wrapper[^>]*\">"
    r"|<aside class=\"[a-z -]+\">|<th[^>]*>(<p>)?</"
)
# A page has several of them: screen readers list them by these names.
LANDMARKS = {"aside.sidebar-drawer": "Documentation", "aside.toc-drawer": "This page"}
DATA = {"application/json", "application/ld+json", "importmap"}


class Mover:
    """Moves inline scripts and styles of the pages of a site into files beside them."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.styles: dict[str, str] = {}  # class -> declarations of a style attribute

    def page(self, path: Path) -> None:
        text = path.read_text("utf-8")
        if not LEFT.search(text):
            return  # unchanged since the last time
        soup = BeautifulSoup(text, "html.parser")
        up = "../" * (len(path.relative_to(self.site).parts) - 1)
        changed = False
        for script in soup.find_all("script", src=False):
            if script.get("type") in DATA:
                continue
            name = self._keep(script.string or "", "js")
            script.string = ""
            script["src"] = f"{up}_static/{name}"
            changed = True
        for style in soup.find_all("style"):
            link = soup.new_tag("link", rel="stylesheet")
            link["href"] = f"{up}_static/{self._keep(style.string or '', 'css')}"
            style.replace_with(link)
            changed = True
        for element in soup.find_all(style=True):
            element["class"] = [*element.get("class", []), self._rule(element["style"])]
            del element["style"]
            changed = True
        if self.styles and soup.find(class_=list(self.styles)) and soup.head:
            link = soup.new_tag("link", rel="stylesheet", href=f"{up}_static/moved.css")
            soup.head.append(link)
        for element in soup.find_all(
            lambda each: any(k.startswith("on") for k in each.attrs)
        ):
            raise ValueError(f"{path}: {element.name} has a handler of events inline")
        for element in soup.select("pre, .table-wrapper"):
            element["tabindex"] = "0"
            changed = True
        for selector, name in LANDMARKS.items():
            for element in soup.select(selector):
                element["aria-label"] = name
                changed = True
        for header in soup.find_all("th"):
            if not header.get_text(strip=True):
                header.name = "td"
                changed = True
        main = soup.select_one("[role=main]")
        if main and soup.title and not soup.find("h1"):  # the search page
            heading = soup.new_tag("h1")
            heading.string = soup.title.get_text().partition(" - ")[0]
            main.insert(0, heading)
            changed = True
        if changed:
            path.write_text(str(soup), "utf-8")

    def finish(self) -> None:
        rules = "".join(f".{k} {{ {v} }}\n" for k, v in sorted(self.styles.items()))
        (self.site / "_static" / "moved.css").write_text(rules, "utf-8")

    def _keep(self, text: str, suffix: str) -> str:
        name = f"moved-{hashlib.sha256(text.encode()).hexdigest()[:10]}.{suffix}"
        (self.site / "_static" / name).write_text(text, "utf-8")
        return name

    def _rule(self, declarations: str) -> str:
        name = f"moved-{hashlib.sha256(declarations.encode()).hexdigest()[:10]}"
        self.styles[name] = declarations
        return name


def make_strict(site: Path) -> None:
    """Every page of a built site. Styles of attributes are kept for the next time, when
    only changed pages are built."""
    kept = site / "_static" / "moved.json"
    mover = Mover(site)
    if kept.is_file():
        mover.styles = json.loads(kept.read_text("utf-8"))
    for path in sorted(site.rglob("*.html")):
        mover.page(path)
    mover.finish()
    kept.write_text(json.dumps(mover.styles, indent=1, sort_keys=True), "utf-8")
