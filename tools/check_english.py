#!/usr/bin/env python3
"""check_english.py [ROOT]: phrases to avoid in documents and sources, each with what to write instead.

Checks the prose of Markdown files, and the comments and string literals (messages) of js/src, the
C core, py/dlpack_web, tools and web. Exempt are code, link targets, addresses, comments of
Markdown, text in double quotes (a word that is quoted), and files that are generated from other
sources.
"""

import os
import re
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path, PurePosixPath

from english_pages import page_texts

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ("py", "dlpack_web")
NOT_OURS = {".git", "build", "dist", "node_modules"}
ALSO_READ = (".github/ISSUE_TEMPLATE/*.yml", "tests/kit/README.txt")
NOT_READ = (
    "tests/*/RESULTS.md",
    "tests/foreign/ARRAYS.md",
    "tests/interop/ONNX.md",
    "web/docs/reference/arrays.md",
    "web/docs/reference/onnxruntime.md",
)

# Pattern -> what to write. A space in a pattern is any white space, so phrases that are broken over
# two lines are found, too. Upper case matters only in (?-i:...).
PHRASES = {
    r"\bso that\b": '"so", or two sentences',
    r"\banew\b": '"again", or "a new one"',
    r"\bmend(?:s|ed|ing)?\b": '"fix"',
    r"\bof above\b": '"above", or name it',
    r"(?-i:\bWant of\b)|\b(?:for|or|the) want of\b": '"missing", "out of memory"',
    r"\bway out\b": "what to do instead",
    r"\bsomebody else(?:'s)?\b": "who it is, or what it is",
    r"\bof others\b": "whose: another library's, existing ones",
    r"\b(?:is|are|was|were) (?:not )?told\b(?! (?:apart|to)\b)": '"raises", "reports"',
    r"\btells? of\b": '"reports"',
    r"\bby (?:itself|themselves)\b": '"automatically", "alone"',
    r"(?:^\s*(?:[-*>] )?|[.!?:] )(?-i:Who) (?:[^.?!\n]|\n(?!\n))*\.": 'who acts: "you", "the consumer"',
    r"(?<=;) who\b": 'who acts: "you", "the consumer"',
    r"(?-i:\bWhatever )": '"all that", "anything that"',
    r"\bused again\b": '"reused"',
    r"\blies? (?:in|at|on|over|beside)\b": '"is stored", "is"',
    r"\blies? one after the other\b": '"contiguous"',
    r"\baffair\b": "who handles it",
    r"(?<!\bthere\s)\b(?:is|are) no (?!(?:longer|more|such)\b)\w+": '"is not a"',
    r"^#+ [^\n]*\?$": "a heading that names the task or the thing",
}
PATTERNS = {
    re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE | re.MULTILINE): instead
    for phrase, instead in PHRASES.items()
}

FENCE = re.compile(r"[ >]*(?P<marks>`{3,}|~{3,})(?P<info>.*)")
WITH_PROSE = ("{note}", "{warning}")
# Within a paragraph: no pair of marks reaches over an empty line.
NOT_PROSE = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"(?<=\])\([^)\n]*\)"),
    re.compile(r"<?https?://\S+"),
    re.compile(r'"(?:(?!\n\s*\n)[^"]){1,80}"'),
)


def blank(found: re.Match[str]) -> str:
    """As many characters and lines, without words."""
    return re.sub(r"[^\n]", "_", found[0])


def without_fences(lines: list[str]) -> Iterator[str]:
    opened: list[tuple[str, bool]] = []  # marks, and whether prose is inside
    for line in lines:
        fence = FENCE.match(line)
        inside = not opened or opened[-1][1]
        if opened and fence and fence["marks"].startswith(opened[-1][0]):
            if not fence["info"].strip():
                opened.pop()
        elif fence and inside:
            opened.append((fence["marks"], fence["info"].startswith(WITH_PROSE)))
        yield "_" * len(line) if fence or not inside else line


