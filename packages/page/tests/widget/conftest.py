from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab
import pytest
from browser import open_browser, open_page, where_it_should_be
from crashes import pytest_sessionfinish  # noqa: F401, a hook

WHERE = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Server]:
    folder: Path = tmp_path_factory.mktemp("lab")
    with lab.serving(folder) as found:
        yield found


@pytest.fixture(scope="session")
def opened(server: lab.Server, request: pytest.FixtureRequest) -> Iterator[Any]:
    with open_browser([]) as found:
        with open_page(found, server.url) as (page, _):
            page.goto(f"{server.url}api?token={lab.TOKEN}")
            request.config.stash[WHERE] = f"in Jupyter in {where_it_should_be(page)}"
        yield found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if where := terminalreporter.config.stash.get(WHERE, None):
        terminalreporter.write_line(where)


@pytest.fixture
def pages(opened: Any) -> Iterator[Any]:
    """Makes pages, each with storage of its own."""
    made = []

    def new(script: str = "") -> Any:
        context = opened.new_context()
        made.append(context)
        page = context.new_page()
        page.set_default_timeout(lab.LIMIT_S * 1000)
        if script:
            page.add_init_script(script)
        return page

    yield new
    for context in made:
        context.close()
