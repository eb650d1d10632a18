"""What an endpoint was asked for and what came of it; every retry and give-up is counted."""

from msgspec import Struct, field


class EndpointCounters(Struct, kw_only=True):
    """Counters of one endpoint since it was connected."""

    calls: int = 0
    """Questions asked, those answered from the cache included."""
    cached: int = 0
    """Questions answered from the cache."""
    succeeded: int = 0
    """Questions that the endpoint answered."""
    requests: int = 0
    """HTTP requests sent."""
    retries: dict[str, int] = field(default_factory=dict)
    """Failed attempts that were tried again, by kind."""
    gave_up: dict[str, int] = field(default_factory=dict)
    """Questions without a reply, by kind of the last failure."""
    input_tokens: int = 0
    """Tokens of the questions, as the endpoint counted them."""
    output_tokens: int = 0
    """Tokens of the replies, as the endpoint counted them."""
    cost_usd: float = 0.0
    """Price of the replies, where a price is known."""
    waited_seconds: float = 0.0
    """Time that calls spent waiting before trying again."""
    adjusted: list[str] = field(default_factory=list)
    """Parameters that the endpoint does not take, and what was done about each."""
    concurrency: int = 0
    """How many requests may be in flight at present."""

    def retried(self, kind: str) -> None:
        self.retries[kind] = self.retries.get(kind, 0) + 1

    def failed(self, kind: str) -> None:
        self.gave_up[kind] = self.gave_up.get(kind, 0) + 1
