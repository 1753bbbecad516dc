#!/usr/bin/env python3
"""quick.py [ROOM...]: run the tests of the rooms that changed since main, in under a
minute.

A room is a set of sources and their most specific tests. `make test` runs everything.
The default is the rooms of the files that git reports as changed; changed tests run,
too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Room:
    """Patterns of sources, in which * also matches /, and tests: files, or pytest's
    FILE::NAME."""

    def __init__(self, sources: str, tests: str) -> None:
        self.sources, self.tests = sources.split(), tests.split()

    def has(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.sources)


ROOMS = {
    "memory": Room(
        "wasm/dtype.? wasm/layout.? wasm/vectors.h wasm/runs.? wasm/tiles.? wasm/pack.? "
        "wasm/convert.? wasm/upload.?",
        "tests/native/memory/test_layout.py tests/native/memory/test_pack.py "
        "tests/native/memory/test_convert.py tests/native/memory/test_dtypes.py "
        "tests/native/memory/test_buffers.py tests/native/tensor/test_views.py "
        "tests/native/exchange/test_bridge.py",
    ),
    "exchange-c": Room(
        "wasm/dlpack.h wasm/tensor.? wasm/handles.? wasm/capsule.h wasm/errors.? "
        "wasm/import.? wasm/export.? wasm/ndarray.? wasm/object.? wasm/module.c "
        "wasm/bridge.? wasm/desktop.?",
        "tests/native/conformance/*.py tests/native/exchange/test_lifetime.py "
        "tests/native/exchange/test_ndarray.py tests/native/exchange/test_arrays.py "
        "tests/native/exchange/test_bridge.py tests/native/memory/test_buffers.py "
        "tests/native/exchange/test_consumer.py tests/native/exchange/test_cycles.py "
        "tests/native/exchange/test_legacy.py tests/native/exchange/test_wait.py "
        "tests/native/tensor/test_messages.py tests/native/exchange/test_reentrance_arrays.py "
        "tests/native/exchange/test_desktop_calls.py",
    ),
    "arrow": Room(
        "wasm/arrow*.? py/dlpack_web/_tensor/arrow.py py/dlpack_web/_tensor/pyarrow.py",
        "tests/native/arrow/test_arrow.py tests/native/arrow/test_arrow_bits.py "
        "tests/native/arrow/test_reentrance_arrow.py",
    ),
    "example": Room("wasm/example/*", "tests/js/exchange/c_module.test.mjs"),
    "tensor": Room(
        "py/dlpack_web/__init__.py py/dlpack_web/_core.pyi py/dlpack_web/py.typed "
        "py/dlpack_web/_layout/* py/dlpack_web/_tensor/* "
        "py/dlpack_web/_backends/__init__.py py/dlpack_web/_backends/calls.py "
        "py/dlpack_web/_backends/checks.py py/dlpack_web/_backends/recording.py",
        "tests/native/exchange/test_arrays.py tests/native/exchange/test_as_an_array.py "
        "tests/native/tensor/test_attributes.py tests/native/tensor/test_calls.py "
        "tests/native/tensor/test_devices.py "
        "tests/native/tensor/test_docstrings.py tests/native/memory/test_dtypes.py "
        "tests/native/tensor/test_inspect.py tests/native/tensor/test_messages.py "
        "tests/native/tensor/test_show.py tests/native/tensor/test_views.py",
    ),
    "files": Room(
        "py/dlpack_web/_files/*",
        "tests/native/files/test_files.py tests/native/files/test_reentrance_files.py "
        "tests/native/files/test_save_paths.py",
    ),
    "wire": Room(
        "py/dlpack_web/_wire/* py/dlpack_web/wire.py js/src/wire/* tests/wire/*",
        "tests/native/wire/test_*.py tests/js/wire/*.test.mjs",
    ),
    "widget": Room(
        "py/dlpack_web/_page/* py/dlpack_web/widget.py js/src/widget/*",
        "tests/native/widget/test_*.py tests/js/widget/*.test.mjs",
    ),
    "desktop": Room(
        "py/dlpack_web/_backends/desktop/* py/dlpack_web/_backends/wgsl.py "
        "py/dlpack_web/_backends/options.py py/dlpack_web/_backends/recording.py "
        "py/dlpack_web/_kernels/* py/dlpack_web/webgpu.py",
        "tests/native/exchange/test_desktop_calls.py tests/desktop/test_fault_bytes.py "
        "tests/desktop/cases/test_gpu_cases.py tests/desktop/cases/test_gpu_faults.py "
        "tests/desktop/cases/test_gpu_elementwise.py "
        "tests/desktop/cases/test_gpu_kernels.py "
        "tests/desktop/cases/test_gpu_reductions.py tests/desktop/test_formulas.py "
        "tests/desktop/test_wgsl.py",
    ),
    "core": Room(
        "js/src/index.ts js/src/core/*",
        "tests/js/core/*.test.mjs tests/js/exchange/hostile.test.mjs tests/js/surface.test.mjs",
    ),
    "exchange": Room(
        "js/src/exchange/*",
        "tests/js/exchange/exchange.test.mjs tests/js/exchange/exchange_faults.test.mjs "
        "tests/js/exchange/hostile.test.mjs tests/js/conformance/conformance.test.mjs "
        "tests/js/surface.test.mjs",
    ),
    "conformance": Room(
        "js/src/conformance/*",
        "tests/js/conformance/*.test.mjs tests/js/exchange/c_module.test.mjs",
    ),
    "webgpu": Room(
        "js/src/webgpu/* js/src/webgpu/formulas/*",
        "tests/js/webgpu/*.test.mjs tests/js/surface.test.mjs",
    ),
    "adapters": Room(
        "js/src/adapters/*",
        "tests/js/adapters/*.test.mjs tests/js/surface.test.mjs tests/tools/test_places.py",
    ),
    "open": Room("js/src/open/*", "tests/js/open/*.test.mjs tests/js/surface.test.mjs"),
    "pyodide": Room(
        "js/src/pyodide/* py/dlpack_web/_backends/browser/* py/dlpack_web/_tensor/adapter.py",
        "tests/js/pyodide/*.test.mjs",
    ),
    "onnxruntime": Room(
        "js/src/onnxruntime/* py/dlpack_web/onnxruntime/*",
        "tests/browser/hosts/test_webgpu.py::test_sessions_from_python[pyodide-cases] "
        "tests/browser/hosts/test_webgpu.py::test_sessions_from_python[pyodide-values]",
    ),
    "tinygrad": Room(
        "py/dlpack_web/tinygrad/* tests/browser/cases/tinygrad/*",
        "tests/desktop/with_tinygrad/test_tinygrad_tensors.py",
    ),
    "foreign": Room(
        "tests/foreign/onnxruntime/* tests/foreign/runner/* tests/foreign/RESULTS.md tests/foreign/different.toml",
        "tests/tools/test_foreign.py",
    ),
    "foreign-arrays": Room(
        "tests/foreign/arrays/* tests/foreign/ARRAYS.md",
        "tests/tools/test_array_programs.py tests/desktop/test_array_programs.py",
    ),
    "documentation": Room(
        "web/docs/* *.md",
        "tests/docs/test_blocks.py::test_what_is_only_shown_is_python "
        "tests/docs/test_blocks.py::test_typescript_compiles "
        "tests/docs/test_names.py::test_names_in_texts_are_in_the_module "
        "tests/docs/test_names.py::test_messages_of_the_index_of_errors_are_in_the_sources "
        "tests/tools/test_tasks.py tests/tools/test_places.py "
        "tests/tools/test_architecture.py",
    ),
    "tools": Room(
        "tools/* wasm/toolchain/* Makefile package*.json web/serve.py web/browser.py",
        "tests/tools/*.py",
    ),
}


@dataclass(frozen=True)
class Suite:
    """How to run the tests of a folder; needs: make targets."""

    folders: tuple[str, ...]
    needs: str
    command: tuple[str, ...]
    path: str = ""  # PYTHONPATH


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
VENV, DESKTOP = "build/venv/bin/python", "build/desktop/bin/python"
SUITES = (
    Suite(("tests/native/", "tests/tools/"), "native", (VENV, *PYTEST)),
    Suite(("tests/js/",), "js", ("node", "--test", "--test-reporter=dot")),
    Suite(("tests/desktop/",), "native build/desktop/.done", (DESKTOP, *PYTEST), "py"),
    Suite(("tests/docs/",), "js", (VENV, *PYTEST)),
    Suite(("tests/browser/",), "site", (VENV, *PYTEST)),
)
# Helpers: if one changes, the tests that name it run.
SHARING = ("tests/native/", "tests/tools/", "tests/js/", "tests/desktop/")
# Tests in Node that load the wheel.
OF_THE_WHEEL = {"tests/js/pyodide/pyodide.test.mjs", "tests/js/pyodide/wheel.test.mjs"}


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return done.stdout.splitlines() if done.returncode == 0 else []


def base() -> str:
    """The commit of main that the branch started from."""
    for branch in ("main", "origin/main"):
        if found := git("merge-base", "HEAD", branch):
            return found[0]
    return "HEAD"


def changed() -> list[str]:
    """Paths that differ from main, or are new."""
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", base()), *new})


def rooms_of(path: str) -> list[str]:
    return [name for name, room in ROOMS.items() if room.has(path)]


def is_test(path: str) -> bool:
    """Whether it is a test file that can run here."""
    name = Path(path).name
    ours = path.startswith(
        tuple(folder for suite in SUITES for folder in suite.folders)
    )
    return ours and (fnmatchcase(name, "test_*.py") or name.endswith(".test.mjs"))


def files(tests: Iterable[str]) -> Iterator[str]:
    """The tests, with patterns replaced by the files that match."""
    for test in tests:
        name, mark, rest = test.partition("::")
        found = [path.relative_to(ROOT).as_posix() for path in ROOT.glob(name)]
        yield from (f"{path}{mark}{rest}" for path in sorted(found))


def users_of(path: str) -> list[str]:
    """The tests that name a changed helper, of suites that need no browser."""
    word = re.compile(rf"\b{re.escape(Path(path).stem)}\b")
    return [
        test
        for folder in SHARING
        for test in files([f"{folder}**/test_*.py", f"{folder}**/*.test.mjs"])
        if word.search((ROOT / test).read_text("utf-8"))
    ]


def choose(paths: Iterable[str]) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Rooms with their changed files, tests that changed, and files without a room."""
    rooms: dict[str, list[str]] = {}
    tests, left = [], []
    for path in paths:
        names = rooms_of(path)
        for name in names:
            rooms.setdefault(name, []).append(path)
        if is_test(path):  # unless it was deleted
            tests += [path] if (ROOT / path).is_file() else []
        elif path.startswith("tests/") and (users := users_of(path)):
            tests += users
        elif not names:
            left.append(path)
    return rooms, tests, left


