"""Messages of errors that JavaScript and Python have in common. They are written in
js/src, where a comment above names the function that returns them in Python, and its
arguments in the order of the values:

    // In Python: wrong_number(index, value, scalar)
    `binding ${index}: ${value} is not a valid ${declared.scalar}`,
"""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LITERAL = r"(?:`[^`]*`|\"[^\"]*\")"
MESSAGE = rf"// In Python: (\w+)\((.*)\)\n\s*({LITERAL}(?:\s*\+\s*{LITERAL})*)"
WORDS = {
    **runpy.run_path(str(ROOT / "py/dlpack_web/_layout/text.py"))["IN_PYTHON"],
    "byteOffset": "byte offset",
    "Infinity": "float('inf')",
}


def in_python(found: re.Match[str]) -> str:
    """A function that returns a message, in Python's words."""
    name, listed, literals = found.groups()
    text = "".join(part[1:-1] for part in re.findall(LITERAL, literals))
    for javascript, python in WORDS.items():
        text = re.sub(javascript, python, text)
    values, names = re.findall(r"\$\{[^{}]*\}", text), re.findall(r"\w+", listed)
    for value, argument in zip(values, names, strict=True):
        text = text.replace(value, f"{{{argument}}}", 1)
    arguments = ", ".join(f"{each}: object" for each in dict.fromkeys(names))
    prefix = "f" if names else ""
    return f"def {name}({arguments}) -> str:\n    return {prefix}{text!r}\n\n"


def messages_of(folder: str) -> str:
    sources = sorted((ROOT / folder).rglob("*.ts"))
    text = "\n".join(source.read_text("utf-8") for source in sources)
    functions = map(in_python, re.finditer(MESSAGE, text))
    return f"# Not from tables, but from the comments in {folder}: see tools/generate_messages.py.\n\n{''.join(functions)}"
