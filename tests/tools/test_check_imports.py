"""check_imports.py finds circles of modules and of rooms, and libraries outside of their room."""

import check_imports
import pytest


@pytest.fixture
def lay_out(tmp_path):
    """A package of files with these sources."""

    def write(**sources):
        root = tmp_path / "package"
        for name, source in sources.items():
            file = root / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)
        return root

    return write


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from .b import x", {"room/b"}),
        ("from . import b", {"room/b"}),
        ("from . import attribute", {"room"}),
        ("from .. import top", {"top"}),
        ("from .. import attribute", {"__init__"}),
        ("from ..other.c import x", {"other/c"}),
        ("from ..other import c, d", {"other/c", "other"}),
        ("from ..other.deep import e", {"other/deep/e"}),
        ("import package.other.c", {"other/c"}),
        ("from package.other import c", {"other/c"}),
        ("def late():\n    from ..other.c import x", {"other/c"}),
        ("if TYPE_CHECKING:\n    from .b import x", {"room/b"}),
        ("import other.c\nfrom elsewhere import room", set()),
        ("from .a import itself", set()),
    ],
)
def test_imports_of_any_level(lay_out, source, expected):
    root = lay_out(
        __init__="",
        top="",
        room__in____init__="",
        room__in__a=source,
        room__in__b="",
        other__in____init__="",
        other__in__c="",
        other__in__deep__in__e="",
    )
    assert check_imports.python_graph(root)["room/a"] == expected


def test_rooms_have_no_circles_even_if_modules_have_none(lay_out):
    root = lay_out(
        low__in__a="",
        low__in__b="from ..high.c import x",
        high__in__c="from ..low.a import y",
    )
    graph = check_imports.python_graph(root)
    assert check_imports.find_circle(graph) is None
    rooms = check_imports.rooms_of(graph)
    assert rooms[""] == {"low": {"high"}, "high": {"low"}}
    assert check_imports.find_circle(rooms[""]) == ["high", "low", "high"]
    assert rooms["low"] == {"a": set(), "b": set()}


def test_rooms_in_rooms(lay_out):
    root = lay_out(
        out__in____init__="from . import deep",
        out__in__a="from .deep.c import x",
        out__in__deep__in____init__="",
        out__in__deep__in__c="from ..a import y",
    )
    rooms = check_imports.rooms_of(check_imports.python_graph(root))
    assert rooms["out"] == {"__init__": {"deep"}, "a": {"deep"}, "deep": {"a"}}


@pytest.mark.parametrize(
    "source",
    [
        "import gpu",
        "import gpu.parts",
        "from gpu.parts import x",
        "def f():\n    import gpu",
    ],
)
def test_a_library_stays_in_its_room(lay_out, source):
    alone = {"gpu": "backends/desktop"}
    strays = check_imports.strays
    root = lay_out(backends__in__desktop__in__a=source)
    assert strays(root, alone) == []
    lay_out(backends__in__desktop_too=source, gpu="", b="from . import gpu")
    assert strays(root, alone) == [
        "backends/desktop_too imports gpu, which only backends/desktop may"
    ]


def test_rooms_that_are_named_are_there():
    modules = check_imports.graphs()["py/dlpack_web"]
    assert {*check_imports.ALONE.values()} <= {*modules}
