"""One server per kind of database for all contract tests; each test has a project of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.postgres import PostgresServer
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client

from evenhand.core.ids import new_id


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("sqlite", marks=pytest.mark.xdist_group("sqlite")),
        pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql")),
    ],
)
def shared_service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceUnderTest]:
    """A server that many tests share."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            folder: Path = tmp_path_factory.mktemp("shared")
            url = f"sqlite:///{folder / 'evenhand.db'}"
        else:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = stack.enter_context(server.database())
        yield stack.enter_context(running_service(url))


@pytest.fixture
def client(shared_service: ServiceUnderTest) -> Iterator[Client]:
    """An administrator in a project of this test's own."""
    one = Client(shared_service.url, ADMIN, f"project-{new_id()}")
    one.made("/v1/projects", {"id": one.project, "name": "test"})
    yield one
    one.close()
