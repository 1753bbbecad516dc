"""The notebooks of web/lite on the desktop: all cells run. tests/lite compares them with a page's."""

import os

import pytest
from notebook import NOTEBOOKS, lay_out, run
from notebooks import failed

# Both take half a minute: `make test-all` runs all of them.
LONG = {"images", "train"}
SOME = {*NOTEBOOKS} - LONG


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("notebooks")
    lay_out(made)
    return made


@pytest.mark.parametrize("name", sorted(NOTEBOOKS if "WHOLE" in os.environ else SOME))
def test_notebook(name, folder):
    assert failed(run(name, folder)) == []
