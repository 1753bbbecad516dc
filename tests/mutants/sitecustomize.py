"""Python imports it at its start, in processes that tests start: what runs there is a part of the
map, too (pytest_mutants.py)."""

import os

FOLDER = os.environ.get("MUTANTS_CHILDREN")
if FOLDER:
    import atexit
    import json
    import sys
    from pathlib import Path

    def tell() -> None:
        if "dlpack_web._core" in sys.modules:
            from pytest_mutants import take_c

            file = Path(FOLDER) / f"{os.getpid()}.json"
            file.write_text(json.dumps(take_c()()))

    atexit.register(tell)
