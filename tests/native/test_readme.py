"""What the README says about dtypes is what tests/dtypes.json says."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def documented(row):
    name, view = row["name"], f"`{row['typed_array']}`"
    if name == "float16":
        view += " (`Uint16Array` in older browsers)"
    elif name.startswith("complex"):
        view += ", interleaved"
    elif row["numpy"] != "numpy":
        view += ", bytes"
    numpy = "yes" if row["numpy"] == "numpy" else "with ml_dtypes"
    wgsl = f"`{row['wgsl']}`" if row["wgsl"] else "\u2013"
    return f"| `{name}` | {numpy} | {view} | {wgsl} |"


def test_dtype_table_is_complete(host_python):
    rows = json.loads((ROOT / "tests" / "dtypes.json").read_text("utf-8"))
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `\w+` \| (?:yes|with).*$", text, re.MULTILINE) == [
        documented(row) for row in rows
    ]
