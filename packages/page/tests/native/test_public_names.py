"""The public names of dlpack_web_page.wire stay, and the versions of both packages are the same."""

import os
import subprocess
from pathlib import Path

LIST = Path(__file__).with_name("public_names.txt")
NATIVE = Path(__file__).parents[4] / "tests" / "native"


def say(python, program):
    command = [python, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_public_names_are_those_of_the_list(host_python):
    """PUBLIC=write writes it; a change there is a change for users."""
    path = f"import sys; sys.path[:0] = [{str(NATIVE)!r}]\n"
    program = "import public_names as p; print(*p.names_of('dlpack_web_page.wire'), sep='\\n')"
    said = say(host_python, path + program)
    if os.environ.get("PUBLIC") == "write":
        LIST.write_text(said, "utf-8")
    assert LIST.read_text("utf-8") == said


def test_another_version_of_the_bridge_is_refused_by_name(host_python):
    said = say(
        host_python,
        "import dlpack_web; dlpack_web.__version__ = '9.8.7'\n"
        "try: import dlpack_web_page.wire\n"
        "except ImportError as error: print(error)",
    )
    assert "dlpack-web-page is 0." in said
    assert "dlpack-web is 9.8.7: install both" in said
