"""What keeps something from being a release is told, and archives say nothing of their maker."""

import io
import json
import re
import tarfile
import tomllib
from pathlib import Path

import pytest
import release
from release import ReleaseError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path):
    """The files that a release is checked by."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def change(project, name, old, new):
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new, 1))


def test_the_version_is_written_by_hand_once():
    """`make generate` writes the others."""
    version = release.check_version(ROOT)
    generate = (ROOT / "tools/generate.py").read_text()
    for folder in ("js/src", "py", "wasm"):
        for file in (ROOT / folder).rglob("*.*"):
            name = str(file.relative_to(ROOT))
            if (
                file.suffix in (".ts", ".py", ".c", ".h", ".sh")
                and name not in generate
            ):
                assert f'"{version}"' not in file.read_text(), name


def test_a_tag_needs_its_own_section(project):
    version = release.check_version(project)
    with pytest.raises(ReleaseError, match=r"v9\.9\.9 is not v"):
        release.check_version(project, "v9.9.9")
    with pytest.raises(ReleaseError, match="YYYY-MM-DD"):
        release.check_version(project, f"v{version}")
    change(project, "CHANGELOG.md", "## Unreleased", f"## {version} (2030-01-02)")
    with pytest.raises(
        ReleaseError, match=r"only a placeholder: run `python tools.release.py address`"
    ):
        release.check_version(project, f"v{version}")
    change(project, "pyproject.toml", release.UNSETTLED, "https://example.com/a/b")
    assert release.check_version(project, f"v{version}") == version
    assert release.check_version(project) == version
    change(project, "CHANGELOG.md", f"## {version}", "## 0.0.1")
    with pytest.raises(ReleaseError, match="begins with neither"):
        release.check_version(project)


def test_every_place_has_the_one_address():
    """In addresses, the part that is the project's is everywhere the same."""
    here = release.address(ROOT)
    package = json.loads((ROOT / "package.json").read_text())
    places = [package["homepage"], package["bugs"], package["repository"]["url"]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    places += project["urls"].values()
    for name in ("CITATION.cff", "SECURITY.md", "SUPPORT.md"):
        places += re.findall(r"https://[^\s>]+", (ROOT / name).read_text())
    config = (ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text()
    places += re.findall(r"https://\S+", config)
    assert len(places) >= 13
    assert all(place.removeprefix("git+").startswith(here) for place in places)


def archive(path, names, mtime, user):
    with tarfile.open(path, "w:gz") as made:
        for name in names:
            info = tarfile.TarInfo(name)
            info.mtime, info.uname, info.uid, info.size = mtime, user, mtime, 3
            info.mode = 0o600 + mtime % 8
            made.addfile(info, io.BytesIO(b"abc"))


def test_archives_say_nothing_of_their_maker(tmp_path):
    archive(tmp_path / "1.gz", ["a/x", "a/y"], 1_000_000_001, "one")
    archive(tmp_path / "2.gz", ["a/y", "a/x"], 1_000_000_002, "two")
    for n in (1, 2):
        release.normalise(tmp_path / f"{n}.gz", tmp_path / f"{n}.tar.gz")
    made = (tmp_path / "1.tar.gz").read_bytes()
    assert made == (tmp_path / "2.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "1.tar.gz") as found:
        assert found.getnames() == ["a/x", "a/y"]
        content = found.extractfile("a/y")
        assert content is not None
        assert content.read() == b"abc"


def test_sources_are_all_told():
    """An sdist has what is listed: a header that is missing there shows nowhere else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (module,) = project["tool"]["setuptools"]["ext-modules"]
    for key, ending in (("sources", "c"), ("depends", "h")):
        files = sorted(f"wasm/{file.name}" for file in ROOT.glob(f"wasm/*.{ending}"))
        assert module[key] == files


def test_the_sbom_names_no_folder_and_no_moment():
    told = json.dumps(release.sbom())
    assert '"pkg:npm/dlpack-web@' in told
    assert f'"name": "{ROOT.name}"' not in told or ROOT.name == "dlpack-web"
    assert "timestamp" not in told
