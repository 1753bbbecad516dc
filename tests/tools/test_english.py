"""`make check-english`: phrases it finds, and text that it does not look at."""

import subprocess
import sys

import check_english
import pytest


def found(source: str, suffix: str = ".md") -> list[tuple[int, str]]:
    return [
        (line, phrase) for line, phrase, _ in check_english.complaints(source, suffix)
    ]


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
        ("It is no tensor.", "is no tensor"),
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
        "There are no tensors, and there is no copy. It is no longer there.",
    ],
)
def test_what_is_no_prose_is_not_looked_at(text):
    assert found(f"Text.\n\n{text}\n\nText.") == []


def test_notes_are_prose():
    assert found("```{note}\nPython waits\nby itself.\n```") == [(3, "by itself")]


@pytest.mark.parametrize(
    ("code", "line", "phrase"),
    [
        ("f(); // read anew", 1, "anew"),
        ("// It is packed, so\n// that it fits.", 1, "so // that"),
        ("/**\n * Packed, so\n * that it fits.\n */", 2, "so * that"),
        ("let x;\n/** Who waits is told. */", 2, "Who waits is told."),
        ("/* A.\n *\n * Whatever it is. */", 3, "Whatever"),
        ('f("read it anew")', 1, "anew"),
        ("f(`read ${x} anew`)", 1, "anew"),
        ("f(`${x ? `read ${y} anew` : 1}`)", 1, "anew"),
        ('f(\n  "so " +\n    `that ${x}`)', 2, 'so " + `that'),
        ('f("so "\n  "that")', 1, 'so " "that'),
        ('"a\\nway out"', 1, "way out"),
        ('x = a / b; // 1 / 2\n"anew"', 2, "anew"),
        ('if (/["/]`/.test(x)) {\n  /** Anew. */', 2, "Anew"),
    ],
)
@pytest.mark.parametrize("suffix", [".ts", ".mjs", ".c"])
def test_comments_and_literals_are_looked_at(code, line, phrase, suffix):
    complaints = found(code, suffix)
    assert (line, phrase) in complaints


@pytest.mark.parametrize(
    "code",
    [
        "const anew = so.that;",
        '// `anew` and "so that", https://example.org/anew',
        "f(`${anew}`, /so that/);",
        'f("so", "that");',
        "// so\nthat();",
    ],
)
def test_code_is_not_looked_at(code):
    assert found(code, ".ts") == []


@pytest.mark.parametrize(
    ("code", "line", "phrase"),
    [
        ('"""Read it anew."""', 1, "anew"),
        ('"""Who waits is told."""', 1, "Who waits is told."),
        ('def f():\n    """Packed, so\n    that it fits."""', 2, "so that"),
        ('# A comment.\n\n"""Whatever it is."""', 3, "Whatever"),
        ("class C:\n    r'''Read it anew.'''", 2, "anew"),
        ('def f():\n    """One.\n\n    >>> 1\n    1\n\n    Anew."""', 7, "Anew"),
        ("x = 1  # read anew", 1, "anew"),
        ("# It is packed, so\n# that it fits.", 1, "so # that"),
        ("x: int\n#: Whatever it is.\ny: int", 2, "Whatever"),
        ("x = '''\n#'''  # anew", 2, "anew"),
        ('raise ValueError("read it anew")', 1, "anew"),
        ('x = "read it anew"', 1, "anew"),
        ('x = f"anew"', 1, "anew"),
        ("x = f'''\n{y} anew'''", 2, "anew"),
        ('f(\n    x,\n    "so that"\n)', 3, "so that"),
        ('warn(\n    "It is packed, so "\n    "that it fits"\n)', 2, 'so " "that'),
        ('f"read {x} anew"', 1, "anew"),
        ('f"read it anew{x}"', 1, "anew"),
        ('f"{x}anew"', 1, "anew"),
        ('f"{x} so " f"that {y}"', 1, 'so " f"that'),
        ('f"{x["anew"]}"', 1, "anew"),
        ('f(f"{x}: the "\n"way out")', 2, "way out"),
        ('f(f"{x}: so"\n" that")', 1, 'so" " that'),
        ('"a\\nway out".strip()', 1, "way out"),
        ('hints = {\n    "T": "anew",\n}', 2, "anew"),
    ],
)
@pytest.mark.parametrize("suffix", [".py", ".pyi"])
def test_comments_docstrings_and_messages_of_python_are_looked_at(
    code, line, phrase, suffix
):
    assert (line, phrase) in found(code, suffix)


