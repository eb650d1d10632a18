"""Real parts that a test needs: a database, a browser, a sandbox, real data."""

import os

import pytest


def need(present: bool, part: str) -> None:
    """Skip, naming the missing part; under `EVENHAND_TEST_REQUIRE=all` (as in CI) fail instead."""
    if present:
        return
    if os.environ.get("EVENHAND_TEST_REQUIRE") == "all":
        pytest.fail(f"{part} is missing, and EVENHAND_TEST_REQUIRE=all forbids skipping")
    pytest.skip(f"{part} is missing")
