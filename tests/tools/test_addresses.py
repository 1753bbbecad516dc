"""Every address of the site stays: addresses.txt has those of our own files, and folders that are
built end in a slash."""

from collections.abc import Iterator
from pathlib import Path

import build_site
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
