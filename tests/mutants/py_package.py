"""The Python package in ordinary CPython: tested by tests/native and tests/desktop. What runs
in a browser alone is left out."""

import ast
import os
import shutil
from functools import cached_property
from pathlib import Path
from types import CodeType

from covering import Covering, Suite
from limits import GIB
from model import BUILD, EQUIVALENT, INVALID, ROOT, SURVIVED, Mutant, Outcome, digest
from pytest_runs import Pool, Seconds, likeliest, run_tests, within

FOLDER = BUILD / "py"
Meaning = tuple[object, ...]
PACKAGE = ROOT / "py" / "dlpack_web"
NATIVE, DESKTOP = ROOT / "tests" / "native", ROOT / "tests" / "desktop"
PYTHONS = {
    NATIVE: ROOT / "build" / "venv" / "bin" / "python",
    DESKTOP: ROOT / "build" / "desktop" / "bin" / "python",
}
# They need JavaScript: tests/browser runs them, in minutes.
IN_BROWSERS = ("_backends/browser/*.py", "onnxruntime/*.py")
# Only `make test-dawn` runs them.
OVER_DAWN = ("_backends/desktop/dawn.py", "_backends/desktop/host.py")
# It starts another Python, so it is not known which lines it runs.
NAMES = "tests/native/test_public_names.py::"


class PyPackage:
    name = "py"
    rules = "universal.rules,python.rules"

    def __init__(self, budget: float):
        self.budget = budget

    def missing(self) -> str | None:
        if not PYTHONS[NATIVE].exists():
            return "build/venv (`make native`)"
        if not PYTHONS[DESKTOP].exists():
            return "build/desktop (`make build/desktop/.done`)"
        return None

    def files(self) -> list[Path]:
        every, tested = set(PACKAGE.rglob("*.py")), tested_here()
        print(
            "[mutants] py: not "
            + ", ".join(sorted(map(inside, every - tested)))
            + ", which run in a browser or over wgpudawn alone"
        )
        return sorted(tested)

    @cached_property
    def digest_of_tests(self) -> str:
        files = [*NATIVE.rglob("*.[pc]*"), *DESKTOP.rglob("*.py")]
        files += [*(ROOT / "tests" / "browser" / "cases" / "py").glob("*.py")]
        return digest(*(file.read_bytes() for file in sorted(files)))

    def tests_digest(self) -> str:
        return self.digest_of_tests

    @cached_property
    def covering(self) -> Covering:
        suites = [
            Suite(python, sorted(folder.rglob("test_*.py")))
            for folder, python in PYTHONS.items()
        ]
        package = FOLDER / "package"
        sources = digest(*(file.read_bytes() for file in sorted(PACKAGE.rglob("*.py"))))
        env = {"MUTANTS_ROOT": str(package)}
        return Covering(
            FOLDER, suites, sources, package, env, lambda them: {it: it for it in them}
        )

    def prepare(self) -> None:
        shutil.rmtree(FOLDER / "package", ignore_errors=True)
        lay_out(FOLDER / "package", {})
        self.covering.record()

    @cached_property
    def pools(self) -> dict[Path, Pool]:
        # Compiled files of a mutant are soon of no use.
        env = {"PYTHONDONTWRITEBYTECODE": "1"}
        return {suite: Pool(python, env) for suite, python in PYTHONS.items()}

    def try_out(self, mutant: Mutant, folder: Path) -> Outcome:
        source = (ROOT / mutant.file).read_text()
        text = mutant.text_of(source)
        try:
            if meaning(text) == meaning(source):
                return Outcome(EQUIVALENT, "the same bytecode")
        except (SyntaxError, ValueError):
            return Outcome(INVALID)
        name = inside(ROOT / mutant.file)
        first, last = statement(source, mutant.line)
        tests = self.covering.tests_of(
            name, lambda known: [line for line in known if first <= line <= last]
        )
        every, known = self.covering.read
        of_line = known.get(name, {})
        near = set().union(*(of_line.get(line, ()) for line in users(source, first)))
        if near - {""}:
            tests = {it: took for it, took in tests.items() if it in near}
        if any("" in of_line.get(line, ()) for line in range(first, last + 1)):
            tests |= {it: 0.0 for it in every if it.startswith(NAMES)}  # first of all
        if not tests:
            return Outcome(SURVIVED, "no test runs it")
        lay_out(folder / "package", {name: text})
        outcome = Outcome(SURVIVED)
        for suite in PYTHONS:
            prefix = f"{suite.relative_to(ROOT)}/"
            some = {it: took for it, took in tests.items() if it.startswith(prefix)}
            if some and outcome.status == SURVIVED:
                outcome = self.run_some(some, every, self.pools[suite], folder)
        return outcome

    def run_some(
        self, tests: Seconds, every: Seconds, pool: Pool, folder: Path
    ) -> Outcome:
        chosen = within(tests, self.budget / 2)
        first = within(likeliest(tests, every, slow=2), 5)
        outcome = Outcome(SURVIVED)
        for some in (first, chosen):
            if some and outcome.status == SURVIVED:
                outcome = run_tests(
                    some, folder, pool, folder / "package", address_bytes=64 * GIB
                )
                shutil.rmtree(folder / "pytest", ignore_errors=True)
        return outcome


