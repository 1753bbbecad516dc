"""Pages, or parts of pages, generated from tables of the tests."""

import json

from repository import ROOT


def dtype_row(row: dict[str, object]) -> str:
    """A row of the table of dtypes, from an entry of tests/dtypes.json."""
    name, view = str(row["name"]), f"`{row['typed_array']}`"
    if name == "float16":
        view += " (`Uint16Array` in older browsers)"
    elif name.startswith("complex"):
        view += ", interleaved"
    elif int(str(row["bits"])) < 8:
        view += ", packed"
    elif row["numpy"] != "numpy":
        view += ", bytes"
    numpy = "yes" if row["numpy"] == "numpy" else "with ml_dtypes"
    wgsl = f"`{row['wgsl']}`" if row["wgsl"] else "\u2013"
    return f"| `{name}` | {numpy} | {view} | {wgsl} |\n"


def dtypes() -> str:
    rows = json.loads((ROOT / "tests" / "dtypes.json").read_text("utf-8"))
    head = "| dtype | NumPy | `tensor.data` | WGSL |\n|---|---|---|---|\n"
    return head + "".join(map(dtype_row, rows))


def pages() -> dict[str, str]:
    """Path in Sphinx's input folder -> text."""
    return {"_included/dtypes.md": dtypes()}
