"""The public names of the Python package, one a line: what it is, where it says it is from, what it takes.

`python public_names.py` writes them into public_names.txt. A change there is a change for users.
"""

import importlib
import inspect
import subprocess
import sys
from enum import Enum
from pathlib import Path

FILE = Path(__file__).with_name("public_names.txt")
ALWAYS = (
    "dlpack_web",
    "dlpack_web.webgpu",
    "dlpack_web.internal",
    "dlpack_web.backends",
)


def home_of(thing):
    """Its public module; rooms of the package are all the same here."""
    module = str(getattr(thing, "__module__", None))
    parts = module.split(".")
    if not parts[0].startswith("dlpack_web") or len(parts) == 1:
        return module
    private = any(part.startswith("_") for part in parts)
    return "dlpack_web._" if private else module


def parameters(thing):
    """As help() shows them, without annotations, which name private modules."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    nothing = inspect.Parameter.empty
    plain = [each.replace(annotation=nothing) for each in signature.parameters.values()]
    return str(inspect.Signature(plain))


def members(kind):
    ours = [base for base in kind.__mro__ if base.__module__.startswith("dlpack_web")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    return sorted(name for name in names if hasattr(kind, name))


def lines_of(name, thing):
    if inspect.ismodule(thing):
        yield f"{name}: module"
    elif isinstance(thing, type):
        bases = [
            base for base in thing.__mro__[1:-1] if home_of(base) != "dlpack_web._"
        ]
        known = ", ".join(base.__name__ for base in bases)
        said = f"{name}: class({known}) of {home_of(thing)}"
        if issubclass(thing, Enum):
            yield f"{said}: {', '.join(thing.__members__)}"
            return
        yield said
        if home_of(thing).startswith("dlpack_web"):
            for member in members(thing):
                value = getattr(thing, member)
                told = parameters(value) if callable(value) else ""
                yield f"{name}.{member}{told}"
    elif callable(thing):
        yield f"{name}{parameters(thing)}: of {home_of(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def names_of(module):
    found = importlib.import_module(module)
    public = [name for name in dir(found) if not name.startswith("_")]
    if module in ALWAYS:  # the others are what the module itself uses
        assert set(found.__all__) <= {*public, "__version__"}
        public = sorted(found.__all__)
    for name in public:
        yield from lines_of(f"{module}.{name}", getattr(found, name))


def found(python):
    """All of them, in a process of their own."""
    done = subprocess.run(
        [python, __file__, "print"], check=True, capture_output=True, text=True
    )
    return done.stdout


def main():
    import dlpack_web.backends  # for CPython, before what follows

    assert dlpack_web.__version__
    sys.platform = "emscripten"
    for module in ALWAYS:
        print("\n".join(names_of(module)))


if __name__ == "__main__":
    if sys.argv[1:] == ["print"]:
        main()
    else:
        FILE.write_text(found(sys.executable), "utf-8")
