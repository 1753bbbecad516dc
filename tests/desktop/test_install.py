"""Desktop Python, as the pages say: from a clone, into an empty folder; with what the page
installs, and nothing else."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "web" / "docs" / "howto" / "install.md").read_text("utf-8")
# It has the build's tools; what pip would get from a registry is in this Python.
PIP = [ROOT / "build" / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet"]
PIP += ["--no-deps", "--no-build-isolation", "--disable-pip-version-check"]

AWAITING = """import ast, asyncio, sys
code = compile(sys.stdin.read(), "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
if result := eval(code): asyncio.run(result)
"""


def clone_in(folder: Path) -> Path:
    """A clone's files that pip needs."""
    clone = folder / "clone"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    for name in ("wasm", "py/dlpack_web"):
        skipped = shutil.ignore_patterns("*.so", "__pycache__", "toolchain")
        shutil.copytree(ROOT / name, clone / name, ignore=skipped)
    return clone


def installed(folder: Path, *wanted: str | Path) -> Path:
    """Where pip put the wheels that it built of these."""
    lib = folder / "lib"
    subprocess.run([*PIP, f"--target={lib}", *wanted], check=True)
    return lib


def run(folder: Path, program: str, lib: Path) -> str:
    """What the program writes, in an empty folder, with what is installed in `lib`."""
    (folder / "first.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "first.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(lib)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.skipif("CLONE" not in PAGE, reason="released: needs a registry")
def test_desktop(tmp_path):
    section = PAGE.partition("## Desktop Python\n")[2]
    assert section.startswith("\nYou need Python 3.12 or newer.")
    assert section.index("python3 --version") < section.index("python3 -m venv")
    # With NumPy as a second wish, pip would try all of its versions for an older Python.
    (wanted,) = re.findall(r'(?m)pip install "(\$\{CLONE\}\[numpy,webgpu\])"$', section)
    (program,) = re.findall(r"(?s):class: desktop\n(.*?)```", section)
    lib = installed(tmp_path, wanted.replace("${CLONE}", str(clone_in(tmp_path))))
    told = run(tmp_path, program, lib)
    assert told == (
        "Tensor([0., 1., 2.], shape=(3,), dtype='float32', device='webgpu:0')\n"
    )
    about = next(lib.glob("dlpack_web-*.dist-info")) / "METADATA"
    assert "Requires-Python: >=3.12" in about.read_text()


@pytest.mark.skipif("WHOLE" not in os.environ, reason="`make test-all` does it")
def test_a_driver_from_outside(tmp_path):
    """Over what is installed alone: nothing of the clone is on the path."""
    driver = tmp_path / "driver"
    shutil.copytree(ROOT / "examples" / "driver", driver)
    lib = installed(tmp_path, clone_in(tmp_path), driver)
    readme = (driver / "README.md").read_text("utf-8")
    (program,) = re.findall(r"(?s)```python\n(.*?)```", readme)
    assert run(tmp_path, program, lib) == "[0. 2. 4. 6.]\n"
    assert {path.name for path in lib.glob("*.py")} == {"dlpack_web_memory.py"}


def distributions(words: list[str]) -> dict[str, Distribution]:
    """What pip would install for these words: this Python has them."""
    ours = re.compile(r"(?:\$\{CLONE\}|\.\./\.\.)(/packages/\w+)?(?:\[(.+)\])?")
    todo = [Requirement(word) for word in words if not ours.fullmatch(word)]
    for match in filter(None, map(ours.fullmatch, words)):
        manifest = ROOT / (match[1] or "").lstrip("/") / "pyproject.toml"
        extras = tomllib.loads(manifest.read_text("utf-8"))["project"]
        for extra in match[2].split(",") if match[2] else []:
            todo += map(Requirement, extras["optional-dependencies"][extra])
    found: dict[str, Distribution] = {}
    while todo:
        wanted = todo.pop()
        extras = wanted.extras or {""}
        if wanted.name in found and not wanted.extras:
            continue
        found[wanted.name] = distribution(wanted.name)
        for each in map(Requirement, found[wanted.name].requires or []):
            if not each.marker or any(
                each.marker.evaluate({"extra": e}) for e in extras
            ):
                todo.append(each)
    return found


def environment(words: list[str], lib: Path) -> Path:
    """A folder with these distributions, and with dlpack_web as it is in the clone."""
    lib.mkdir()
    for source in (
        *ROOT.glob("py/dlpack_web"),
        *ROOT.glob("packages/*/py/dlpack_web_*[a-z]"),
    ):
        (lib / source.name).symlink_to(source)
    for each in distributions(words).values():
        tops = {file.parts[0] for file in each.files or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (lib / top).exists():
                (lib / top).symlink_to(Path(str(each.locate_file(top))))
    return lib


@pytest.mark.parametrize(
    "name",
    [
        "web/docs/howto/install.md",
        "packages/page/docs/page-gpu.md",
        "packages/page/docs/cloud-kernel.md",
        "web/docs/tutorials/desktop-and-browser.md",
        "examples/scatter/README.md",
    ],
)
def test_the_first_block_needs_what_its_page_installs(name, tmp_path):
    text = (ROOT / name).read_text("utf-8")
    (line,) = re.findall(r"(?m)pip install (.*(?:CLONE|\.\./\.\.).*)$", text)
    after = text[text.index(line) :]
    block = re.search(
        r"(?ms)^```(?:\{code-block\} )?python\n(?::class.*?\n)?(.*?)^```", after
    )
    lib = environment(shlex.split(line), tmp_path / "lib")
    folder = tmp_path / "page"
    if name.startswith("examples"):
        shutil.copytree((ROOT / name).parent, folder)
        (
            folder / "scatter.bundle.js"
        ).touch()  # npm makes it: packages/page/tests/widget
    else:
        folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", AWAITING],
        input=block[1],
        cwd=folder,
        check=False,
        env=os.environ | {"PYTHONPATH": str(lib)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
