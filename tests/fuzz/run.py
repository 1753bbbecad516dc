#!/usr/bin/env python3
"""run.py --seconds N [--seed N] [--only PART]: the C core without Python, as 64- and 32-bit code; the Python
API; damaged files, against the readers of others; memory that runs out. They share the time;
half of it is added for what exists in Python and in JavaScript. `make fuzz` has built what they need.

Each part prints its seed. What fails leaves build/fuzz/NAME.py, which does the same again.
run.py --corpus --seconds N looks for inputs that reach more, and keeps as few as do.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
SHARES = {"core64": 0.2, "core32": 0.2, "driver": 0.4, "files": 0.1, "faults": 0.1}
SHARES["twins"] = 0.5
CHILD = 10.0  # seconds of one process of the driver: each ends with Python's own end
PATIENCE = 300.0  # seconds more, until a process counts as hanging


class Failure(Exception):  # noqa: N818 - it is what it says
    """What was found; told, with the script that shows it again."""


def report(name: str, seed: object, what: str, call: str) -> Failure:
    """Writes the script. `call` is a function of this file, with its arguments."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"{name}.py"
    path.write_text(
        "#!/usr/bin/env python3\n"
        f'"""Found by `make fuzz` (seed {seed}), which also builds what this needs.\n\n'
        f'{_plain(what)}\n"""\n\n'
        "import sys\nfrom pathlib import Path\n\n"
        'sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "fuzz"))\n'
        f"import run\n\nsys.exit(run.{call})\n"
    )
    python, script = Path(sys.executable), path.relative_to(ROOT)
    if python.is_relative_to(ROOT):
        python = python.relative_to(ROOT)
    return Failure(f"{what.rstrip()}\n\nagain: {python} {script}")


def _plain(text: str) -> str:
    """For a docstring, without where this machine keeps things."""
    text = text.replace(str(ROOT) + "/", "").replace("\\", "/").replace('"""', "'''")
    return "\n".join(line.rstrip() for line in text.strip().splitlines()[-40:])


# --- the core ---------------------------------------------------------------------------------


CORPUS = FUZZ / "corpus.txt"  # a line of hexadecimal digits for each input


def unpack_corpus(folder: str) -> None:
    """Writes a file for each input, as libFuzzer reads them."""
    for i, line in enumerate(CORPUS.read_text().split()):
        (Path(folder) / f"{i:03}").write_bytes(bytes.fromhex(line))


def run_core(bits: int, seconds: float, seed: int) -> str:
    name = f"core{bits}"
    with tempfile.TemporaryDirectory() as found:
        unpack_corpus(found)
        command = _libfuzzer(bits, "-print_final_stats=1", f"-artifact_prefix={found}/")
        command += [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed or 1}"]
        done = _run([*command, found], seconds + PATIENCE)
        if done.returncode == 0:
            return _core_stats(done.stderr)
        kept = [path for path in Path(found).iterdir() if "-" in path.name]
        data = kept[0].read_bytes() if kept else b""
    raise report(
        f"{name}-{seed}", seed, _tail(done), f"again_core({bits}, {data.hex()!r})"
    )


def _libfuzzer(bits: int, *options: str) -> list[object]:
    limits = ("-max_len=256", "-timeout=60", "-rss_limit_mb=4096")
    return [BUILD / f"core{bits}", *limits, *options]


def renew_corpus(seconds: float, seed: int) -> str:
    """As few inputs as reach all that is reached now, or in so many seconds more."""
    with tempfile.TemporaryDirectory() as found, tempfile.TemporaryDirectory() as least:
        unpack_corpus(found)
        command = _libfuzzer(64, f"-max_total_time={round(seconds)}", f"-seed={seed}")
        subprocess.run([*command, found], check=True, capture_output=True)
        # Without counting how often each place is reached, which asks for a lot more.
        command = _libfuzzer(64, "-set_cover_merge=1", "-use_counters=0")
        command += [least, found]
        subprocess.run(command, check=True, capture_output=True)
        inputs = sorted(path.read_bytes() for path in Path(least).iterdir())
    CORPUS.write_text("".join(f"{data.hex()}\n" for data in inputs))
    return f"{len(inputs)} inputs of {sum(map(len, inputs))} bytes"


def _core_stats(log: str) -> str:
    runs = re.search(r"number_of_executed_units: (\d+)", log)
    speed = re.search(r"average_exec_per_sec: +(\d+)", log)
    reached = re.findall(r"cov: (\d+)", log)
    assert runs
    assert speed
    return f"{runs[1]} inputs, {speed[1]}/s, {reached[-1]} edges"


