"""`make released`: what users read names the registries, all of it, and only once."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import released
from release import check_versions

ROOT = Path(__file__).resolve().parents[2]
VERSION = check_versions(ROOT)
# What only a clone has.
OF_A_CLONE = re.compile(
    r"CLONE|dist/\*?dlpack|\*\.tgz|on npm or PyPI|no package registry|\.\./\.\.\[webgpu\]"
)
# What is true only after a release.
OF_A_RELEASE = re.compile(
    r"(?<!%)(pip install|npm install|micropip\.install\()[^\n]*[ '\"]dlpack-web"
)


@pytest.fixture
def copy(tmp_path):
    """What users read, and the files with the version."""
    more = ["pyproject.toml", "package.json", "package-lock.json", "CITATION.cff"]
    more += ["CHANGELOG.md", "py/dlpack_web/__init__.py"]
    for file in [*released.read_by_users(ROOT), *(ROOT / name for name in more)]:
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return tmp_path


def run(root, version=VERSION):
    command = [sys.executable, ROOT / "tools" / "released.py", version]
    return subprocess.run(
        [*command, f"--root={root}"], capture_output=True, text=True, check=False
    )


def texts(root):
    return {
        file.relative_to(root).as_posix(): file.read_text("utf-8")
        for file in released.read_by_users(root)
        if file.suffix in (".md", ".py", ".json", ".js", ".ts", ".html")
    }


def test_everything_is_changed(copy):
    before = texts(copy)
    done = run(copy)
    assert done.returncode == 0, done.stderr
    after = texts(copy)
    changed = {name for name in after if after[name] != before[name]}
    assert set(done.stdout.split()) == changed
    for name, text in after.items():
        assert OF_A_CLONE.search(text) is None, name
    assert f'"dlpack-web": "^{VERSION}"' in after["examples/vite/package.json"]
    assert "npm install dlpack-web pyodide" in after["examples/plain-page/README.md"]
    assert "pip install 'dlpack-web[webgpu]'" in after["README.md"]


def test_a_second_run_changes_nothing(copy):
    assert run(copy).stdout
    once = texts(copy)
    again = run(copy)
    assert (again.returncode, again.stdout) == (0, "")
    assert texts(copy) == once


def test_the_next_release_changes_the_version(copy):
    run(copy)
    for name in ("pyproject.toml", "package.json", "package-lock.json", "CITATION.cff"):
        file = copy / name
        file.write_text(file.read_text().replace(VERSION, "9.8.7"))
    init = copy / "py/dlpack_web/__init__.py"
    init.write_text(init.read_text().replace(VERSION, "9.8.7"))
    done = run(copy, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {
        "examples/scatter/package.json",
        "examples/socket/package.json",
        "examples/vite/package.json",
        "web/docs/howto/install.md",
    }


@pytest.mark.parametrize("version", ["9.9.9", "v" + VERSION, "", "latest", "0.1"])
def test_another_version_is_refused(copy, version):
    before = texts(copy)
    done = run(copy, version)
    assert done.returncode == 1
    assert f"VERSION={version} is not {VERSION}" in done.stderr
    assert texts(copy) == before


def test_a_text_in_neither_form_is_named_and_nothing_changes(copy):
    file = copy / "examples" / "README.md"
    file.write_text(file.read_text().replace("complete programs", "whole programs"))
    before = texts(copy)
    done = run(copy)
    assert done.returncode == 1
    assert "examples/README.md has neither form" in done.stderr
    assert texts(copy) == before


def test_until_then_nothing_is_said_to_be_released():
    """All texts have the same form. In a notebook, %pip asks the site's own index."""
    forms = tomllib.loads(released.TEXTS.read_text("utf-8"))["text"]
    found = texts(ROOT)
    clones = [entry["clone"] in found[entry["file"]] for entry in forms]
    assert len(set(clones)) == 1
    if not clones[0]:
        pytest.skip("this is a release")
    for name, text in found.items():
        assert OF_A_RELEASE.search(text) is None, name
