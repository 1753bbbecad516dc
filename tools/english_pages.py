"""The texts of HTML pages, for check_english.py."""

import re

NOT_TEXT = re.compile(r"<!--.*?-->|<(script|style|pre|code|kbd)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"</?\w(?:\"[^\"]*\"|'[^']*'|[^>\"'])*>")
ATTRIBUTE = re.compile(r"\b(?:alt|aria-label|content|placeholder|title)=\"([^\"]*)\"")


def page_texts(page: str) -> str:
    """What a reader sees or hears, all else blanked out; positions stay."""
    text = NOT_TEXT.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), page)
    return TAG.sub(tag_texts, text)


def tag_texts(tag: re.Match[str]) -> str:
    """Its attributes that are text. Sentences do not continue over a tag."""
    parts = []
    end = 0
    for attribute in ATTRIBUTE.finditer(tag[0]):
        parts += [end_of_sentence(tag[0][end : attribute.start(1)]), attribute[1]]
        end = attribute.end(1)
    return "".join([*parts, end_of_sentence(tag[0][end:])])


def end_of_sentence(markup: str) -> str:
    return "." + re.sub(r"[^\n]", " ", markup[1:])
