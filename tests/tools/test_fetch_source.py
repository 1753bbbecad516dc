"""tools/fetch_source.py: which lines of the lock pip is given."""

import fetch_source
import pytest

LOCK = """\
# generated
tiny==1.0 \\
    --hash=sha256:11
    # via of another
tiny-more==2.0 \\
    --hash=sha256:22 \\
    --hash=sha256:33
"""


def test_a_package_has_its_hashes_and_no_others():
    assert fetch_source.locked("tiny", LOCK).split("\n")[:2] == [
        "tiny==1.0 \\",
        "    --hash=sha256:11",
    ]
    assert "11" not in fetch_source.locked("tiny-more", LOCK)
    assert fetch_source.locked("tiny-more", LOCK).endswith("33\n")


def test_another_package_is_named():
    with pytest.raises(SystemExit, match="has no package 'other'"):
        fetch_source.locked("other", LOCK)


def test_tinygrad_is_locked_with_wheel_and_source():
    found = fetch_source.locked("tinygrad", fetch_source.LOCK.read_text("utf-8"))
    assert found.count("--hash") == 2