def prose(markdown: str) -> str:
    """The text with all that is not prose blanked out; positions stay."""
    text = "\n".join(without_fences(markdown.split("\n")))
    for pattern in NOT_PROSE:
        text = pattern.sub(blank, text)
    return text


# TypeScript, JavaScript and C. Regular expressions are tokens because they may contain quotes and slashes.
INTERPOLATION = r"\$\{(?:[^{}`]|\{[^{}]*\}|`[^`]*`)*\}"
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    rf"|(?P<template>`(?:\\.|{INTERPOLATION}|[^`\\])*`)"
    r"|(?<=[(=,:!&|?;\[{])\s*(?P<regex>/(?![*/])(?:\[(?:\\.|[^\]\\\n])*\]|\\.|[^/\[\\\n])+/)",
    re.DOTALL,
)
JOINS = {"comment": re.compile(r"\s*"), "string": re.compile(r"[\s+]*")}
COMMENT_MARK = re.compile(r"^[ \t]*(?:/\*\*?|\*(?!/)|//)|\*/$", re.MULTILINE)


def without_words(code: str) -> str:
    return re.sub(r"[^\n]", "_", code)


def spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def texts(code: str) -> str:
    """The comments and string literals, all else blanked out; positions stay. Consecutive line
    comments, and literals that are joined by + or by nothing, are one text."""
    parts: list[str] = []
    end = 0
    before = ""
    for token in TOKEN.finditer(code):
        kind = "string" if token["template"] else token.lastgroup or ""
        between = code[end : token.start()]
        joined = kind == before in JOINS and JOINS[kind].fullmatch(between)
        parts.append(spaces(between) if joined else without_words(between))
        if token["comment"]:
            parts.append(comment_text(token[0], "" if joined else "."))
        elif kind == "string":
            parts.append(literal_text(token[0]))
        else:
            parts.append(without_words(token[0]))
        end = token.end()
        before = kind
    parts.append(without_words(code[end:]))
    return "".join(parts)


def comment_text(comment: str, first: str) -> str:
    """`first` takes the place of the comment's mark: a full stop before its first sentence."""
    text = COMMENT_MARK.sub(lambda mark: spaces(mark[0]), comment)
    for pattern in NOT_PROSE:
        text = pattern.sub(blank, text)
    return first + text[len(first) :]


def literal_text(literal: str) -> str:
    """Its words, and those of literals within what it interpolates."""
    text = re.sub(r"\\[nrt]", "  ", literal[1:-1])
    if literal[0] == "`":
        text = re.sub(INTERPOLATION, lambda code: f"__{texts(code[0][2:-1])}_", text)
    return f" {text} "


EXAMPLE = re.compile(r"^[ \t]*>>>.*(?:\n[ \t]*\S.*)*", re.MULTILINE)
PYTHON_MARK = re.compile(
    r"^[ \t]*#:?|\A[a-zA-Z]*(?:\"{3}|')|(?:\"{3}|')\Z", re.MULTILINE
)
QUOTES = r"(?:\"{3}|'{3}|\"|')"
LITERAL_MARK = re.compile(rf"\A[a-zA-Z]*{QUOTES}|{QUOTES}\Z")
PYTHON_JOINS = {
    "comment": re.compile(r"\s+"),
    "message": re.compile(rf"{QUOTES}?\s*(?:[a-zA-Z]*{QUOTES})?"),
}
BEFORE_STATEMENT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
BETWEEN_LINES = (tokenize.NL, tokenize.COMMENT)


def python_texts(code: str) -> str:
    """The comments, docstrings and other string literals, all else blanked out; positions
    stay. Comments on consecutive lines are one text, and so are adjacent literals. A
    docstring is any string that is a statement."""
    starts = [0]
    for line in code.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    parts: list[str] = []
    end = 0
    before = ""
    for start, stop, kind in python_prose(code):
        first, last = (starts[row - 1] + column for row, column in (start, stop))
        between = code[end:first]
        joins = PYTHON_JOINS.get(kind) if kind == before else None
        joined = joins is not None and joins.fullmatch(between)
        parts.append(spaces(between) if joined else without_code(between))
        text = python_text(code[first:last], kind)
        parts.append(text if joined or kind == "message" else f".{text[1:]}")
        end, before = last, kind
    parts.append(without_code(code[end:]))
    return "".join(parts)


