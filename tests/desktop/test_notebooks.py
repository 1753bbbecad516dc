"""The notebooks of web/lite on the desktop: all cells run. tests/lite compares them with a page's."""

import pytest
from notebook import NOTEBOOKS, lay_out, run
from notebooks import failed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("notebooks")
    lay_out(made)
    return made


@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_notebook(name, folder):
    assert failed(run(name, folder)) == []
