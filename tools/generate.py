#!/usr/bin/env python3
"""Writes what tools/tables describes into C, TypeScript and Python: the files named
`generated`; and the version of pyproject.toml into all files that have it. With --check it
only names those that differ."""

import json
import re
import runpy
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HEAD = "Generated from tools/tables by `make generate`: do not edit."
LANGUAGES = {  # the comment above, and what formats the text
    ".h": (f"/* {HEAD} */\n", "build/venv/bin/clang-format --assume-filename={}"),
    ".py": (f'"""{HEAD}"""\n', "build/venv/bin/ruff format --stdin-filename={} -"),
    ".pyi": (f'"""{HEAD}"""\n', "build/venv/bin/ruff format --stdin-filename={} -"),
    ".ts": (f"/** {HEAD} */\n", "node_modules/.bin/biome format --stdin-file-path={}"),
}
STRINGS, NUMBERS = "Record<string, string>", "Record<string, number>"
NEXT = " \\\n"  # line of a macro


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / f"tools/tables/{name}.toml").read_text())


def each(rows: Iterable[Any], template: str, end: str = "\n") -> str:
    """The template with the members of each row; {_} is a row that is no table."""
    tables = (row if isinstance(row, dict) else {"_": row} for row in rows)
    return end.join(template.format(**row) for row in tables)


def export(comment: str, name: str, value: Any) -> str:
    return f"/** {comment} */\nexport const {name} = {json.dumps(value, ensure_ascii=False)};\n\n"


TYPES, WEBGPU, DLPACK, WGSL, HINTS, MESSAGES, LIBRARIES = map(
    read, ("dtypes", "webgpu", "dlpack", "wgsl", "hints", "messages", "adapters")
)
DEVICES: list[dict[str, Any]] = DLPACK["devices"]
HOSTS = [row for row in DEVICES if row.get("host")]
DTYPES: list[dict[str, Any]] = TYPES["dtypes"]
ONNX: list[dict[str, Any]] = TYPES["onnx"]["types"]

for row in DTYPES:
    array, note = row.get("array", "Uint8Array"), TYPES["notes"].get(row["name"])
    row["number"] = TYPES["codes"][row["code"]]
    row["comment"] = f"/** {note} */\n" if note else ""
    row["type"] = array.replace("Float16Array", "Halves | Uint16Array")
    row["kind"] = [row["number"], row["bits"], *row.get("ieee", [])]
    row["view"] = f", {array}" if "array" in row else ""
WIDTHS = sorted({row["bits"] for row in DTYPES})
NUMBERED = []
for code in TYPES["codes"]:
    rows = [row for row in DTYPES if row["code"] == code]
    for row in rows[:1]:
        name = row["name"].removesuffix(str(row["bits"]))
        widths = sum(1 << WIDTHS.index(each["bits"]) for each in rows)
        NUMBERED.append(f'X({code}, "{name}", {name != row["name"]:d}, {widths:#x})')

ADAPTERS: dict[str, dict[str, Any]] = LIBRARIES["adapters"]
for name, row in ADAPTERS.items():
    row["name"] = name
    keys = {"install": "install", "useDevice": "use"}
    more = ((keys[each], each) for each in row["more"])
    functions = ("give", row["give"]), ("take", row["take"]), *more
    row["functions"] = ", ".join(f"{key}: {name}.{each}" for key, each in functions)
CONVERSIONS: list[dict[str, Any]] = TYPES["conversions"]
CONVERTED: dict[str, list[str]] = {}  # what each dtype may become
DTYPE = {row["name"]: row for row in DTYPES}
for row in CONVERSIONS:
    CONVERTED.setdefault(row["from"], []).append(row["to"])
    ends = [DTYPE[row[end]] for end in ("from", "to")]
    row["pair"] = ", ".join(f"{end['code']}, {end['bits']}" for end in ends)
    row.setdefault("numbers", 1)
NARROWER = {row["from"]: row["to"] for row in CONVERSIONS if row.get("narrows")}
BECOME = [f"{source} to {' or '.join(to)}" for source, to in CONVERTED.items()]

INSTEAD: dict[str, str] = {}
for row in HINTS["tensor"]:
    known = INSTEAD.get(row["instead"], "")
    INSTEAD[row["instead"]] = f"{known} {row['names']}".strip()

