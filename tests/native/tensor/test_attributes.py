"""Every attribute of ndarray, and of the array API, is there, refused with words, or lacking for
a reason (attributes.py)."""

import re

import attributes
import numpy as np
import pytest
from conftest import IN_PYODIDE, OLD_NUMPY

import dlpack_web as dlw

# For each parameter of the array API that the functions here take, what may be given.
GIVEN = {
    "device": "cpu",
    "dl_device": (1, 0),
    "copy": None,
    "stream": None,
    "dtype": "float32",
    "max_version": (1, 3),
}


def test_every_attribute_is_decided():
    names = attributes.attributes_of(np.ndarray)
    assert len(names) > 50
    assert attributes.undecided(names) == [], (
        "Tensor needs them, a hint in py/dlpack_web/_tensor/hints.py, or a reason in "
        "tests/native/attributes.py"
    )


def test_a_new_attribute_is_not_decided():
    class Newer(np.ndarray):
        brand_new = _private = None

    new = set(attributes.attributes_of(Newer)) - set(vars(type("Plain", (), {})))
    found = attributes.undecided(sorted(new))
    assert found == ["brand_new"]


def test_every_function_is_decided():
    assert attributes.undecided_functions(attributes.FUNCTIONS) == []
    assert attributes.undecided_functions(["brand_new"]) == ["brand_new"]


def test_what_is_absent_is_absent():
    with dlw.empty(1) as tensor:
        assert [name for name in attributes.ABSENT if hasattr(tensor, name)] == []
    there = [name for name in attributes.ABSENT_FUNCTIONS if hasattr(dlw, name)]
    assert there == []


@pytest.mark.parametrize("name", attributes.attributes_of(np.ndarray))
def test_refusals_say_what_to_do(name):
    with dlw.empty(1) as tensor:
        error = attributes.refusal(tensor, name)
    if error is None:
        return
    assert re.search(r"\buse \w|\bt[.\[]", str(error))


def test_the_array_apis_parameters_are_taken():
    with dlw.empty(3) as t:
        places = ("stream", "max_version", "dl_device", "copy")
        t.__dlpack__(**{name: GIVEN[name] for name in places})
        assert t.__dlpack_device__() == GIVEN["dl_device"]
        t.to_device(GIVEN["device"], stream=None).release()
        first = {"empty": 3, "from_dlpack": t}
        for name in sorted({*attributes.FUNCTIONS} & {*dlw.__all__}):
            options = {
                each: GIVEN[each] for each in attributes.FUNCTIONS[name].split(", ")[1:]
            }
            getattr(dlw, name)(first.pop(name), **options).release()
        assert first == {}


@pytest.mark.skipif(
    IN_PYODIDE or OLD_NUMPY,
    reason="the page is of the NumPy in tools/requirements/dev.txt",
)
def test_the_page_is_up_to_date():
    text = attributes.PAGE.read_text("utf-8")
    assert attributes.with_tables(text) == text, "`make tables WHAT=arrays` writes it"


def test_a_row_too_few_or_too_many_is_found(monkeypatch):
    rows = "| a | b |\n|---|---|\n| c | d |"
    monkeypatch.setattr(attributes, "tables", lambda: {"One": rows})
    page = f"# Title\n\n## One\n\nWords.\n\n{rows}\n"
    assert attributes.with_tables(page) == page
    assert attributes.with_tables(page.replace("| c | d |\n", "")) == page
    assert attributes.with_tables(page + "| e | f |\n") == page
    with pytest.raises(AssertionError, match="no heading"):
        attributes.with_tables("# Title\n")
