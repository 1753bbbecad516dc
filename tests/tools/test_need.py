"""tools/need.sh with an apt-get of ours."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# As apt's own: it refuses while another one runs.
APT_GET = """#!/bin/bash
mkdir "$RUNNING" 2>/dev/null || exit 100
sleep 0.2
if [ "$1" = install ]; then
  for name; do
    [[ $name = wanted* ]] && ln -s /bin/true "$(dirname "$0")/$name"
  done
fi
rmdir "$RUNNING"
"""


@pytest.mark.skipif(not Path("/var/lib/dpkg").exists(), reason="apt is Debian's")
def test_two_at_a_time_install_one_after_the_other(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in ("apt-get", APT_GET), ("sudo", '#!/bin/bash\nshift\n"$@"\n'):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RUNNING": str(tmp_path / "running"),
    }
    bash = shutil.which("bash")
    running = [
        subprocess.Popen(
            [bash, ROOT / "tools" / "need.sh", f"wanted{i}"], cwd=tmp_path, env=env
        )
        for i in range(3)
    ]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert sorted(it.name for it in programs.glob("wanted*")) == [
        f"wanted{i}" for i in range(3)
    ]
