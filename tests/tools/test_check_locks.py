"""`make check-locks`: what it lets pass, and what not."""

import json
import subprocess
import sys

import check_locks
import pytest

HASH = "--hash=sha256:" + 64 * "a"


@pytest.fixture
def root(tmp_path):
    """A small project with nothing to complain about."""
    packages = {
        "": {"name": "project", "version": "1.0.0"},
        "node_modules/pyodide": {"version": "314.0.4", "integrity": "sha512-abc=="},
        "node_modules/ws": {
            "version": "8.23.0",
            "integrity": "sha512-def==",
            "funding": {"url": "https://example.org"},
        },
        "node_modules/linked": {"resolved": "../linked", "link": True},
    }
    files = {
        "js/package-lock.json": json.dumps({"packages": packages}),
        "js/node_modules/ws/package-lock.json": "another project's own",
        "tools/requirements/dev.in": "# Tools\nruff==0.17.5  # format and lint\nmypy\n",
        "tools/requirements/dev.txt": f"--only-binary :all:\nmypy==2.4.1 \\\n    {HASH}\n"
        f"    # via -r tools/requirements/dev.in\nruff==0.17.5 \\\n    {HASH} \\\n    {HASH}\n",
        "tools/requirements/interop.in": "-c dev.txt\nmypy\n",
        "tools/requirements/interop.txt": f"mypy==2.4.1 {HASH}\n",
        "tools/requirements/torch.txt": "torch==2.15.0\n",
        "web/lite/packages.txt": f"jedi==0.19.2 {HASH}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def change(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_this_project_is_complete():
    assert check_locks.all_complaints(check_locks.ROOT) == ([], [])


def test_a_complete_project_passes(root):
    assert check_locks.all_complaints(root) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (', "integrity": "sha512-abc=="', "", "pyodide has no integrity (sha512)"),
        ("sha512-abc", "sha1-abc", "pyodide has no integrity (sha512)"),
        (
            '"version": "8.23.0"',
            '"version": "8.23.0", "resolved": "https://registry.example/ws.tgz"',
            "ws has an address",
        ),
        ("8.23.0", "git+ssh://example.org/ws.git", "ws has an address"),
    ],
)
def test_npm_lock_is_refused(root, old, new, complaint):
    change(root / "js" / "package-lock.json", old, new)
    expected = f"js/package-lock.json: node_modules/{complaint}"
    assert check_locks.all_complaints(root) == ([expected], [])


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("dev.txt", f" \\\n    {HASH}\n", "\n", "mypy has no hash"),
        ("dev.txt", HASH, HASH[:-1], "mypy has no hash"),
        ("dev.txt", "# via", "# from https://mirror.example via", "an address"),
        (
            "dev.txt",
            "--only",
            "--find-links /wheels\n--only",
            "the option --find-links",
        ),
        ("dev.in", "mypy", "mypy @ https://mirror.example/mypy.whl", "an address"),
    ],
)
def test_requirements_are_refused(root, file, old, new, complaint):
    change(root / "tools" / "requirements" / file, old, new)
    expected = f"tools/requirements/{file}: {complaint}"
    assert check_locks.all_complaints(root) == ([], [expected])


@pytest.mark.parametrize(
    ("old", "new"), [("ruff==0.17.5", "ruff==0.17.6"), ("mypy", "pytest==9.2.0")]
)
def test_requirements_older_than_their_source_are_refused(root, old, new):
    change(root / "tools" / "requirements" / "dev.in", old, new)
    expected = f"tools/requirements/dev.txt: {new} of dev.in is not in it"
    assert check_locks.all_complaints(root) == ([], [expected])


def test_the_message_says_what_to_do(root):
    change(root / "js" / "package-lock.json", "integrity", "forgotten")
    change(root / "tools" / "requirements" / "interop.txt", HASH, "")
    done = subprocess.run(
        [sys.executable, check_locks.__file__, root],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "npm install --package-lock-only NAME@VERSION" in done.stderr
    assert "make locks" in done.stderr
