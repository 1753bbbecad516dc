#!/usr/bin/env python3
"""check_english.py [ROOT]: phrases that the documents avoid, each with what to write instead.

Looks at the prose of Markdown files. Not looked at: code, link targets, addresses, comments, text in
double quotes (a word that is spoken about), and files that are generated from other sources.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {".git", "build", "dist", "node_modules"}
NOT_READ = (
    "CHANGELOG.md",
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
    r"(?:^(?:[-*>] )?|[.!?:] )(?-i:Who) (?:[^.?!\n]|\n(?!\n))*\.": 'who acts: "you", "the consumer"',
    r"(?<=;) who\b": 'who acts: "you", "the consumer"',
    r"(?-i:\bWhatever )": '"all that", "anything that"',
    r"\bused again\b": '"reused"',
    r"\blies? (?:in|at|on|over|beside)\b": '"is stored", "is"',
    r"\blies? one after the other\b": '"contiguous"',
    r"\baffair\b": "who handles it",
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


def complaints(markdown: str) -> Iterator[tuple[int, str, str]]:
    """Line, phrase and replacement, in the order of the text."""
    text = prose(markdown)
    found = [
        (match.end() - len(match[0].lstrip(".!?:-*> \n")), match, instead)
        for pattern, instead in PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    for start, match, instead in sorted(found, key=lambda each: each[0]):
        phrase = " ".join(markdown[start : match.end()].split())
        yield text.count("\n", 0, start) + 1, phrase, instead


def documents(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in NOT_OURS and not name.endswith("_cache")
        )
        for name in sorted(names):
            path = PurePosixPath((Path(folder) / name).relative_to(root).as_posix())
            read = not any(path.match(pattern) for pattern in NOT_READ)
            if path.suffix == ".md" and read:
                yield root / path


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    files = count = 0
    for document in documents(root):
        files += 1
        name = document.relative_to(root).as_posix()
        for line, phrase, instead in complaints(document.read_text("utf-8")):
            count += 1
            print(f'{name}:{line}: "{phrase}": write {instead}')
    if count:
        sys.exit(
            f"{count} phrases to avoid; text in `code` or double quotes is not looked at"
        )
    print(f"{files} documents in plain English")


if __name__ == "__main__":
    main()
