"""What the README says about dtypes is what tests/dtypes.json says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_dtype_table_is_the_generated_one(host_python):
    with_table = runpy.run_path(str(ROOT / "tests" / "readme_table.py"))["with_table"]
    text = (ROOT / "README.md").read_text("utf-8")
    assert with_table(text) == text, "`make fix` writes the table anew"
    assert text.count("| with ml_dtypes |") == 19
