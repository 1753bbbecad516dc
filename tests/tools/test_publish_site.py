"""A static host gets the newest site, and the documentation of every version."""

import os
import tarfile
from pathlib import Path

import publish_site
import pytest
from publish_site import SiteError


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of links, as build_site.py lays it out."""
    parts = tmp_path / "parts"
    (parts / "docs" / "howto").mkdir(parents=True)
    (parts / "docs" / "index.html").write_text("new")
    (parts / "docs" / "howto" / "views.html").write_text("views")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "docs").symlink_to(parts / "docs")
    (tmp_path / "site" / "index.html").write_text("live")
    return tmp_path / "site"


def test_archives_say_nothing_of_their_maker(site, tmp_path):
    one = publish_site.pack(site, tmp_path / "one")
    os.utime(site / "docs" / "index.html", (1e9, 1e9))
    assert one.read_bytes() == publish_site.pack(site, tmp_path / "two").read_bytes()
    with tarfile.open(one) as archive:
        assert archive.getnames() == ["docs/howto/views.html", "docs/index.html"]


def test_every_version_has_its_documentation(site, tmp_path):
    old, out = tmp_path / "old", tmp_path / "out"
    made = publish_site.pack(site, old)
    for version in ("0.0.9", "0.0.10", "0.0.10rc1"):
        (old / f"dlpack-web-{version}-docs.tar.gz").write_bytes(made.read_bytes())
    made.unlink()  # that of this version is not published yet
    (old / "SHA256SUMS").write_text("")
    now = publish_site.version()
    expected = [now, "0.0.10", "0.0.10rc1", "0.0.9"]
    assert publish_site.lay_out(site, old, out) == expected
    for version in expected:
        assert (out / "v" / version / "docs" / "howto" / "views.html").is_file()
        assert f'"{version}/docs/index.html"' in (out / "v" / "index.html").read_text()
        assert '"../../index.html"' in (out / "v" / version / "index.html").read_text()
    assert (out / "index.html").read_text() == "live"
    assert not (out / "docs").is_symlink()
    with pytest.raises(SiteError, match="already exists"):
        publish_site.lay_out(site, old, out)


def test_a_site_without_documentation_is_refused(site, tmp_path):
    (site / "docs").unlink()
    with pytest.raises(SiteError, match="build them with `make docs`"):
        publish_site.pack(site, tmp_path / "out")