@pytest.mark.parametrize(
    "code",
    [
        "anew = so.that",
        'f("so", "that")',
        'f"{anew} {so.that}"',
        'f("so " + that)',
        'f"so {x}that"',
        'x = "so"  # that',
        "x = [  # so\n    'that']",
        'f("so", f"that")',
        '"""Quotes `anew` and "so that"."""',
        '"""Adds.\n\n>>> f()  # anew\n\'so that\'\n"""',
        "# so\nthat()",
    ],
)
def test_code_of_python_is_not_looked_at(code):
    assert found(code, ".py") == []


@pytest.mark.parametrize(
    ("page", "line", "phrase"),
    [
        ("<p>Read it anew.</p>", 1, "anew"),
        ("<p>\n  Packed, so\n  that it fits.</p>", 2, "so that"),
        ("<li>Who waits is told.</li>", 1, "Who waits is told."),
        ("<p>It is <a href='anew'>whole</a>; who reads it waits.</p>", 1, "who"),
        ('<a title="Read it anew">', 1, "anew"),
        ('<p\n  aria-label="Whatever it is">', 2, "Whatever"),
        ('<meta name="description"\n  content="Read it anew">', 2, "anew"),
        ('<a title="It"\n  class="x">Read it anew.</a>', 2, "anew"),
    ],
)
def test_texts_of_pages_are_looked_at(page, line, phrase):
    assert (line, phrase) in found(page, ".html")


@pytest.mark.parametrize(
    "page",
    [
        "<!-- anew -->",
        '<script type="module">\n// anew\n</script>',
        "<p>Write <code>anew</code>, and <kbd>so that</kbd>.</p>",
        '<a class="so that" title="It" id="anew">',
        "<p class=\"anew\" id='so that'>It is packed, so</p><p>that is all.</p>",
    ],
)
def test_markup_is_not_looked_at(page):
    assert found(page, ".html") == []


def test_the_command_names_files_and_lines(tmp_path):
    def run():
        command = [sys.executable, check_english.__file__, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text("# Page\n\nRead it anew.\n", "utf-8")
    for unread in (
        "build/page.md",
        "tests/bench/RESULTS.md",
        "js/x.ts",
        "js/x.mjs",
        "wasm/toolchain/x.c",
        "tests/x.py",
        "py/setup.py",
        "tests/x.html",
        "requirements.txt",
    ):
        (tmp_path / unread).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / unread).write_text("Read it anew.\n", "utf-8")
    bad = run()
    assert bad.returncode == 1
    assert bad.stdout == 'docs/page.md:3: "anew": write "again", or "a new one"\n'
    for read in (
        *("js/src/core/x.ts", "wasm/x.c", "wasm/example/x.h", "web/x/y.mjs"),
        *(
            "py/dlpack_web/_files/x.py",
            "py/dlpack_web/x.pyi",
            "tools/x.py",
            "web/x/y.py",
        ),
    ):
        source = tmp_path / read
        mark = "#" if ".py" in source.suffix else "//"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"{mark} Read it anew.\n", "utf-8")
        assert f'{read}:1: "anew"' in run().stdout
        source.unlink()
    for read in (
        *("web/pages/x/x.html", "examples/x/x.html", "tests/kit/README.txt"),
        ".github/ISSUE_TEMPLATE/x.yml",
    ):
        source = tmp_path / read
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("Read it anew.\n", "utf-8")
        assert f'{read}:1: "anew"' in run().stdout
        source.unlink()
    page.write_text("# Page\n\nRead it again.\n", "utf-8")
    good = run()
    assert (good.returncode, good.stdout) == (0, "1 files in plain English\n")
