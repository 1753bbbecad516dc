#!/usr/bin/env python3
"""Writes the types of what Python calls in JavaScript, by subject: js/src/pyodide/calls.ts has the subjects of
the bridge, entries.ts those of what stands on it, packages/*/js/src/calls.ts those of packages. Reads the
declarations in js/dist, which `make js` makes. --check: fails if a file is another one."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
JS = ROOT / "js" / "dist"
FILE = ROOT / "py" / "dlpack_web" / "_backends" / "browser" / "calls.pyi"
HEAD = '''"""What Python calls in JavaScript, by subject. Made by tools/make_calls.py."""

from collections.abc import Awaitable
from typing import Any, Never, Protocol
'''
TYPES = {
    "number": "float",
    "boolean": "bool",
    "string": "str",
    "DTypeName": "str",
    "void": "None",
    "never": "Never",
    # The aliases of js/src/pyodide/numbers.ts.
    **dict.fromkeys(
        re.findall(
            r"export type (\w+) = number;", (JS / "pyodide/numbers.d.ts").read_text()
        ),
        "int",
    ),
}
IMPORT = re.compile(r'(?:import|export) (?:type )?\{([^}]*)\} from "([^"]+)\.js";')
CLASS = r"export declare class {}(?:<[^>]*>)? \{{\n(.*?)\n\}}"
MEMBER = re.compile(r"^    (readonly |get )?(\w+)(?:\((.*)\))?: (.*?);?$", re.MULTILINE)


def split(text: str) -> list[str]:
    """At the commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text.replace("=>", "→"):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


class Declarations:
    def __init__(self) -> None:
        self.written: dict[str, str] = {}  # classes by name, in order

    def type(self, text: str, file: Path) -> str:
        if text.endswith(" | undefined"):
            found = self.type(text.removesuffix(" | undefined"), file)
            return found if found == "Any" else f"{found} | None"
        if promised := re.fullmatch(r"Promise<(.*)>", text):
            return f"Awaitable[{self.type(promised[1], file)}]"
        if text in TYPES:
            return TYPES[text]
        return text if re.fullmatch(r"\w+", text) and self.add(text, file) else "Any"

    def parameter(self, text: str, file: Path) -> str:
        name, kind = text.split(":", 1)
        if name.startswith("..."):
            return f"*{name[3:]}: {self.type(kind.strip().removesuffix('[]'), file)}"
        default = " = ..." if name.endswith("?") else ""
        return f"{name.rstrip('?')}: {self.type(kind.strip(), file)}{default}"

    def member(self, found: re.Match[str], file: Path) -> str:
        how, name, given, kind = found.groups()
        if given is None or how == "get ":
            return f"    {name}: {self.type(kind, file)}"
        parameters = [self.parameter(each, file) for each in split(given)]
        at = next(
            (i for i, each in enumerate(parameters) if each[0] == "*"), len(parameters)
        )
        if at:
            parameters.insert(at, "/")
        return f"    def {name}({', '.join(['self', *parameters])}) -> {self.type(kind, file)}: ..."

    def add(self, name: str, file: Path) -> bool:
        """Writes a class that a file of a subject, or one beside it, declares."""
        text = file.read_text()
        body = re.search(CLASS.format(name), text, re.DOTALL)
        if body is None:
            for names, path in IMPORT.findall(text):
                if path.startswith("./") and name in re.findall(r"\w+", names):
                    return self.add(name, file.parent / f"{path}.d.ts")
            return False
        if name not in self.written:
            self.written[name] = ""
            members = (self.member(each, file) for each in MEMBER.finditer(body[1]))
            self.written[name] = "\n".join([f"class {name}(Protocol):", *members])
        return True


def declarations() -> str:
    found = Declarations()
    bridge, entries = JS / "pyodide/calls.d.ts", JS / "pyodide/entries.d.ts"
    found.add("PythonCalls", bridge)
    subjects = [found.written.pop("PythonCalls").replace("PythonCalls", "Calls")]
    for names, path in IMPORT.findall(entries.read_text()):
        name, _, subject = names.strip().partition(" as ")
        if not subject:
            continue  # a type of the bridge
        found.add(name, (entries.parent / f"{path}.d.ts").resolve())
        subjects.append(f"    {subject}: {name}")
    return "\n\n".join([HEAD, *found.written.values(), "\n".join(subjects)]) + "\n"


def declarations_in(package: Path) -> str:
    found, calls = Declarations(), package / "js/dist/calls.d.ts"
    for name in re.findall(r"export declare class (\w+)", calls.read_text()):
        found.add(name, calls)
    return "\n\n".join([HEAD, *found.written.values()]) + "\n"


made = {FILE: declarations()}
for calls in ROOT.glob("packages/*/js/src/calls.ts"):
    package = calls.parents[2]
    file = package / f"py/dlpack_web_{package.name}/_calls.pyi"
    made[file] = declarations_in(package)
for file, text in made.items():
    if "--check" not in sys.argv:
        file.write_text(text)
    elif file.read_text() != text:
        path = file.relative_to(ROOT)
        sys.exit(f"{path} is not what JavaScript has: run `make generate`")
