#!/usr/bin/env python3
"""warm.py MODULE...: a Python that has imported what all tests import, and forks for each run of
pytest: that saves most of the seconds that a run takes to begin.

A line of JSON on stdin asks for a run: {"path", "arguments", "env", "log", "limits"}. It answers
with the process, and when that has ended, with its exit status.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import warnings


def child(request: dict) -> None:
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for at, file in enumerate((nothing, log, log)):
        os.dup2(file, at)
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    os.environ.update(request["env"])
    sys.path.insert(0, request["path"])
    import pytest

    status = pytest.main(request["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    warnings.simplefilter("ignore")  # threads of libraries, which wait for work
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            try:
                child(json.loads(line))
            finally:
                os._exit(70)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