FILES: dict[str, str] = {}
FILES["wasm/generated.h"] = f"""\
#ifndef DLW_GENERATED_H_
#define DLW_GENERATED_H_
/* DLDeviceType. */
enum {{
{each(DEVICES, "{name} = {value},")}
}};
/* Those whose memory the CPU can read, as bits. */
#define DLW_HOST_DEVICES ({each(HOSTS, "1u << {name}", " | ")})
/* X(DLDeviceType). */
#define DLW_DEVICES(X) \\
{each(DEVICES, "X({name})", NEXT)}
/* Flags of DLManagedTensorVersioned: 64 bits wide, because `1UL << n` has 32 bits on
 * wasm32, and its complement would clear the upper half (CONFORMANCE rule 7). */
{each(DLPACK["flags"], "#define DLPACK_FLAG_BITMASK_{name} UINT64_C({value})")}
/* Maximum number of axes, as in NumPy. */
#define DLW_MAX_NDIM {DLPACK["max_ndim"]}
/* DLDataTypeCode. */
enum {{
{each(TYPES["codes"].items(), "{_[0]} = {_[1]},")}
}};
/* X(code, bits, name) for each dtype. */
#define DLW_DTYPES(X) \\
{each(DTYPES, 'X({code}, {bits}, "{name}")', NEXT)}
/* The bits that elements of one lane have. */
#define DLW_WIDTHS {{{", ".join(map(str, WIDTHS))}}}
/* X(code, name, numbered, widths). numbered: names are `name` and the bits. Bit k of widths
 * is set if elements with the bits of DLW_WIDTHS[k] exist. */
#define DLW_DTYPE_CODES(X) \\
{NEXT.join(NUMBERED)}
/* X(from_code, from_bits, to_code, to_bits, numbers, convert): the functions that convert
 * elements, of so many numbers. */
#define DLW_CONVERSIONS(X) \\
{each(CONVERSIONS, "X({pair}, {numbers}, {by})", NEXT)}
#endif
"""
FILES["js/src/core/generated.ts"] = f"""\
import type {{ Float16Array as Halves }} from "./globals.js";
/** The typed array that `tensor.data` is, by dtype. */
export interface DTypeArrays {{
{each(DTYPES, "{comment}{name}: {type};")}
}}
const {{ Float16Array = Uint16Array }} = globalThis as unknown as {{ Float16Array?: typeof Uint16Array }};
/** Of each dtype: name, code, bits, and the class of `data` if that is not Uint8Array. */
export const DTYPES = [
{each(DTYPES, '["{name}", {number}, {bits}{view}],')}
] as const;
/** What elements may become during a copy. */
export interface Conversions {{
{each(((source, " | ".join(map(repr, to))) for source, to in CONVERTED.items()), "{_[0]}: {_[1]};")}
}}
export const CONVERSIONS = {json.dumps(CONVERTED)};
{export("The same, for messages.", "BECOME", ", ".join(BECOME))}{export("What makes a tensor of other values, by a property of them.", f"MADE_BY: {STRINGS}", LIBRARIES["made_by"])}{export("For dtypes that WGSL lacks.", f"NARROWER: {STRINGS}", NARROWER)}"""
FILES["js/src/webgpu/errors/generated.ts"] = export(
    "What lines of other languages have, and the WGSL for it.",
    f"HELP: {STRINGS}",
    HINTS["wgsl"],
)
FILES["js/src/core/dlpack.ts"] = f"""\
/** `DLDeviceType`. */
{each((row for row in DEVICES if "js" in row), "export const {js} = {value};")}
/** `flags`. */
{each(DLPACK["flags"], "export const {name} = {value};")}
/** Maximum number of axes, as in NumPy. */
export const MAX_NDIM = {DLPACK["max_ndim"]};
"""
# Tables that only packages have, in their js/src/generated.ts: those that it exports.
FOR_PACKAGES = {
    "KINDS": export(
        "Code, bits and, of floats below 32 bits, bits of exponent and mantissa, and bias.",
        "KINDS: Record<string, readonly number[]>",
        {row["name"]: row["kind"] for row in DTYPES},
    ),
    "ELEMENTS": export(
        "onnxruntime's words for TensorProto.DataType.",
        f"ELEMENTS: {STRINGS}",
        {row["number"]: row["word"] for row in ONNX},
    ),
}
for file in ROOT.glob("packages/*/js/src/generated.ts"):
    exported = re.findall(r"(?m)^export const (\w+)", file.read_text())
    tables = [FOR_PACKAGES[name] for name in exported]
    FILES[file.relative_to(ROOT).as_posix()] = "".join(tables)
