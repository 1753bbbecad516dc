"""Every address of the site stays: addresses.txt has those of our own files, and folders that are
built end in a slash."""

from collections.abc import Iterator
from pathlib import Path

import build_site
import pytest
from quick import ROOT, git

LIST = Path(__file__).with_name("addresses.txt")


def addresses() -> Iterator[str]:
    ours = set(git("ls-files", "--cached", "--others", "--exclude-standard"))
    for address, target in build_site.contents().items():
        if address.startswith("pyodide"):
            continue  # of node_modules: its versions are their packages' own
        file = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else ""
        below = [each for each in ours if file and each.startswith(f"{file}/")]
        if below:
            yield from (f"{address}{each.removeprefix(file)}" for each in below)
        else:
            yield address if target.is_file() else f"{address}/"


def test_no_address_of_the_site_is_lost_or_new():
    assert sorted(addresses()) == LIST.read_text().split(), (
        "links to these addresses are out there; "
        "write new ones into tests/tools/addresses.txt"
    )


def test_two_files_of_one_address_are_refused(tmp_path, monkeypatch):
    for name in ("site", "pages/a", "pages/b"):
        (tmp_path / "web" / name).mkdir(parents=True)
    (tmp_path / "web" / "pages" / "a" / "one.mjs").write_text("")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    assert build_site.ours()["one.mjs"] == tmp_path / "web" / "pages" / "a" / "one.mjs"
    for folder in ("site", "pages/b"):
        (tmp_path / "web" / folder / "one.mjs").write_text("")
        with pytest.raises(SystemExit, match=r"one\.mjs .*have one address"):
            build_site.ours()
        (tmp_path / "web" / folder / "one.mjs").unlink()
