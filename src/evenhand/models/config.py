"""What describes one chat endpoint."""

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret

MAX_REPLY_BYTES = 4 * 1024 * 1024


class Price(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input_usd: float
    """For the question."""
    output_usd: float
    """For the reply."""


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """When to try again, and how long to wait before."""

    tries: int = 6
    """Requests in all, the first included."""
    first_delay: float = 1.0
    """Upper end of the first wait in seconds; it doubles each time. The wait is uniform from 0 (full jitter)."""
    max_delay: float = 60.0
    """Longest wait of our own choosing, in seconds."""
    max_retry_after: float = 600.0
    """Longest wait that an endpoint's `Retry-After` may impose, in seconds."""


class EndpointConfig(Struct, frozen=True, kw_only=True):
    """One model behind one address, with its limits. The key belongs to the address it was given with."""

    base_url: str
    """Up to and including `/v1`; the dialect's path is appended."""
    model: str
    """The model's id, as requests name it."""
    api_key: Secret | None = None
    """Sent to `base_url` and nowhere else; None sends none."""
    dialect: Literal["openai", "anthropic"] = "openai"
    """Which protocol the endpoint speaks."""
    timeout: float = 120.0
    """Seconds for one request, connecting and reading included."""
    connect_timeout: float = 10.0
    """Seconds for connecting."""
    max_reply_bytes: int = MAX_REPLY_BYTES
    """Longest reply body that is read."""
    retry: RetryPolicy = RetryPolicy()
    """When to try again."""
    concurrency: int = 32
    """Most requests in flight; fewer while the endpoint answers 429."""
    requests_per_minute: float | None = None
    """Most requests started in a minute."""
    tokens_per_minute: float | None = None
    """Most tokens, of questions and longest replies together, started in a minute."""
    spend_cap_usd: float | None = None
    """No call is started that could take the sum past this."""
    price: Price | None = None
    """Overrides the shipped price table."""
    default_max_tokens: int = 4096
    """Longest reply where the request names none and a limit is needed (spend cap, Anthropic)."""
    cache_path: Path | None = None
    """The file that keeps replies; None keeps none."""
    cache_max_bytes: int = 1024 * 1024 * 1024
    """Largest size of that file; the replies used longest ago go first."""
    allow_private: bool = True
    """Whether loopback, private and link-local addresses may be connected to; a service says no."""
    structured_output: Literal["auto", "off"] = "auto"
    """Whether a request's `response_schema` is sent; `auto` finds out whether the endpoint takes it."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields added to every request's body."""
    key_origin: str | None = None
    """Set by itself: scheme, host and port that the key belongs to."""

    def __post_init__(self) -> None:
        here = origin(self.base_url)
        if not self.model:
            raise OptionError("the model's id is empty")
        if self.concurrency < 1 or self.retry.tries < 1:
            raise OptionError("concurrency and tries must be at least 1")
        if self.spend_cap_usd is not None:
            self.check_price()
        if self.api_key is None:
            return
        if self.key_origin is None:
            msgspec.structs.force_setattr(self, "key_origin", here)
        elif self.key_origin != here:
            raise OptionError(
                f"the key was given for {self.key_origin} and is not sent to {here}; give a key for the new address"
            )

    def check_price(self) -> None:
        """Refuse a spend cap at a list price: the shipped table is good for an estimate, not for a promise."""
        if self.price is None:
            raise OptionError(
                f"a spend cap needs a price that you give: the one of '{self.model}' is missing"
            )


def origin(url: str) -> str:
    """Scheme, host and port of an http(s) address; `OptionError` for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise OptionError("the model's address is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError(f"'{url.split('@')[-1][:80]}' is not an http or https address")
    if parts.username is not None or parts.password is not None:
        raise OptionError("the model's address carries a user name or password; give the key as a key")
    if parts.query or parts.fragment:
        raise OptionError("the model's address must end before any '?' or '#'")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 80)}"
