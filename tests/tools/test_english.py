"""`make check-english`: phrases it finds, and text that it does not look at."""

import subprocess
import sys

import check_english
import pytest


def found(markdown: str) -> list[tuple[int, str]]:
    return [(line, phrase) for line, phrase, _ in check_english.complaints(markdown)]


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Buffers are padded, so that kernels may read on.", "so that"),
        ("Read `data` anew.", "anew"),
        ("Bugs are mended in both.", "mended"),
        ("Use the loop of above.", "of above"),
        ("Want of memory is raised at the call.", "Want of"),
        ("The message names the way out.", "way out"),
        ("The memory is somebody else's.", "somebody else's"),
        ("## Buffers of others", "of others"),
        ("Using it is told so.", "is told"),
        ("WebGPU tells of it later.", "tells of"),
        ("Python waits by itself.", "by itself"),
        ("It is submitted. Who reads it waits.", "Who reads it waits."),
        ("A copy is made; who needs none says so.", "who"),
        ("Whatever copies it inherits it.", "Whatever"),
        ("Buffers are used again.", "used again"),
        ("All of it lies in memory.", "lies in"),
        ("That is the browser's affair.", "affair"),
        ("## What is it?", "## What is it?"),
    ],
)
def test_a_phrase_to_avoid_is_found(sentence, phrase):
    assert found(f"# Title\n\nA line.\n\n{sentence}\n") == [(5, phrase)]


def test_a_phrase_over_two_lines_is_found_where_it_begins():
    assert found("One.\n\nIt is packed, so\nthat it fits. Load it\nanew.") == [
        (3, "so that"),
        (5, "anew"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```text\nso that\n```",
        "````\n```\nso that\n```\n````",
        "- a list:\n\n  ```js\n  // so that\n  ```",
        "`so that`, and ``anew ` so that``",
        "[it](#so-that-anew), [a page](anew.md), <https://example.org/anew>",
        'Do not write "so that" or "tells\nof".',
        "<!-- so that -->",
        "The two are told apart, and a device is told to wait. Who is it? You are.",
    ],
)
def test_what_is_no_prose_is_not_looked_at(text):
    assert found(f"Text.\n\n{text}\n\nText.") == []


def test_notes_are_prose():
    assert found("```{note}\nPython waits\nby itself.\n```") == [(3, "by itself")]


def test_the_command_names_files_and_lines(tmp_path):
    def run():
        command = [sys.executable, check_english.__file__, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text("# Page\n\nRead it anew.\n", "utf-8")
    for unread in ("CHANGELOG.md", "build/page.md", "tests/bench/RESULTS.md"):
        (tmp_path / unread).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / unread).write_text("Read it anew.\n", "utf-8")
    bad = run()
    assert bad.returncode == 1
    assert bad.stdout == 'docs/page.md:3: "anew": write "again", or "a new one"\n'
    page.write_text("# Page\n\nRead it again.\n", "utf-8")
    good = run()
    assert (good.returncode, good.stdout) == (0, "1 documents in plain English\n")
