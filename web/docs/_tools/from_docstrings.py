"""Docstrings as reStructuredText: plain sentences, in which * and | have no meaning."""

import re
from typing import Any

MARKS = re.compile(r"(?<![`\\])(\*|\||(?<=\w)_(?=\W|$))")
# Code, and what the list of parameters makes of numpydoc's "optional".
CODE = re.compile(r"(`+[^`]+`+|\*optional\*)")


def escaped(line: str) -> str:
    """A line with its marks escaped, except in `code`."""
    parts = CODE.split(line)
    return "".join(
        part if part.startswith(("`", "*optional*")) else MARKS.sub(r"\\\1", part)
        for part in parts
    )


def read(
    _app: Any, _what: str, _name: str, _thing: object, _options: Any, lines: list[str]
) -> None:
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[i] = escaped(line)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