FILES["js/src/open/generated.ts"] = (
    export("In .npy files, by dtypes.", f"NPY: {STRINGS}", TYPES["npy"])
    + export("By safetensors' names.", f"SAFETENSORS: {STRINGS}", TYPES["safetensors"])
    + export("Bits, not loaded.", f"SUB_BYTE: {NUMBERS}", TYPES["safetensors_sub_byte"])
    + export("What ml_dtypes writes.", f"ML_DTYPES: {STRINGS}", HINTS["ml_dtypes"])
)
GPU = [row["dtype"] for row in ONNX if row.get("web") == "gpu"]
CPU = [row["dtype"] for row in ONNX if row.get("web") in ("gpu", "cpu")]
ORT_WEB = {row["dtype"]: row["number"] for row in ONNX if "web" in row}
ORT_WORDS = {
    row["dtype"]: row["word"]
    for row in ONNX
    if "web" in row and row["word"] != row["dtype"]
}
FILES["js/src/adapters/all.ts"] = f"""\
{each(ADAPTERS.values(), 'import * as {name} from "./{name}.js";')}

export {{ shareDevice }} from "./devices.js";

/** All adapters, for Python, with the same names in each. */
export const adapters = {{
{each(ADAPTERS.values(), "{name}: {{ {functions} }},")}
}};
"""
FILES["js/src/adapters/generated.ts"] = export(
    "The dtypes of onnxruntime-web on WebGPU.", "ON_GPU", GPU
) + export("Those on the CPU.", "ON_CPU", CPU)
MANIFEST = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = MANIFEST["project"]["version"]
PLATFORMS = ".".join(MANIFEST["tool"]["dlpack-web"]["pyodide"]["platforms"])
WHEEL = f"dlpack_web-{VERSION}-cp312-abi3-{PLATFORMS}.whl"
FILES["js/src/pyodide/generated.ts"] = (
    export("The version of this JavaScript and of its wheel.", "VERSION", VERSION)
    + export(
        "The ABIs of Pyodide for which the wheel is built, as its name lists them.",
        "ABIS: readonly string[]",
        re.findall(r"pyemscripten_(\d+_\d+)_wasm32", PLATFORMS),
    )
    + f"""\
/** The wheel beside this code in the npm package; bundlers recognise this form. */
export const shippedWheel = () => new URL("../../../dist/{WHEEL}", import.meta.url);
"""
)
OPTIONS: list[dict[str, Any]] = WEBGPU["options"]
NEEDED = {
    "names": 'a list of names: ["shader-f16"]',
    "text": "a string",
    "flag": "a boolean",
}
TS_TYPES = {"names": "(Iterable<string> & object)", "text": "string", "flag": "boolean"}
PY_TYPES = {"names": "Iterable[str]", "text": "str", "flag": "bool"}
for row in OPTIONS:
    kind = row["kind"]
    values = kind if isinstance(kind, list) else []
    row["needed"] = " or ".join(values) or NEEDED[kind]
    row["ts"] = " | ".join(map(json.dumps, values)) or TS_TYPES[kind]
    row["py"] = f"Literal{values}" if values else PY_TYPES[kind]
    row["nl"], row["doc"] = "\n", " ".join(row["doc"].split())
    row["told"] = textwrap.fill(
        row["doc"], 84, initial_indent=" " * 8, subsequent_indent=" " * 8
    )
OF_ADAPTER = [row["name"] for row in OPTIONS if row.get("adapter")]
CHECKS = {row["name"]: [row["kind"], row["needed"]] for row in OPTIONS}
FILES["js/src/webgpu/device/generated.ts"] = f"""\
{export("Options of a request by WebGPU's names in its descriptor.", f"REQUEST: {STRINGS}", HINTS["request"])}
/** WebGPU's limits, by their names in `GPUSupportedLimits`. */
export type LimitName = {each(WEBGPU["limits"], "'{_}'", " | ")};
/** Requested by default. */
export const DEFAULT_LIMITS = {{
{each(WEBGPU["default_limits"], "{_}: Number.POSITIVE_INFINITY,")}
}};
export const DEFAULT_FEATURES = {json.dumps(WEBGPU["default_features"])};
/** Options beside the limits. */
export interface Options {{
{each(OPTIONS, "/** {doc} */{nl}{name}?: {ts} | undefined;")}
}}
/** The kind of each, and what it must be. */
export const OPTIONS: Record<string, readonly [kind: string | readonly string[], needed: string]> = {json.dumps(CHECKS)};
/** Those that requestAdapter() takes. */
export const OF_ADAPTER: readonly string[] = {json.dumps(OF_ADAPTER)};
"""
SHADERS = WGSL["numbers"]
PARTS = {
    "main": WGSL["main"].rstrip(),
    "width": str(SHADERS["WIDTH"]),
    "chunk": str(SHADERS["WIDTH"] * SHADERS["PER_INVOCATION"]),
}
PART = re.compile(rf"\$({'|'.join(PARTS)})\b")
SOURCES = {}
for name, text in WGSL["sources"].items():
    inserted = PART.sub(lambda found: PARTS[found[1]], text)
    SOURCES[name] = PART.sub(lambda found: PARTS[found[1]], inserted)  # in main