def without_code(code: str) -> str:
    """As without_words; but what delimits the parts of an f-string is blank."""
    marks = re.match(r"[\"'{]*", code), re.search(r"[\"'}]*\Z", code)
    first, last = (len(mark[0]) if mark else 0 for mark in marks)
    words = without_words(code)
    return f"{' ' * first}{words[first : len(code) - last]}{' ' * last}"[: len(code)]


Position = tuple[int, int]


def python_prose(code: str) -> Iterator[tuple[Position, Position, str]]:
    """Start, end and kind of each comment, docstring and other literal ("message"). Of an
    f-string, the parts between its interpolations."""
    tokens = list(tokenize.generate_tokens(StringIO(code).readline))
    begins = True
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end, "comment"
        elif token.type == tokenize.STRING:
            alone = begins and after.type == tokenize.NEWLINE
            yield token.start, token.end, "docstring" if alone else "message"
        elif token.type == tokenize.FSTRING_MIDDLE:
            yield token.start, token.end, "message"
        if token.type not in BETWEEN_LINES:
            begins = token.type in BEFORE_STATEMENT


def python_text(text: str, kind: str) -> str:
    """Without its marks and, but for messages, without its examples, code and quotes."""
    if kind == "message":
        text = LITERAL_MARK.sub(lambda mark: spaces(mark[0]), text)
        return re.sub(r"\\[nrt]", "  ", text)
    text = PYTHON_MARK.sub(lambda mark: spaces(mark[0]), text)
    for pattern in (EXAMPLE, *NOT_PROSE):
        text = pattern.sub(blank, text)
    return text


TEXTS = {".md": prose, ".py": python_texts, ".pyi": python_texts}
TEXTS |= {".html": page_texts, ".txt": prose, ".yml": prose}


def complaints(source: str, suffix: str = ".md") -> Iterator[tuple[int, str, str]]:
    """Line, phrase and replacement, in the order of the text."""
    text = TEXTS.get(suffix, texts)(source)
    found = [
        (match.end() - len(match[0].lstrip(".!?:-*> \n")), match, instead)
        for pattern, instead in PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    for start, match, instead in sorted(found, key=lambda each: each[0]):
        phrase = " ".join(source[start : match.end()].split())
        yield text.count("\n", 0, start) + 1, phrase, instead


def is_read(path: PurePosixPath) -> bool:
    if path.suffix == ".html":
        return path.parts[0] in ("examples", "web")
    if any(path.match(pattern) for pattern in ALSO_READ):
        return True
    if path.suffix == ".md":
        return not any(path.match(pattern) for pattern in NOT_READ)
    if path.suffix == ".ts":
        return path.parts[:2] == ("js", "src")
    if path.suffix == ".mjs":
        return path.parts[0] in ("tools", "web")
    if path.suffix in (".py", ".pyi"):
        return path.parts[0] in ("tools", "web") or path.parts[:2] == PACKAGE
    return (
        path.suffix in (".c", ".h")
        and path.parts[0] == "wasm"
        and ("toolchain" not in path.parts)
    )


def documents(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in NOT_OURS and not name.endswith("_cache")
        )
        for name in sorted(names):
            path = PurePosixPath((Path(folder) / name).relative_to(root).as_posix())
            if is_read(path):
                yield root / path


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    files = count = 0
    for document in documents(root):
        files += 1
        name = document.relative_to(root).as_posix()
        for line, phrase, instead in complaints(
            document.read_text("utf-8"), document.suffix
        ):
            count += 1
            print(f'{name}:{line}: "{phrase}": write {instead}')
    if count:
        sys.exit(
            f"{count} phrases to avoid; `code` and text in double quotes are exempt"
        )
    print(f"{files} files in plain English")


if __name__ == "__main__":
    main()
