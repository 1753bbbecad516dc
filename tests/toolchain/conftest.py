"""Scripts of the build. They run on this machine only, so these tests do, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "wasm" / "toolchain"))
