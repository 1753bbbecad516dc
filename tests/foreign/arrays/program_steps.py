"""A program, statement by statement.

The programs are plain Python. Their only mark is a comment behind an assignment: `# a Tensor`
makes a Tensor of the assigned array where the program runs with Tensors, `# a Tensor: EXPRESSION`
evaluates that instead.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
_MARK = re.compile(r"# a Tensor(?:: (?P<expression>.+))?$")


@dataclass
class Step:
    """One statement; what it gives is compared where `checked` is true.

    tensor: what becomes a Tensor with Tensors: "" is what was assigned; None: nothing does.
    """

    source: str
    code: CodeType
    is_expression: bool
    stored: tuple[str, ...]
    names: tuple[str, ...]
    tensor: str | None
    checked: bool = False


def text_of(name: str) -> str:
    return (PROGRAMS / f"{name}.py").read_text("utf-8")


def title(name: str) -> str:
    """The first line of the docstring."""
    text = ast.get_docstring(ast.parse(text_of(name)))
    assert text, f"{name} has no docstring"
    return text.splitlines()[0]


def packages(name: str) -> list[str]:
    """What the program imports, without Python's own modules and ours."""
    found = set()
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    return sorted(found - {"io", "pathlib", "math", "kernels", "dlpack_web", "struct"})


def steps(name: str) -> list[Step]:
    """The statements behind the docstring. Those that use a name of a Tensor, or of what was made
    with one, are checked."""
    text = text_of(name)
    lines, used = text.splitlines(), set[str]()
    result = []
    for statement in ast.parse(text).body[1:]:
        step = _step(statement, lines)
        step.checked = bool(used & {*step.names})
        if step.tensor is not None or step.checked:
            used |= {*step.stored, *_receiver(statement)}
        result.append(step)
    return result


def one_line(statement: ast.AST) -> str:
    """Its source, however it is broken into lines."""
    return " ".join(ast.unparse(statement).split())


def _step(statement: ast.stmt, lines: list[str]) -> Step:
    mark = _MARK.search(lines[(statement.end_lineno or 0) - 1])
    tensor = None if mark is None else mark["expression"] or ""
    # Anew, so that no message of an error depends on the line in the file.
    (alone,) = ast.parse(ast.unparse(statement)).body
    if isinstance(alone, ast.Expr):
        code = compile(ast.Expression(alone.value), "<program>", "eval")
    else:
        code = compile(ast.Module([alone], []), "<program>", "exec")
    names = [*_names(statement)]
    stored = [name for name, is_stored in names if is_stored]
    assert mark is None or len(stored) == 1, ast.unparse(statement)
    return Step(
        source=one_line(statement),
        code=code,
        is_expression=isinstance(statement, ast.Expr),
        stored=tuple(dict.fromkeys(stored)),
        names=tuple(dict.fromkeys(name for name, _ in names)),
        tensor=tensor,
    )


def _receiver(statement: ast.stmt) -> Iterator[str]:
    """The name of x in a statement `x.call(...)`, which may keep what it is given."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            yield name


def _names(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """The names of the module that a statement uses, and whether it stores them."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id, isinstance(node.ctx, ast.Store)
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name, True
