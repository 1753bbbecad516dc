"""Those of ../cases."""

import os

CASES = [
    "tinygrad_cases",
    "tinygrad_kept",
    "tinygrad_llm",
    "tinygrad_mishaps",
    "tinygrad_operators",
    "tinygrad_programs",
    "tinygrad_special",
    "tinygrad_tensors",
    *(["tinygrad_tiny"] if os.environ.get("WHOLE") else []),
]
