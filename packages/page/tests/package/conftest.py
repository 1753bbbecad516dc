"""Projects of users, as tests/package has them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests" / "package"))
