"""Real sandboxes, each opened once."""

import shutil
from collections.abc import Iterator

import pytest
from tests.real_parts import need

from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.pool import Pool


@pytest.fixture(scope="session")
def bubblewrap() -> Iterator[Pool]:
    need(shutil.which("bwrap") is not None, "bubblewrap")
    with Pool(Bubblewrap()) as pool:
        yield pool


@pytest.fixture(params=["bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Pool:
    """Every back end in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Pool)
    return found