FILES["js/src/webgpu/formulas/generated.ts"] = "\n".join(
    (
        each(SHADERS.items(), "export const {_[0]} = {_[1]};"),
        each(
            ((name, " ".join(words.split())) for name, words in WGSL["names"].items()),
            "export const {_[0]} = '{_[1]}';",
        ),
        each(SOURCES.items(), "export const {_[0]} = `{_[1]}`;"),
    )
)
FILES["py/dlpack_web/_formulas/generated.py"] = "\n".join(
    (
        "# ruff: noqa: SIM905",
        each(SHADERS.items(), "{_[0]} = {_[1]}"),
        each(WGSL["names"].items(), '{_[0]} = frozenset("""{_[1]}""".split())'),
        each(SOURCES.items(), '{_[0]} = """{_[1]}"""'),
    )
)
FILES["py/dlpack_web/_layout/__init__.py"] = f'''\
# ruff: noqa: N815
from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, TypedDict

class DLDeviceType(IntEnum):
    """Types of device, with the names and values of DLPack 1.3 and, from kDLTPU on, of
    its main branch.

    >>> dlw.DLDeviceType.kDLWebGPU.value
    15
    """

{each(DEVICES, "    {name} = {value}")}

HOST_DEVICES = {{{each(HOSTS, "DLDeviceType.{name}", ", ")}}}
MAX_NDIM = {DLPACK["max_ndim"]}
NPY = {TYPES["npy"]}
SAFETENSORS = {TYPES["safetensors"]}
SUB_BYTE = {TYPES["safetensors_sub_byte"]}

class Limits(TypedDict, total=False):
    """WebGPU's limits."""

{each(WEBGPU["limits"], "    {_}: float")}

class DeviceOptions(Limits, total=False):
    """Keyword arguments of `request_device`: the limits of the device by WebGPU's names,
    in bytes or counts, where math.inf requests the adapter's maximum, and:

{each(OPTIONS, "    {name}{nl}{told}{nl}")}
    A dict of this type can be passed as `**options`.

    Examples
    --------
    >>> options: dlw.webgpu.DeviceOptions = {{"maxBufferSize": 2**28}}
    >>> device = await dlw.webgpu.request_device(**options)
    >>> device.gpu.limits.maxBufferSize == 2**28
    True
    """

{each(OPTIONS, "    {name}: {py}")}

DeviceOptions.__module__ = "dlpack_web.webgpu"  # where users find it

AdapterName = Literal{[*ADAPTERS]}
# For dtypes that WGSL lacks.
NARROWER = {NARROWER}
# What to say of mistakes: see tools/tables/hints.toml.
INSTEAD = {INSTEAD}
ML_DTYPES = {HINTS["ml_dtypes"]}
'''
# In Pyodide JavaScript has these.
FILES["py/dlpack_web/_backends/model/generated.py"] = f"""\
# Of options, the kind and what each must be; those of an adapter.
OPTIONS: dict[str, tuple[str | list[str], str]] = {{{each(CHECKS.items(), "{_[0]!r}: ({_[1][0]!r}, {_[1][1]!r}),")}}}
OF_ADAPTER = {OF_ADAPTER}
DEFAULT_LIMITS = {tuple(WEBGPU["default_limits"])}
DEFAULT_FEATURES = {tuple(WEBGPU["default_features"])}
REQUEST = {HINTS["request"]}
HELP = {HINTS["wgsl"]}
"""

WORDS = (
    MESSAGES["in_python"]
    | runpy.run_path(str(ROOT / "py/dlpack_web/_layout/text.py"))["IN_PYTHON"]
)


