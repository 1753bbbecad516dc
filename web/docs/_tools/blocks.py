"""Turns Python blocks of pages into runnable blocks, for _static/run/page.mjs.

These are ```python fences, unless their class is `desktop` or `shown`. The page states
for each its position in the source, so a failing test can name it, too.
"""

import ast
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from repository import SOURCE
from sphinx.transforms.post_transforms import SphinxPostTransform

NOT_RUN = {"desktop", "shown"}
BAR = """\
<div class="python-bar" role="group" aria-label="Python on this page">
<span class="python-state" role="status">Blocks run here, in one Python for the page.</span>
<span class="python-acts"><button type="button" class="run-all" disabled>Run all</button>
<button type="button" class="restart" disabled>Restart</button></span>
</div>
"""
BEFORE = '<div class="block" data-source="{source}" data-line="{line}"{flags}>\n'
AFTER = """\
<div class="acts"><button type="button" class="run" disabled>Run</button>
<button type="button" class="edit" disabled>Edit</button>
<button type="button" class="copy" disabled>Copy</button>
<a class="open" href="{up}jupyterlite/notebooks/index.html?path=docs/{page}.ipynb">Open in JupyterLite</a>
<span class="state" role="status"></span></div>
<div class="outputs" role="group" aria-label="Output" hidden></div>
</div>
"""


def is_run(node: nodes.literal_block) -> bool:
    classes = set(node.get("classes", [])) | set(
        node.parent.get("classes", []) if node.parent else []
    )
    return node.get("language") == "python" and not classes & NOT_RUN


def need_gpu(codes: list[str]) -> Iterator[bool]:
    """Whether each block of a page uses a GPU, or a name that such a block has bound."""
    theirs: set[str] = set()
    for code in codes:
        try:
            tree = list(ast.walk(ast.parse(code)))
        except SyntaxError:  # of notebooks (%pip), or on purpose
            yield False
            continue
        names = [node for node in tree if isinstance(node, ast.Name)]
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        bound |= {
            node.name
            for node in tree
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        needs = "webgpu" in code or not theirs.isdisjoint(used)
        theirs = theirs | bound if needs else theirs - bound
        yield needs


class Runnable(SphinxPostTransform):
    """Puts the buttons around each block, and the bar of the page before the first."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: Any) -> None:
        blocks = [n for n in self.document.findall(nodes.literal_block) if is_run(n)]
        page = self.env.docname
        up = "../" * (page.count("/") + 1)
        needing = need_gpu([block.astext() for block in blocks])
        for i, (block, gpu) in enumerate(zip(blocks, needing, strict=True)):
            source, line = self._place(block)
            flags = " data-raises" if "raises" in block.get("classes", []) else ""
            flags += " data-gpu" if gpu else ""
            before = BEFORE.format(source=escape(source), line=line, flags=flags)
            if i == 0:
                before = BAR + before
            block["classes"].append("python-block")
            parent, at = block.parent, block.parent.index(block)
            parent.insert(at, nodes.raw("", before, format="html"))
            after = AFTER.format(up=up, page=escape(page))
            parent.insert(at + 2, nodes.raw("", after, format="html"))

    def _place(self, block: nodes.literal_block) -> tuple[str, int]:
        source = Path(block.source or self.env.doc2path(self.env.docname))
        if source.is_relative_to(SOURCE):
            source = source.relative_to(SOURCE)
        return source.as_posix(), block.line or 0


def setup(app: Any) -> dict[str, int]:
    app.add_post_transform(Runnable)
    # Another text of this file makes Sphinx write all pages again.
    version = zlib.crc32(Path(__file__).read_bytes())
    parallel = {"parallel_read_safe": True, "parallel_write_safe": True}
    return parallel | {"env_version": version}
