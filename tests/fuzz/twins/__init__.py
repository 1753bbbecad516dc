"""What is in both languages, by subject: random input, and what Python makes of it."""

import sys
import tomllib
from pathlib import Path

# wgsl_layouts.py, which cases on GPUs use, too
sys.path.append(str(Path(__file__).parents[2] / "browser/cases/py"))

ALL_WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
