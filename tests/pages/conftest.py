"""One server with the demonstration's data and one browser for the tests of pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import chromium
from tests.pages.site import Site, open_tab
from tests.service import running_service

from evenhand.server.demo import fill


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the browser and the server."""
    for item in items:
        if "tests/pages" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("chromium"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it runs, nothing else in this thread can run an event loop."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demonstration project. Tests that change something make a project of their own with `site.client`."""
    folder: Path = tmp_path_factory.mktemp("demo")
    with running_service(f"sqlite:///{folder / 'demo.db'}") as service:
        assert service.database.write_now(fill)
        yield Site(service)


@pytest.fixture
def tab(browser: Browser, demo: Site) -> Iterator[Page]:
    """A tab of somebody who is logged in as an administrator; it must stay silent and on this host."""
    with open_tab(browser, demo) as opened:
        yield opened
