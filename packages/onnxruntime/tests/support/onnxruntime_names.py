"""The public names of onnxruntime, and docs/onnxruntime_names.md: what each is in a page.

`python onnxruntime_names.py`, where PyPI's onnxruntime is installed, prints the names of the module and of the
classes that scripts use, as JSON.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnxruntime_names.md"
CLASSES = (
    "InferenceSession",
    "IOBinding",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
)


# Names that onnxruntime has by the way: no script uses them.
ABSENT = {
    "contextlib": "a module that onnxruntime imports",
    "import_capi_exception": "None, or why onnxruntime could not be loaded",
    "onnxruntime_validation": "a module that looks for the parts of onnxruntime",
}

# Asks in a page, with NAMES as `found` below: [kind, words] of each name.
ASK = """
import json
import dlpack_web_onnxruntime as ort
from dlpack_web_onnxruntime import _names as refused

def asked(owner, name):
    whole = owner == "onnxruntime"
    thing = ort if whole else getattr(ort, owner)
    if owner in ("SessionOptions", "RunOptions"):
        thing = thing()
    if why := {"onnxruntime": refused.REASONS, "InferenceSession": refused.METHODS}.get(
        owner, {}
    ).get(name):
        try:
            getattr(thing, name)(*[]) if whole else getattr(object.__new__(thing), name)()
        except ort.capi.onnxruntime_pybind11_state.NotImplemented as error:
            return ["refused", why] if why in str(error) else ["other words", str(error)]
        return ["not refused", ""]
    if not hasattr(thing, name):
        return ["absent", ""]
    words = " ".join((getattr(getattr(thing, name), "__doc__", None) or "").split())
    for kind, begin in {"nothing": "Nothing", "refused": "Raises NotImplemented: "}.items():
        if words.startswith(begin):
            return [kind, words.removeprefix(begin).split(". ")[0].rstrip(".")]
    return ["there", ""]

json.dumps([[owner, name, *asked(owner, name)] for owner, names in NAMES.items() for name in names])
"""


def public(owner: object) -> list[str]:
    return sorted(name for name in dir(owner) if not name.startswith("_"))


def page(version: str, asked: Iterable[tuple[str, str, str, str]]) -> str:
    """The text of PAGE. asked: owner, name, kind and words of each name."""
    rows: dict[str, dict[str, list[str]]] = {
        "there": {},
        "nothing": {},
        "refused": {},
        "absent": {},
    }
    for owner, name, kind, words in asked:
        full = name if owner == "onnxruntime" else f"{owner}.{name}"
        why = {"there": owner, "nothing": _said(words), "refused": words}.get(
            kind, ABSENT.get(full, "")
        )
        rows[kind].setdefault(why, []).append(full)
    tables = "\n\n".join(
        f"## {title}\n\n{_table(head, rows[kind])}"
        for kind, (title, head) in _PARTS.items()
    )
    return f"""# Names of onnxruntime

The public names of PyPI's onnxruntime {version}, and their behaviour in a page after `onnxruntime.install()`.
`make tables WHAT=onnxruntime` asks a page and writes the tables, and a test fails if a name is missing.

{tables}

{_UNCHECKED}"""


_UNCHECKED = """\
## Errors that WebGPU does not detect

On the CPU these are errors, as on the desktop. WebGPU does not check the elements of a run, and returns a result:

| input | on WebGPU |
|---|---|
| an index of `Gather` (or a similar operator) that is out of range | the element is 0 |
| `initial_h` or `initial_c` of an `LSTM` for another batch | elements of another row, or 0 |

If indices may be out of range, check them first, or run the model with `providers=["CPUExecutionProvider"]`.
Errors that the GPU reports raise an exception that names the session: a shader that needs a feature that the device lacks
(float16), out of memory, a buffer that is too large to be bound.
"""


_PARTS = {
    "there": ("Names that are there", "of | names"),
    "nothing": ("Names that do nothing", "why | names"),
    "refused": ("Names that raise NotImplemented", "with | names"),
    "absent": ("Names that are not there", "value | names"),
}


def _said(words: str) -> str:
    """Why nothing is done."""
    return words.removeprefix(":").strip()


def _table(head: str, rows: Mapping[str, list[str]]) -> str:
    cells = [
        (why, ", ".join(f"`{name}`" for name in names)) for why, names in rows.items()
    ]
    return "\n".join(
        [f"| {head} |", "|---|---|", *(f"| {why} | {names} |" for why, names in cells)]
    )


if __name__ == "__main__":
    import onnxruntime

    found = {"onnxruntime": public(onnxruntime)}
    found |= {name: public(getattr(onnxruntime, name)) for name in CLASSES}
    print(json.dumps({"version": onnxruntime.__version__, "names": found}))
