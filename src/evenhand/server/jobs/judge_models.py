"""The judge models that this server knows: from its own configuration, never from a request.

A TOML file (`evenhand serve --config FILE`) names them, and the scorers that run only where they are listed:

    scorers = ["code_sandbox"]

    [models.small]
    base_url = "https://models.example.com/v1"
    model = "small-1"
    key_variable = "SMALL_KEY"      # the environment variable with the key

    [jobs]                          # how their jobs are worked on; these are the defaults
    lease_seconds = 60
    concurrency = 16

    [prices."my-model"]             # what spans of this model cost, for a million tokens
    input_usd = 0.15
    output_usd = 0.60

or, where there is no file, the environment variable EVENHAND_MODELS holds the same text.

Addresses in private networks are refused unless the model says `allow_private = true`.
"""

import ipaddress
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import InputError, OptionError, Refusal
from evenhand.core.secret import Secret
from evenhand.models.config import EndpointConfig, Price, RetryPolicy
from evenhand.models.counters import EndpointCounters
from evenhand.models.port import ChatModel
from evenhand.models.prices import PriceRow
from evenhand.models.spend import SpendCap
from evenhand.settings import key_named

if TYPE_CHECKING:
    from evenhand.models.endpoint import Endpoint

LOCAL_NAMES = ("localhost", "localhost.localdomain")
MOST_REQUESTS = 6
"""The budget of one job."""


_Positive = Annotated[float, Meta(gt=0, le=1e12)]
_Dollars = Annotated[float, Meta(ge=0, le=1e12)]


class ModelEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of the configuration."""

    base_url: str
    """Up to and including `/v1`."""
    model: str
    """The model's id, as its endpoint names it."""
    key_variable: str | None = None
    """The environment variable that holds the key."""
    dialect: Literal["openai", "anthropic"] = "openai"
    """Which protocol the endpoint speaks."""
    timeout: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    """Seconds for one request."""
    tries: Annotated[int, Meta(ge=1, le=MOST_REQUESTS)] = MOST_REQUESTS
    """Requests in all for one job, the first included."""
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Most requests in flight."""
    requests_per_minute: _Positive | None = None
    """Most requests started in a minute."""
    tokens_per_minute: _Positive | None = None
    """Most tokens started in a minute."""
    spend_cap_usd: _Dollars | None = None
    """No call is started that could take the sum past this."""
    input_usd: _Dollars | None = None
    """US dollars for a million tokens of questions."""
    output_usd: _Dollars | None = None
    """US dollars for a million tokens of replies."""
    allow_private: bool = False
    """Whether the address may be in a private network, on loopback or link-local."""

    def endpoint(self, name: str) -> EndpointConfig:
        """The configuration of the endpoint; `OptionError`, naming the model, when something does not fit."""
        try:
            return self._endpoint()
        except OptionError as error:
            raise OptionError(f"model '{name}': {error}") from None

    def _endpoint(self) -> EndpointConfig:
        key: Secret | None = None
        if self.key_variable is not None:
            key = key_named(self.key_variable)
            if key is None:
                raise OptionError(f"the environment variable {self.key_variable} is not set")
        price = None
        if self.input_usd is not None and self.output_usd is not None:
            price = Price(input_usd=self.input_usd, output_usd=self.output_usd)
        elif self.input_usd is not None or self.output_usd is not None:
            raise OptionError("a price needs both input_usd and output_usd")
        return EndpointConfig(
            base_url=self.base_url,
            model=self.model,
            api_key=key,
            dialect=self.dialect,
            timeout=self.timeout,
            # The job is what is tried again: its count is durable, and no request adds to it unseen.
            retry=RetryPolicy(tries=1),
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            spend_cap_usd=self.spend_cap_usd,
            price=price,
            allow_private=self.allow_private,
        )


class JobSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How jobs are worked on: the table `[jobs]`."""

    lease_seconds: Annotated[float, Meta(ge=0.5, le=3600)] = 60.0
    """After so long without a sign of life another server may take a job over."""
    concurrency: Annotated[int, Meta(ge=1, le=1000)] = 16
    """How many jobs one server works on at once."""


class PriceEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model costs, in US dollars for a million tokens: the table `[prices."NAME"]`."""

    input_usd: _Dollars
    """What it reads."""
    output_usd: _Dollars
    """What it writes."""
    cache_read_usd: _Dollars | None = None
    """What it reads again from a cache."""
    cache_write_usd: _Dollars | None = None
    """What it reads and keeps in a cache."""
    source: str = "the server's configuration"
    """Where the price was found."""
    as_of: str = ""
    """When."""

    def row(self) -> PriceRow:
        return PriceRow(
            input=_decimal(self.input_usd),
            output=_decimal(self.output_usd),
            cache_read=None if self.cache_read_usd is None else _decimal(self.cache_read_usd),
            cache_write=None if self.cache_write_usd is None else _decimal(self.cache_write_usd),
            source=self.source,
            as_of=self.as_of,
        )


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number))  # as it was written, not as the computer holds it


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, ModelEntry] = {}
    jobs: JobSettings = JobSettings()
    scorers: tuple[str, ...] = ()
    prices: dict[str, PriceEntry] = {}


class JudgeModels:
    """The models by name; each is connected when it is first asked."""

    def __init__(
        self,
        endpoints: dict[str, EndpointConfig],
        limits: JobSettings | None = None,
        scorers: tuple[str, ...] = (),
        tries: Mapping[str, int] | None = None,
        prices: Mapping[str, PriceRow] | None = None,
    ) -> None:
        self.prices = dict(prices or {})
        self.limits = limits or JobSettings()
        self.scorers = scorers
        self._endpoints = endpoints
        self._tries = dict(tries or {})
        self._connected: dict[str, Endpoint] = {}
        self._caps: dict[str, SpendCap] = {}

    @classmethod
    def configured(cls, path: Path | None, text: str = "") -> "JudgeModels":
        """What the TOML file names, or without one the text; `InputError` or `OptionError` for bad ones."""
        place = path or Path("EVENHAND_MODELS")
        try:
            content = tomllib.loads(text if path is None else path.read_text(encoding="utf-8"))
            found = msgspec.convert(content, _File)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path=place) from None
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8: {error.reason}", path=place) from None
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise InputError(str(error), path=place) from None
        endpoints = {name: entry.endpoint(name) for name, entry in found.models.items()}
        tries = {name: entry.tries for name, entry in found.models.items()}
        prices = {name: entry.row() for name, entry in found.prices.items()}
        return cls(endpoints, found.jobs, found.scorers, tries, prices)

    def tries(self, name: str) -> int:
        """How many requests a job may make to the model in all."""
        return self._tries.get(name, MOST_REQUESTS)

    @property
    def names(self) -> list[str]:
        return sorted(self._endpoints)

    def check(self, name: str) -> None:
        """`INVALID_SCORER_CONFIG` for a name that is not configured, or one that must not be called."""
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise Refusal(
                "INVALID_SCORER_CONFIG",
                f"The server has no model '{name[:100]}'.",
                {"field": "config.model", "known": self.names},
            )
        if not endpoint.allow_private and _is_private(endpoint.base_url):
            raise Refusal(
                "INVALID_SCORER_CONFIG",
                f"The address of the model '{name}' is in a private network, which the configuration does not allow.",
                {"field": "config.model"},
            )

    def get(self, name: str) -> ChatModel:
        """The model; `Refusal` as for `check`."""
        self.check(name)
        if name not in self._connected:
            from evenhand.models.connect import connect  # loads aiohttp: only where a model is asked

            self._connected[name] = connect(self._endpoints[name], spend=self.cap(name))
        return self._connected[name]

    def cap(self, name: str) -> SpendCap | None:
        """The model's spend cap, if it has one."""
        limit = self._endpoints[name].spend_cap_usd if name in self._endpoints else None
        if limit is None:
            return None
        if name not in self._caps:
            self._caps[name] = SpendCap(limit)
        return self._caps[name]

    def usages(self) -> dict[str, EndpointCounters]:
        """What the models that were asked so far were asked for, by name."""
        return {name: model.usage for name, model in self._connected.items()}

    async def aclose(self) -> None:
        for model in self._connected.values():
            await model.aclose()
        self._connected.clear()


def _is_private(url: str) -> bool:
    """Whether the address itself says so. Names are checked again when they are connected to."""
    host = urlsplit(url).hostname or ""
    if host.lower() in LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not address.is_global
