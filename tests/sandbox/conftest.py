"""Real sandboxes, each opened once. In CI a back end that cannot be opened fails the tests."""

import shutil
from collections.abc import Iterator

import pytest
from tests.docker_engine import IMAGE, missing, running_engine
from tests.real_parts import need

from evenhand.sandbox.bubblewrap import Bubblewrap, BubblewrapOptions
from evenhand.sandbox.docker import Docker, DockerOptions
from evenhand.sandbox.pool import Pool

DOCKER = pytest.param("docker", marks=pytest.mark.xdist_group("docker"))


@pytest.fixture(scope="session")
def bubblewrap() -> Iterator[Pool]:
    need(shutil.which("bwrap") is not None, "bubblewrap")
    with Pool(Bubblewrap()) as pool:
        yield pool


@pytest.fixture(scope="session")
def rlimits() -> Iterator[Pool]:
    """Bubblewrap as on a machine where control groups cannot be made."""
    need(shutil.which("bwrap") is not None, "bubblewrap")
    with Pool(Bubblewrap(BubblewrapOptions(control_groups=False))) as pool:
        yield pool


@pytest.fixture(scope="session")
def docker_options() -> Iterator[DockerOptions]:
    lacking = missing()
    need(lacking is None, lacking or "")
    with running_engine() as socket:
        yield DockerOptions(socket=socket, image=IMAGE)


@pytest.fixture(scope="session")
def docker(docker_options: DockerOptions) -> Iterator[Pool]:
    with Pool(Docker(docker_options)) as pool:
        yield pool


@pytest.fixture(params=["bubblewrap", DOCKER])
def sandbox(request: pytest.FixtureRequest) -> Pool:
    """Every back end in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Pool)
    return found


@pytest.fixture(params=["bubblewrap", "rlimits", DOCKER])
def any_limits(request: pytest.FixtureRequest) -> Pool:
    """Every back end in turn, and bubblewrap without control groups."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Pool)
    return found
