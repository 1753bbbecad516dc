"""Deno and Node with the test pages' harness in them, and which WebGPU they must have."""

from __future__ import annotations

import json
import os
import platform
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from browser import SOFTWARE_GPU
from pages import Harness, Outcome

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "runtimes" / "node_modules"
HERE = "tests/runtimes"
MARK = "@answer "
SECONDS = 300
# Nothing is asked for and nothing kept; what Pyodide 0.29 misses comes first.
DENO_OPTIONS = (
    "--allow-all",
    "--no-prompt",
    "--no-lock",
    f"--preload={ROOT / HERE / 'deno.mjs'}",
)
ARCH = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "?")
# By Node's release: its package, and the flags that JSPI needs there.
NODES = {
    "24": ("node-linux-{arch}", ("--experimental-wasm-jspi",)),
    "26": ("node-26-linux-{arch}", ()),
}
VULKAN = Path("/usr/share/vulkan/icd.d")
# What runs, here and in the kit, and what the compilers of WGSL say of "nonsense".
SUITE = json.loads((ROOT / HERE / "suite.json").read_text())


def bun_lacks() -> dict[str, str]:
    """Cases that fail in Bun, of the bridge and of packages, and why."""
    found = dict(SUITE["lacks"]["bun"])
    for file in (ROOT / "packages").glob("*/tests/runtimes/bun_lacks.json"):
        found |= json.loads(file.read_text())
    return found


class WrongRuntimeError(RuntimeError):
    """There is no such runtime or driver, or it is another than was asked for."""


@dataclass(frozen=True)
class Driver:
    """A software GPU: where it is, and what its name is by each implementation of WebGPU."""

    name: str
    file: Path
    package: str  # of Debian
    described: str  # in what an adapter says of itself, in lower case

    def environment(self) -> dict[str, str]:
        if not self.file.exists():
            raise WrongRuntimeError(
                f"There is no {self.name} at {self.file}: install a package like "
                f"Debian's {self.package}"
            )
        return {
            "VK_DRIVER_FILES": str(self.file),
            "VK_ICD_FILENAMES": str(self.file),  # of loaders that are older
            "XDG_RUNTIME_DIR": tempfile.gettempdir(),  # Mesa wants it, or complains
            "NO_COLOR": "1",
        }


SWIFTSHADER = Driver("SwiftShader", SOFTWARE_GPU, "chromium", "swiftshader")
LAVAPIPE = Driver(
    "lavapipe",
    VULKAN / f"lvp_icd.{platform.machine()}.json",
    "mesa-vulkan-drivers",
    "llvmpipe",
)


@dataclass(frozen=True)
class Wanted:
    """Where a suite must run."""

    webgpu: str  # of SUITE["compilers"]
    driver: Driver
    agent: str  # all of `navigator.userAgent`

    def __str__(self) -> str:
        return f"{self.agent}, WebGPU: {self.webgpu} on {self.driver.name}"

    def complaint(self, where: dict[str, str]) -> str | None:
        """Where it runs instead; None: where it should."""
        if (
            where["agent"] == self.agent
            and self.driver.described in where["webgpu"].lower()
            and SUITE["compilers"][self.webgpu] in where["compiler"]
        ):
            return None
        return (
            f"this suite is for {self}, and runs in {where['agent']}, WebGPU: "
            f"{where['webgpu'] or 'none'} (its compiler says {where['compiler']!r})"
        )


def program(pattern: str, name: str) -> Path:
    found = PACKAGES / pattern.format(arch=ARCH)
    if not found.is_file():
        raise WrongRuntimeError(
            f"npm has no {name} for this machine ({platform.machine()}): {found}"
        )
    return found


def deno_program() -> Path:
    return program("@deno/linux-{arch}-glibc/deno", "Deno")


def node_program(release: str) -> Path:
    package, _ = NODES[release]
    return program(f"{package}/bin/node", f"Node {release}")


def versions() -> Mapping[str, str]:
    """What package.json pins, by the names without the architecture."""
    package = json.loads((ROOT / HERE / "package.json").read_text())
    pinned = package["dependencies"] | package["optionalDependencies"]
    return {name.replace(f"-{ARCH}", ""): version for name, version in pinned.items()}


def deno(driver: Driver, url: str, folder: Path) -> Runtime:
    """Modules come from the server, as a page's do."""
    environment = driver.environment() | {"DENO_DIR": str(folder)}
    command = [
        deno_program(),
        "run",
        *DENO_OPTIONS,
        "--no-config",
        "--quiet",
        "--v8-flags=--expose-gc",
        f"--location={url}",
        f"{url}{HERE}/main.mjs",
    ]
    agent = f"Deno/{versions()['@deno/linux-glibc']}"
    return Runtime.start(Wanted("wgpu-core", driver, agent), command, environment)


