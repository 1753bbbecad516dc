"""Lays out build/docs/source: the pages, and the files that they include from elsewhere
in the repository.

Files of the repository keep their text; their links lead to a page of the documentation
if there is one, else to the repository. Only changed files are written, because Sphinx
reads newer ones again.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import tables
from repository import ROOT, SOURCE, address

WEB = ROOT / "web"
# File of the repository -> its page.
PAGES = {
    "js/KERNELS.md": "reference/kernels.md",
    "tests/bench/GPU.md": "reference/gpu-figures.md",
    "tests/bench/RESULTS.md": "reference/benchmarks.md",
    "tests/interop/RESULTS.md": "reference/interop.md",
    "web/RUNTIMES.md": "reference/runtimes.md",
    "CHANGELOG.md": "reference/changelog.md",
    # Texts of packages beside their pages.
    **{
        file.relative_to(ROOT).as_posix(): f"packages/{file.stem.lower()}.md"
        for file in (ROOT / "packages").glob("*/*.md")
        if file.name != "README.md"
    },
}
PICTURES = {
    "tests/bench/results.svg": "_static/results.svg",
    "web/site/icon.svg": "_static/icon.svg",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
OF_PACKAGE = re.compile(r"(?<=\]\()\.\./(packages/[\w-]+\.md)(#[\w-]+)?(?=\))")


def relative(target: str, page: str) -> str:
    """A link from one page to another file of the documentation."""
    up = len(PurePosixPath(page).parts) - 1
    return "../" * up + target


def taken_over(path: str, page: str) -> str:
    """The text of a repository file for a page."""

    def lead(match: re.Match[str]) -> str:
        image, shown, link = match.groups()
        target, _, heading = link.partition("#")

        def to(place: str) -> str:
            return f"{image}[{shown}]({place})" if place else shown

        there = PurePosixPath(path).parent / target
        file = Path(ROOT / there).resolve()
        if not file.exists():
            return match[0]  # code that looks like a link; a dead link fails later
        whole = file.relative_to(ROOT).as_posix()
        end = f"#{heading}" if heading else ""
        if whole in PAGES:
            return to(relative(PAGES[whole], page) + end)
        if whole.startswith("web/docs/"):
            return to(relative(whole.removeprefix("web/docs/"), page) + end)
        if re.fullmatch(r"packages/\w+/docs/[\w-]+\.md", whole):
            return to(relative(f"packages/{file.name}", page) + end)
        if whole in PICTURES:
            return to(relative(PICTURES[whole], page))
        return to(address(whole) and address(whole) + end)

    text = (ROOT / path).read_text("utf-8")
    head = WEB / "docs" / page.replace(".md", ".head.md")
    # The title and words before; what follows is without its own title.
    if head.is_file():
        text = head.read_text("utf-8") + re.sub(r"\A# .*\n", "", text)
    return LINK.sub(lead, text)


def wanted() -> Iterator[tuple[str, bytes]]:
    """Path in Sphinx's input folder, and its content."""
    pages = {file.name: file for file in (ROOT / "packages").glob("*/docs/*.md")}
    of_packages = {*PAGES.values(), *(f"packages/{name}" for name in pages)}

    def there(match: re.Match[str]) -> str:
        """Instead of a page of a package that was removed, the list of packages."""
        return match[0] if match[1] in of_packages else "../packages/index.md"

    for file in sorted((WEB / "docs").rglob("*")):
        path = file.relative_to(WEB / "docs")
        hidden = path.parts[0] == "_tools" or "__pycache__" in path.parts
        if file.suffix == ".md" and not hidden and not path.name.endswith(".head.md"):
            text = OF_PACKAGE.sub(there, file.read_text("utf-8"))
            yield path.as_posix(), text.encode()
        elif file.is_file() and not hidden and file.suffix != ".md":
            yield path.as_posix(), file.read_bytes()
    for name, file in sorted(pages.items()):
        yield f"packages/{name}", file.read_bytes()
    for source, page in PAGES.items():
        yield page, taken_over(source, page).encode()
    for source, picture in PICTURES.items():
        yield picture, (ROOT / source).read_bytes()
    for page, text in tables.pages().items():
        yield page, text.encode()


def prepare() -> None:
    """Updates build/docs/source; typescript/ is TypeDoc's (typescript.py)."""
    there = {f for f in SOURCE.rglob("*") if f.is_file()}
    there -= set((SOURCE / "reference" / "typescript").rglob("*"))
    for path, content in wanted():
        file = SOURCE / path
        there.discard(file)
        if file.is_file() and file.read_bytes() == content:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for file in there:
        file.unlink()


if __name__ == "__main__":
    shutil.rmtree(SOURCE, ignore_errors=True)
    prepare()
