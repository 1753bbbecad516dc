"""Those of ../cases."""

import os

FILES = ["cases", "kept", "mishaps", "operators", "programs", "tensors"]
if os.environ.get("WHOLE"):
    FILES += ["llm", "special", "tiny"]
CASES = [f"tinygrad_{name}" for name in FILES]
