import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.append(str(TESTS / "foreign" / "runner"))


@pytest.fixture(scope="session")
def host_python():
    return sys.executable