def message(name: str, text: str, in_python: bool) -> str:
    """A function that returns a message with the values of its parameters."""
    names = dict.fromkeys(re.findall(r"\${(\w+)}", text))
    if not in_python:
        name = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
        values = ", ".join(f"{each}: Value" for each in names)
        return f"export const {name} = ({values}): string => `{text}`;"
    for javascript, python in WORDS.items():
        text = re.sub(javascript, python, text)
    numbers = {each: f"{{{number}}}" for number, each in enumerate(names)}
    text = re.sub(r"\${(\w+)}|[{}]", lambda it: numbers.get(it[1], 2 * it[0]), text)
    return f"{name} = {text!r}.format"


for path, tables in {
    "js/src/webgpu/messages.ts": ["messages"],
    "js/src/webgpu/device/messages.ts": ["request"],
    "py/dlpack_web/_backends/model/messages.py": ["messages", "request"],
}.items():
    FILES[path] = "" if path.endswith(".py") else "type Value = string | number;\n"
    FILES[path] += "\n".join(
        message(name, text, path.endswith(".py"))
        for table in tables
        for name, text in MESSAGES[table].items()
    )

# The same in Python: those that it assigns.
PY_FOR_PACKAGES = {
    "ONNX": f"# onnxruntime-web's numbers of dtypes.\nONNX = {ORT_WEB}\n",
    "NUMPY": f"# Those that NumPy has.\nNUMPY = {[name for name in TYPES['npy'] if name in ORT_WEB]}\n",
    "ONNX_WORDS": f"# Its words for them, where they differ.\nONNX_WORDS = {ORT_WORDS}\n",
}
for file in ROOT.glob("packages/*/py/*/_generated.py"):
    assigned = re.findall(r"(?m)^(\w+) = ", file.read_text())
    text = "".join(PY_FOR_PACKAGES[name] for name in assigned)
    FILES[file.relative_to(ROOT).as_posix()] = text

# What precedes the version in files that people write.
OF_PACKAGE = r'"name": "dlpack-web[\w-]*",\s+"version": "'
BEFORE_VERSION = {
    "package.json": OF_PACKAGE,
    "package-lock.json": rf'{OF_PACKAGE}|"dlpack-web": "',
    "CITATION.cff": r"^version: ",
    "README.md": r"^Status: version ",
    "py/dlpack_web/__init__.py": r'^__version__ = "',
}
for project in ROOT.glob("packages/*/p*"):
    path = project.relative_to(ROOT).as_posix()
    if project.name == "pyproject.toml":
        BEFORE_VERSION[path] = r'^version = "|"dlpack-web=='
    elif project.name == "package.json":
        BEFORE_VERSION[path] = rf'{OF_PACKAGE}|"dlpack-web": "'
for pattern in ("py/*/__init__.py", "js/src/pyodide.ts"):
    for file in ROOT.glob(f"packages/*/{pattern}"):
        path = file.relative_to(ROOT).as_posix()
        BEFORE_VERSION[path] = r'^_VERSION = "|^  version: "|/dlpack_web_\w+-'

stale: list[str] = []


def put(path: str, made: str) -> None:
    """Writes a file, or with --check only names it."""
    file = ROOT / path
    if file.exists() and file.read_text() == made:
        return
    stale.append(path)
    if "--check" not in sys.argv:
        file.write_text(made)


for path, before in BEFORE_VERSION.items():
    place = re.compile(rf"({before})[\w.+]+", re.MULTILINE)
    put(path, place.sub(rf"\g<1>{VERSION}", (ROOT / path).read_text()))
# The entry points of adapters.
manifest = (ROOT / "package.json").read_text()
entries = each(
    ADAPTERS.values(), '    "./{name}": "./js/dist/adapters/{name}.js",\n', ""
)
others = re.sub(
    r' *"\./\w+": "\./js/dist/adapters/(?!devices)\w+\.js",\n', "", manifest
)
put(
    "package.json",
    re.sub(r'("exports": \{\n.*\n|"alias": \{\n)', rf"\1{entries}", others),
)
# A package owns the protocol's types, and the bridge has a copy.
for owned in ROOT.glob("packages/*/js/src/protocol.ts"):
    copied = (
        "/** `make generate` copies this file from a package: do not edit it here. */\n"
    )
    put("js/src/core/protocol.ts", copied + owned.read_text())
for path, text in FILES.items():
    head, formatter = LANGUAGES[Path(path).suffix]
    command, given = formatter.format(path).split(), f"{head}\n{text}"
    put(path, subprocess.check_output(command, input=given, text=True, cwd=ROOT))
print("".join(f"[generate] {path}\n" for path in stale), end="")
if stale and "--check" in sys.argv:
    sys.exit("tools/tables or pyproject.toml says otherwise: run `make generate`")