def node(release: str, driver: Driver, url: str, folder: Path) -> Runtime:
    _, flags = NODES[release]
    environment = driver.environment() | {
        "PAGE_URL": url,
        "PAGE_ROOT": str(ROOT),
        "PAGE_WEBGPU": str(PACKAGES / "webgpu" / "index.js"),
    }
    command = [
        node_program(release),
        *flags,
        "--expose-gc",
        "--no-warnings",
        f"--import={ROOT / HERE / 'node.mjs'}",
        ROOT / HERE / "main.mjs",
    ]
    wanted = Wanted("Dawn", driver, f"Node.js/{release}")
    return Runtime.start(wanted, command, environment)


def bun(driver: Driver, url: str, folder: Path) -> Runtime:
    environment = driver.environment() | {
        "PAGE_URL": url,
        "PAGE_ROOT": str(ROOT),
        "PAGE_WEBGPU": str(PACKAGES / "bun-webgpu" / "index.js"),
    }
    command = [
        program("@oven/bun-linux-{arch}/bin/bun", "Bun"),
        "--preload",
        ROOT / HERE / "bun.mjs",
        ROOT / HERE / "main.mjs",
    ]
    wanted = Wanted("Dawn", driver, f"Bun/{versions()['@oven/bun-linux']}")
    return Runtime.start(wanted, command, environment, bun_lacks())


@dataclass
class Runtime(Harness):
    """A process with Pyodide and dlpack-web in it."""

    process: subprocess.Popen[str]
    name: str
    lacks: Mapping[str, str] = field(default_factory=dict)  # cases that fail, and why
    features: frozenset[str] = frozenset()
    answers: queue.Queue[str | None] = field(default_factory=queue.Queue)
    log: list[str] = field(default_factory=list)
    listener: threading.Thread = field(init=False)

    @classmethod
    def start(
        cls,
        wanted: Wanted,
        command: list[str | Path],
        environment: dict[str, str],
        lacks: Mapping[str, str] | None = None,
    ) -> Runtime:
        """Started, and asked where it runs: nothing is tested anywhere else."""
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        runtime = cls("/bundle/tests.zip", process, str(wanted), lacks or {})
        runtime.listener = threading.Thread(target=runtime._listen, daemon=True)
        runtime.listener.start()
        try:
            runtime._must_be(wanted)
        except BaseException:
            runtime.end()
            raise
        return runtime

    def _must_be(self, wanted: Wanted) -> None:
        where = self.call("where")
        assert isinstance(where, dict)
        complaint = wanted.complaint(where)
        if complaint:
            raise WrongRuntimeError("\n".join([complaint, *self.log[-20:]]))
        self.features = frozenset(where["features"])
        self.name = f"{self.name} ({where['webgpu']})"

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(MARK):
                self.answers.put(line.removeprefix(MARK))
            else:
                self.log.append(line.rstrip())
        self.answers.put(None)

    def call(self, name: str, *args: object) -> object:
        assert self.process.stdin
        try:
            print(json.dumps({"name": name, "args": args}), file=self.process.stdin)
            self.process.stdin.flush()
            answer = self.answers.get(timeout=SECONDS)
        except (BrokenPipeError, queue.Empty) as error:
            answer, self.log = None, [*self.log, repr(error)]
        if answer is None:
            tail = "\n".join(self.log[-50:])
            ended = self.process.poll()
            raise RuntimeError(f"{name}{args}: no answer (status {ended})\n{tail}")
        told = json.loads(answer)
        if "problem" in told:
            raise RuntimeError(told["problem"])
        return told["result"]

    def _keep(self, result: object) -> Outcome:
        outcome = super()._keep(result)
        for report in outcome.reports:
            function = report["id"].partition("[")[0]  # with all of its parameters
            reason = self.lacks.get(report["id"]) or self.lacks.get(function)
            if reason and report["outcome"] == "failed":
                report |= {"outcome": "skipped", "detail": reason}
            elif reason and report["outcome"] == "passed":
                detail = f"passes, although suite.json says that it cannot: {reason}"
                report |= {"outcome": "failed", "detail": detail}
        return outcome

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.listener.join()
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def closing(runtime: Runtime) -> Iterator[Runtime]:
    try:
        yield runtime
    finally:
        runtime.end()
