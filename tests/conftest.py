"""Fixtures that several packages share. Real parts only; a part that is missing is never skipped over in CI."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from evenhand.store.database import open_database
from tests.postgres import PostgresServer
from tests.real_parts import need
from tests.service import ServiceUnderTest, running_service

# The machine is noisy: Hypothesis decides by examples, never by the clock. What decides whether a change may land
# is not a draw either: there each test has the same examples every time, and elsewhere new ones.
settings.register_profile(
    "evenhand",
    deadline=None,
    derandomize=os.environ.get("EVENHAND_TEST_REQUIRE") == "all",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("evenhand")
# The library of the dataset hub looks for what it does not find here in the network unless told not to.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Servers of tests that run beside each other do not meet at the usual port of gRPC.
os.environ.setdefault("EVENHAND_GRPC_PORT", "off")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data beside the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    need(folder.is_dir(), "the folder ../shared/data with real data")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the session; tests take databases of their own from it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """The name of a database with the whole schema: copying it is quicker than making it again."""
    name = postgres_server.create_database()
    open_database(postgres_server.url(name)).close()
    return name


KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))]


def fresh_database(request: pytest.FixtureRequest, folder: Path, *, schema: bool) -> Iterator[str]:
    """The address of a database of the kind that is asked for; `schema`: where a copy is quicker, with its tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{folder / 'evenhand.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    template = request.getfixturevalue("postgres_template") if schema else "template0"
    with server.database(template) as url:
        yield url


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh database, once of each kind."""
    yield from fresh_database(request, tmp_path, schema=False)


@pytest.fixture(params=KINDS)
def service_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of the service, once of each kind."""
    yield from fresh_database(request, tmp_path, schema=True)


@pytest.fixture
def service(service_url: str) -> Iterator[ServiceUnderTest]:
    """A running server over a fresh database, once of each kind."""
    with running_service(service_url) as running:
        yield running