def again_core(bits: int, data: str) -> int:
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes.fromhex(data))
        file.flush()
        return subprocess.run(
            [BUILD / f"core{bits}", file.name], check=False
        ).returncode


# --- Python -----------------------------------------------------------------------------------


def _under_asan(package: str) -> dict[str, str]:
    """The environment for the package in build/<package>, which was built with ASan."""

    def library(name: str) -> str:
        command = ["gcc", f"-print-file-name={name}"]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.strip()

    options = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024"
    return os.environ | {
        "PYTHONPATH": str(ROOT / "build" / package),
        "PYTHONMALLOC": "malloc",
        "PYTHONHASHSEED": "0",
        "DLW_HOSTILE": str(BUILD / "hostile.so"),
        "ASAN_OPTIONS": f"{options}:{os.environ.get('ASAN_OPTIONS', '')}",
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
    }


def _python(
    script: str, package: str, *args: object, seconds: float = 0
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, FUZZ / script, *map(str, args)]
    return _run(command, seconds + PATIENCE, _under_asan(package))


def run_driver(seconds: float, seed: int) -> str:
    end, sequences, operations = time.monotonic() + seconds, 0, 0
    for child in range(1000):
        left = end - time.monotonic()
        if child > 0 and left < 1:
            break
        options = [
            "--seed",
            seed + child,
            "--seconds",
            max(1, min(CHILD, left)),
            "--leave",
        ]
        done = _python("driver.py", "asan", *options, seconds=CHILD)
        if done.returncode != 0:
            raise _shrunk(seed + child, done)
        count = re.search(r"done: (\d+) sequences, (\d+) operations", done.stdout)
        assert count
        sequences, operations = sequences + int(count[1]), operations + int(count[2])
    return f"{sequences} sequences of {operations} operations"


type Sequence = list[tuple[str, int]]


def _shrunk(seed: int, done: "subprocess.CompletedProcess[str]") -> Failure:
    """The failure of the last sequence, without the operations that it can do without."""
    said = [
        line for line in done.stdout.splitlines() if line.startswith(("[[", "leave"))
    ]
    leave = bool(said) and said[-1].startswith("leave ")
    sequence: Sequence = json.loads(said[-1].removeprefix("leave ")) if said else []
    what = _tail(done)
    if _fails(sequence, leave) is None:
        # Threads, or what sequences before it left behind: all of them again.
        call = f"again_driver_seed({seed})"
        return report(f"driver-{seed}", seed, what, call)
    size = len(sequence) // 2
    while size > 0:
        at = 0
        while at < len(sequence):
            less = sequence[:at] + sequence[at + size :]
            found = _fails(less, leave) if less else None
            if found is None:
                at += size
            else:
                sequence, what = less, found
        size //= 2
    call = f"again_driver({json.dumps(sequence)}, leave={leave})"
    return report(f"driver-{seed}", seed, what, call)


