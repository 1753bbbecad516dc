"""{repo}`path`: a file of the repository, as a link if its address is known. {site}`text <chain.html>`: a link
to a page of the site that is not documentation."""

from typing import Any

from docutils import nodes
from repository import ROOT, address
from sphinx.util.docutils import SphinxRole


def repo_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    try:
        target = address(text)
    except FileNotFoundError as error:
        told = inliner.reporter.error(str(error), line=lineno)
        return [inliner.problematic(rawtext, rawtext, told)], [told]
    shown = nodes.literal(text, text)
    return [nodes.reference("", "", shown, refuri=target) if target else shown], []


class SiteRole(SphinxRole):
    """A page of web/, which is above docs/ in the site."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        shown, _, target = self.text.rstrip(">").rpartition("<")
        file = target.split("#")[0].rstrip("/")
        built = {"index.html", "jupyterlite/lab/index.html"}
        # All are at the root of the site.
        parts = ("web/", "web/site/", "web/pages/*/", "packages/*/pages/")
        there = any(any(ROOT.glob(part + file)) for part in parts)
        if file not in built and not there:
            told = self.inliner.reporter.error(
                f"the site has no {file}", line=self.lineno
            )
            return [self.inliner.problematic(self.rawtext, self.rawtext, told)], [told]
        up = "../" * (self.env.docname.count("/") + 1)
        link = nodes.reference(self.rawtext, shown.strip(), refuri=up + target)
        return [link], []


def setup(app: Any) -> dict[str, bool]:
    app.add_role("repo", repo_role)
    app.add_role("site", SiteRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
