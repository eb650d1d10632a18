"""How long to wait before another attempt."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from evenhand.models.config import RetryPolicy
from evenhand.models.retry import delay_before, parse_retry_after

NOW = datetime(2026, 2, 21, 22, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Sat, 21 Feb 2026 22:00:30 GMT", 30.0),
        ("Sat, 21 Feb 2026 21:00:00 GMT", 0.0),
        ("Sat, 99 Feb 2026 21:00:00 GMT", None),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


def test_waits_are_full_jitter_under_a_doubling_ceiling() -> None:
    policy = RetryPolicy()
    rng = random.Random(1)
    for failures, ceiling in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (7, 60), (40, 60)]:
        waits = [delay_before(policy, failures, None, rng) for _ in range(2000)]
        assert 0 <= min(waits) < ceiling * 0.01
        assert ceiling * 0.99 < max(waits) <= ceiling


def test_what_the_endpoint_asks_for_is_the_least_wait_and_is_capped() -> None:
    policy = RetryPolicy()
    rng = random.Random(1)
    assert 5 <= delay_before(policy, 1, 5.0, rng) <= 6
    assert 600 <= delay_before(policy, 1, timedelta(days=3).total_seconds(), rng) <= 601
    assert delay_before(policy, 1, 0.0, rng) == 0
