"""Types of what every backend has: of the classes in _backends/model, the public members
that the browser's backend has, too."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ROOT / "py/dlpack_web/_backends"
# The class of the model, and its file, by the name of the protocol.
CLASSES = {
    "BackendKernel": ("Kernel", "kernels/kernel.py"),
    "BackendBatch": ("Calls", "kernels/batch.py"),
    "Backend": ("Backend", "backend.py"),
}
HEAD = """\
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol

from .. import _core
from .._core import Tensor
from .._layout.dtype import DType
from .checks import Arguments, Counts, Key, ShaderSource, Tensors
"""


def class_in(tree: ast.Module, name: str) -> ast.ClassDef:
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef))
    return next(each for each in classes if each.name == name)


def names_in(body: list[ast.stmt]) -> Iterator[str]:
    """What a module or class defines or imports."""
    for each in body:
        match each:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)


def members(found: ast.ClassDef, there: set[str]) -> Iterator[str]:
    for each in found.body:
        match each:
            case ast.AnnAssign(ast.Name(name), annotation) if name in there:
                yield f"    {name}: {ast.unparse(annotation)}"
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                if name not in there or (name[0] == "_" and name != "__len__"):
                    continue
                if len(each.args.args) > 1:
                    each.args.posonlyargs, each.args.args = each.args.args, []
                each.body = [ast.Expr(ast.Constant(...))]
                yield f"    {ast.unparse(each)}".replace(":\n    ", ": ")


def interface() -> str:
    browser = ast.parse((BACKENDS / "browser/__init__.py").read_text("utf-8"))
    text = HEAD
    for protocol, (name, file) in CLASSES.items():
        model = ast.parse((BACKENDS / "model" / file).read_text("utf-8"))
        is_module = protocol == "Backend"
        there = browser if is_module else class_in(browser, protocol[7:])
        lines = members(class_in(model, name), {*names_in(there.body)})
        text += f"\nclass {protocol}(Protocol):\n" + "\n".join(lines) + "\n"
    return text.replace("-> Kernel:", "-> BackendKernel:").replace(
        "-> Calls[Any]:", "-> BackendBatch:"
    )