def run(suite: Suite, tests: list[str]) -> bool:
    """Runs the tests; whether they pass."""
    needs = "site" if OF_THE_WHEEL & {*tests} else suite.needs
    make = ["make", "--no-print-directory", "--silent", *needs.split()]
    if subprocess.run(make, cwd=ROOT, check=False).returncode:
        return False
    environment = os.environ | ({"PYTHONPATH": suite.path} if suite.path else {})
    begun = time.monotonic()
    command = [*suite.command, *tests]
    failed = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    took = time.monotonic() - begun
    print(f"[quick] {len(tests)} of {suite.folders[0]}: {took:.0f} s", flush=True)
    return not failed


def main(names: list[str]) -> int:
    begun = time.monotonic()
    if unknown := {*names} - {*ROOMS}:
        sys.exit(f"no room {', '.join(unknown)}: there are {', '.join(ROOMS)}")
    rooms, tests, left = choose([] if names else changed())
    rooms |= {name: ["asked for"] for name in names}
    for name, why in rooms.items():
        print(f"[quick] {name}: {', '.join(why)}")
    if tests:
        print(f"[quick] tests that changed or use changed files: {', '.join(tests)}")
    if left:
        print(f"[quick] without a room: {', '.join(left)}")
    chosen = list(
        dict.fromkeys([*tests, *files(t for n in rooms for t in ROOMS[n].tests)])
    )
    print(f"[quick] {len(chosen)} test files; `make test` runs all", flush=True)
    passed = [
        run(suite, found)
        for suite in SUITES
        if (found := [test for test in chosen if test.startswith(suite.folders)])
    ]
    outcome = "passed" if all(passed) else "FAILED"
    print(f"[quick] {outcome} in {time.monotonic() - begun:.0f} s")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
