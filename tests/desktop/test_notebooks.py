"""The notebooks of web/lite on the desktop: they say what they say in a page."""

import outputs
import pytest
from notebook import NOTEBOOKS, lay_out, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("notebooks")
    lay_out(made)
    return made


def test_every_notebook_is_expected():
    assert {path.stem for path in NOTEBOOKS.glob("*.py")} == set(outputs.EXPECTED)


@pytest.mark.parametrize("name", outputs.EXPECTED)
def test_notebook(name, folder):
    outputs.check(name, run(name, folder))
