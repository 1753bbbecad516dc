"""Writes search.json for _static/search.mjs: each section, function and class of the pages, and the
words of search.toml by which readers ask for a page."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from repository import ROOT
from sphinx import addnodes

NUMBER = re.compile(r"id\d+")
SKIPPED = (nodes.raw, nodes.comment, nodes.system_message, nodes.title)
ASKED = [Path(__file__).with_name("search.toml")]
ASKED += sorted((ROOT / "packages").glob("*/docs/search.toml"))


def text_of(node: nodes.Node) -> str:
    """The text below a node, without what has an entry of its own."""
    if isinstance(node, nodes.Text):
        return str(node)
    parts = [
        text_of(n) for n in node.children if not (is_apart(n) or isinstance(n, SKIPPED))
    ]
    return ("" if isinstance(node, nodes.TextElement) else " ").join(parts)


def is_apart(node: nodes.Node) -> bool:
    """Whether it has an entry: TypeDoc's headings, such as Returns, have numbers for names."""
    if isinstance(node, nodes.section):
        return not NUMBER.fullmatch(node["ids"][0])
    return isinstance(node, addnodes.desc) and bool(node[0]["ids"])


def entries(doctree: nodes.document, page: str) -> Iterator[dict[str, str]]:
    for node in doctree.findall(is_apart):
        if isinstance(node, nodes.section):
            title, body = node[0].astext(), node
        else:
            node, body = node[0], node[-1]
            title = node["fullname"]
        text = " ".join(text_of(body).split())
        yield {"page": page, "anchor": node["ids"][0], "title": title, "text": text}


def write(app: Any, exception: Exception | None) -> None:
    if exception:
        return
    found = []
    for page in sorted(app.env.found_docs):
        found += entries(app.env.get_doctree(page), page)
    asked = [
        each
        for file in ASKED
        for each in tomllib.loads(file.read_text("utf-8")).items()
    ]
    for page, phrases in asked:
        if page not in app.env.found_docs:
            raise ValueError(f"search.toml: there is no page {page}")
        found += ({"page": page, "title": phrase} for phrase in phrases)
    target = Path(app.outdir) / "search.json"
    target.write_text(json.dumps(found, ensure_ascii=False), "utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write)
    # Sphinx's own search needs all words of a query, as they are.
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
