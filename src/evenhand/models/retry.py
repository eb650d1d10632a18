"""When to try again: full jitter between zero and a doubling ceiling, and what the endpoint asks for."""

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evenhand.core.errors import ModelError
from evenhand.models.config import RetryPolicy


class Retryable(ModelError):
    """A failure that another attempt may cure; never leaves this package."""


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, from a `Retry-After` header in seconds or as an HTTP date; None when it says nothing."""
    if value is None:
        return None
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        # "nan", "inf" and negative numbers parse too, and mean nothing.
        return seconds if 0 <= seconds < float("inf") else None
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return max(0.0, (instant - (now or datetime.now(UTC))).total_seconds())


def delay_before(policy: RetryPolicy, failures: int, retry_after: float | None, rng: random.Random) -> float:
    """Seconds to wait after the given number of failures (1 or more)."""
    ceiling = min(policy.max_delay, policy.first_delay * 2.0 ** min(failures - 1, 30))
    jitter = rng.uniform(0.0, ceiling)
    if retry_after is None:
        return jitter
    # What the endpoint asks for is a minimum; the jitter keeps the callers from coming back all at once.
    return min(retry_after, policy.max_retry_after) + (jitter if retry_after > 0 else 0.0)