def _fails(sequence: Sequence, leave: bool) -> str | None:
    """What is said where the sequence fails."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(sequence, file)
        file.flush()
        options = ["--sequence", file.name, *(["--leave"] if leave else [])]
        done = _python("driver.py", "asan", *options)
    return None if done.returncode == 0 else _tail(done)


def again_driver(sequence: Sequence, *, leave: bool) -> int:
    said = _fails(sequence, leave)
    print(said or "nothing failed")
    return 0 if said is None else 1


def again_driver_seed(seed: int) -> int:
    done = _python("driver.py", "asan", "--seed", seed, "--seconds", CHILD, "--leave")
    print(_tail(done))
    return done.returncode


# --- files ------------------------------------------------------------------------------------


def run_files(seconds: float, seed: int) -> str:
    """What we read of damaged files against what NumPy, zipfile and safetensors do."""
    options = ["--seed", seed, "--seconds", max(1, seconds)]
    done = _python("differential.py", "asan", *options, seconds=seconds)
    lines = done.stdout.splitlines()
    if done.returncode == 0:
        return lines[-1].removeprefix("done: ")
    found = [line.removeprefix("found ") for line in lines if line.startswith("found ")]
    call = f"again_files({found[0]!r})" if found else f"again_files_seed({seed})"
    raise report(f"files-{seed}", seed, _tail(done), call)


def again_files(data: str) -> int:
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes.fromhex(data))
        file.flush()
        done = _python("differential.py", "asan", "--file", file.name)
    print(_tail(done))
    return done.returncode


def again_files_seed(seed: int) -> int:
    done = _python("differential.py", "asan", "--seed", seed, "--seconds", CHILD)
    print(_tail(done))
    return done.returncode


# --- two languages ----------------------------------------------------------------------------


def run_twins(seconds: float, seed: int) -> str:
    """The same input for the parts that exist in Python and in JavaScript."""
    done = _twins("--seed", seed, "--seconds", max(1, seconds), seconds=seconds)
    lines = done.stdout.splitlines()
    if done.returncode == 0:
        return lines[-1].removeprefix("done: ")
    found = [line.removeprefix("found ") for line in lines if line.startswith("found ")]
    call = f"again_twins({found[0]!r})" if found else f"again_twins_seed({seed})"
    what = done.stdout if found else _tail(done)
    raise report(f"twins-{seed}", seed, what, call)


def _twins(*options: object, seconds: float = 0) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, FUZZ / "compare_twins.py", *options]
    return _run(command, seconds + PATIENCE)


def again_twins(one: str) -> int:
    done = _twins("--one", one)
    print(done.stdout, _tail(done))
    return done.returncode


def again_twins_seed(seed: int) -> int:
    done = _twins("--seed", seed, seconds=CHILD)
    print(done.stdout, _tail(done))
    return done.returncode


# --- memory that runs out ------------------------------------------------------------------------


def run_faults(seconds: float, seed: int) -> str:
    """All operations; where the process dies of what is not ours, all but that one."""
    without: list[str] = []
    end = time.monotonic() + seconds
    while True:
        left = max(1, end - time.monotonic())
        options = ["--seed", seed, "--seconds", left]
        for name in without:
            options += ["--without", name]
        done = _python("malloc_faults.py", "faults", *options, seconds=left)
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            note = f"; Python or NumPy fail in {without}" if without else ""
            return lines[-1].removeprefix("done: ") + note
        last = [line for line in lines if ": n=" in line][-1:]
        found = re.fullmatch(r"(.*): n=(\d+) (.*)", last[0]) if last else None
        if found is None or not _is_of_others(found[3], done.stderr):
            call = (
                f"again_faults({found[1]!r}, {found[2]})" if found else "again_faults()"
            )
            raise report(f"faults-{seed}", seed, _tail(done), call)
        without.append(found[1])


def _is_of_others(how: str, log: str) -> bool:
    """Whether a crash happened outside of our functions and what they call."""
    if "anywhere" not in how or "Wrong:" in log:
        return False
    frames = re.findall(r"^ +#\d+ \S+ in (.*)$", log, re.MULTILINE)
    for frame in frames:
        if "wasm/" in frame:
            return False
        if frame.startswith("_PyEval_EvalFrameDefault"):
            break
    return bool(frames) or "SystemError" in log


def again_faults(name: str = "", n: int = 0) -> int:
    options: list[object] = ["--only", name] if name else []
    options += ["--n", n] if n else []
    done = _python("malloc_faults.py", "faults", *options)
    print(_tail(done))
    return done.returncode


# --- all of it -------------------------------------------------------------------------------------


def _run(
    command: "list[object]", seconds: float, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            list(map(str, command)),
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        out, log = (
            text.decode(errors="replace") if isinstance(text, bytes) else text or ""
            for text in (late.stdout, late.stderr)
        )
        return subprocess.CompletedProcess(command, 124, out, log + "\nit hangs")


def _tail(done: "subprocess.CompletedProcess[str]") -> str:
    """The end of what was said; of a report of ASan its beginning, too."""
    lines = done.stderr.splitlines()
    begins = [i for i, line in enumerate(lines) if "ERROR: " in line]
    if begins:
        lines = lines[begins[0] : begins[0] + 30]
    return "\n".join(lines[-30:]) or f"exit status {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(31)
    )
    parser.add_argument("--only", choices=SHARES)
    parser.add_argument(
        "--corpus", action="store_true", help="renews tests/fuzz/corpus.txt instead"
    )
    options = parser.parse_args()
    if options.corpus:
        print(renew_corpus(options.seconds, options.seed))
        return 0
    parts: dict[str, Callable[[float, int], str]] = {
        "core64": lambda seconds, seed: run_core(64, seconds, seed),
        "core32": lambda seconds, seed: run_core(32, seconds, seed),
        "driver": run_driver,
        "files": run_files,
        "faults": run_faults,
        "twins": run_twins,
    }
    failed = 0
    for name, part in parts.items():
        seconds = options.seconds * SHARES[name]
        if options.only:
            seconds = options.seconds if options.only == name else 0
        if seconds == 0:
            continue
        if name == "core32" and not (BUILD / name).exists():
            print("[fuzz] core32: this machine has no 32-bit code", flush=True)
            continue
        print(f"[fuzz] {name}: SEED={options.seed}, {seconds:.0f} s", flush=True)
        try:
            print(f"[fuzz] {name}: {part(seconds, options.seed)}", flush=True)
        except Failure as failure:
            print(failure, flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
