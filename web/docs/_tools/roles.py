"""{repo}`path`: a link to a file of the repository."""

from typing import Any

from docutils import nodes
from repository import address


def repo_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    try:
        link = nodes.reference(rawtext, "", refuri=address(text))
    except FileNotFoundError as error:
        told = inliner.reporter.error(str(error), line=lineno)
        return [inliner.problematic(rawtext, rawtext, told)], [told]
    link += nodes.literal(text, text)
    return [link], []


def setup(app: Any) -> dict[str, bool]:
    app.add_role("repo", repo_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
