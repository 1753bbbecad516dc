"""In IPython, a traceback has the user's lines, and none of this package's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CELLS = {
    "a call": "t.to_device('nonsense')",
    "a function": "def share(x):\n    return dlw.from_dlpack(x)\nshare(3)",
    "an await": "await dlw.open('/nonexistent/x.npy')",
    "a cause": "await dlw.open('http://127.0.0.1:1/x.npy')",
    "a callback": (
        "class Mine:\n"
        "    def __dlpack_device__(self):\n        return 1, 0\n"
        "    def __dlpack__(self, **_):\n        raise RuntimeError('of the user')\n"
        "dlw.from_dlpack(Mine())"
    ),
    "a cause of the user": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError from e"
    ),
    "not ours": "json.loads('{')",
    "verbose": "%xmode Verbose\nt.to_device('nonsense')",
    "a verbose cause": "await dlw.open('http://127.0.0.1:1/x.npy')",
}

RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance(colors="NoColor", history_length=0)
shell.run_cell("import json, numpy as np, dlpack_web as dlw; t = dlw.from_dlpack(np.zeros(3))")
printed = {}
for name, cell in json.load(sys.stdin).items():
    with capture_output() as captured:
        shell.run_cell(cell)
    printed[name] = captured.stdout
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(CELLS),
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))},
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["a call", "a function", "an await", "a cause"])
def test_ends_at_the_users_line(printed, name):
    text = printed[name]
    assert "/dlpack_web/" not in text
    assert "File " not in text
    last = CELLS[name].splitlines()[-1]
    assert f"> {len(CELLS[name].splitlines())} {last}" in text
    assert text.count("Traceback") == 1


def test_shows_the_users_callbacks_and_causes(printed):
    text = printed["a callback"]
    assert "/dlpack_web/" not in text
    assert "raise RuntimeError('of the user')" in text
    assert "dlw.from_dlpack(Mine())" in text
    assert "----> 2     1 / 0" in printed["a cause of the user"]


def test_other_tracebacks_and_verbose_ones_are_whole(printed):
    assert "json/decoder.py" in printed["not ours"]
    assert "/dlpack_web/_tensor/" in printed["verbose"]
    assert "direct cause" in printed["a verbose cause"]
