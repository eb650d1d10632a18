"""Fixtures that several packages share. Real parts only; a part that is missing is never skipped over in CI."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.real_parts import need

# The machine is noisy: Hypothesis decides by examples, never by the clock.
settings.register_profile("evenhand", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evenhand")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data beside the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    need(folder.is_dir(), "the folder ../shared/data with real data")
    return folder