def tested_here() -> set[Path]:
    left_out = (*IN_BROWSERS, *OVER_DAWN)
    return set(PACKAGE.rglob("*.py")) - {
        it for glob in left_out for it in PACKAGE.glob(glob)
    }


def lay_out(package: Path, instead: dict[str, str]) -> None:
    """The package, linked, but for those files."""
    for file in PACKAGE.rglob("*"):
        if file.suffix == ".pyc" or not file.is_file():
            continue
        name = inside(file)
        place = package / "dlpack_web" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if name in instead:
            place.write_text(instead[name])
        else:
            os.symlink(file, place)


def inside(file: Path) -> str:
    """Its path in the package, as the map of lines has it."""
    return file.relative_to(PACKAGE).as_posix()


def meaning(source: str) -> Meaning:
    """The bytecode, without docstrings, line numbers and what mypy alone looks at."""
    tree = OnlyWhatRuns().visit(ast.parse(source))
    return of_code(compile(tree, "a mutant", "exec", dont_inherit=True))


class OnlyWhatRuns(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body[0] = ast.Pass()
        if isinstance(node, ast.ClassDef) and any(map(is_protocol, node.bases)):
            node.body = [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        # From Python 3.13 on, a class knows its line.
        for position in node._attributes:
            setattr(node, position, 1 if position.endswith("lineno") else 0)
        return ast.fix_missing_locations(node)


def is_protocol(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id == "Protocol"


def of_code(code: CodeType) -> Meaning:
    constants = tuple(
        of_code(it) if isinstance(it, CodeType) else (type(it), repr(it))
        for it in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        code.co_flags,
    )
    return (
        code.co_name,
        code.co_code,
        code.co_exceptiontable,
        constants,
        names,
        counts,
    )


def users(source: str, line: int) -> set[int]:
    """Lines that use the private name which a statement of the module that begins there
    gives to a value, such as a table: importing runs the statement, so all tests do."""
    tree = ast.parse(source)
    names = {
        node.id
        for it in tree.body
        if isinstance(it, ast.Assign | ast.AnnAssign) and it.lineno == line
        for node in ast.walk(it)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in names
        and node.id.startswith("_")
    }


def statement(source: str, line: int) -> tuple[int, int]:
    """Lines of the innermost statement there; of one with a body, those of its head."""
    found = (0, 0)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno
        last = max(last or 0, node.lineno)
        if found[0] <= node.lineno <= line <= last:
            found = (node.lineno, last)
    return found if found[0] else (line, line)
