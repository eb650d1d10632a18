"""Faults that the mock endpoint injects, decided by the request and a seed, never by arrival order."""

import hashlib
from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

FaultKind = Literal[
    "rate_limit",
    "server_error",
    "unavailable",
    "slow",
    "drip",
    "cut",
    "cut_body",
    "html",
    "half_json",
    "empty_choices",
    "event_stream",
    "bad_charset",
    "too_long",
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


class FaultPlan(Struct, frozen=True, kw_only=True):
    """How often which fault happens."""

    rate: float = 0.0
    """Share of requests that meet a fault."""
    kinds: tuple[FaultKind, ...] = ("rate_limit", "server_error", "unavailable", "cut", "html", "half_json")
    """Which ones, each as likely as the others."""
    seed: int = 0
    """The same seed, request and attempt meet the same fault."""
    retry_after: str | None = "0"
    """The `Retry-After` header of a 429; None sends none."""
    slow_seconds: float = 5.0
    """How long `slow` waits before it answers, and `drip` takes for its first bytes."""

    def pick(self, body: bytes, seen: int) -> FaultKind | None:
        """The fault for a body that was seen `seen` times before, or None."""
        if self.rate <= 0 or not self.kinds:
            return None
        digest = hashlib.blake2b(body, digest_size=16, key=f"{self.seed}:{seen}".encode()[:64]).digest()
        if int.from_bytes(digest[:8], "big") >= self.rate * 2**64:
            return None
        kinds: Sequence[FaultKind] = self.kinds
        return kinds[int.from_bytes(digest[8:], "big") % len(kinds)]
