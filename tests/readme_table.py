"""The README's table of dtypes, made from tests/dtypes.json; as a script: writes it."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = re.compile(r"(?:^\| `\w+` \| (?:yes|with).*\n)+", re.MULTILINE)


def line(row):
    name, view = row["name"], f"`{row['typed_array']}`"
    if name == "float16":
        view += " (`Uint16Array` in older browsers)"
    elif name.startswith("complex"):
        view += ", interleaved"
    elif row["bits"] < 8:
        view += ", packed"
    elif row["numpy"] != "numpy":
        view += ", bytes"
    numpy = "yes" if row["numpy"] == "numpy" else "with ml_dtypes"
    wgsl = f"`{row['wgsl']}`" if row["wgsl"] else "\u2013"
    return f"| `{name}` | {numpy} | {view} | {wgsl} |\n"


def with_table(text):
    """The README's text with the rows as they should be."""
    rows = json.loads((ROOT / "tests" / "dtypes.json").read_text("utf-8"))
    return ROWS.sub("".join(map(line, rows)).replace("\\", r"\\"), text)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text("utf-8")), "utf-8")
