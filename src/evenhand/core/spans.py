"""Spans: one timed operation of an application, and the shape of the trace they form."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MAX_TOKENS = 10**12
"""What one span may have read or written: far beyond any model, and sums of millions of spans still fit 64 bits."""
PICO = 10**12
"""Picodollars in a dollar: costs are stored as whole numbers of them, so that sums are exact."""
MAX_COST_PICO = 10**18
"""A million dollars in picodollars; what is said to cost more is not believed."""
MOST_PICO = 2**62
"""Where the sum of a trace's costs stops growing: it is stored in 64 bits."""
MAX_DURATION_MS = 1e15
"""Thirty thousand years: averages of any number of them are still finite."""


class SpanRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A checked span, as it is stored: the fields are columns of its table, in this order (the trace's key takes the
    place of its id). JSON values are kept as the text that came in."""

    trace_id: str
    """Chosen by the client; unique within its project."""
    id: str
    """Chosen by the client; unique within its trace."""
    parent_span_id: str | None = None
    """The span that caused this one; None for the root. It may arrive later, or never."""
    name: str
    """What the operation is called."""
    start_us: int
    """Microseconds since 1970, UTC."""
    end_us: int | None = None
    """Microseconds since 1970, UTC; None while it is not known."""
    duration_ms: float | None = None
    """From the two times where both are known, otherwise what the client said."""
    input: str | None = None
    """JSON text."""
    output: str | None = None
    """JSON text."""
    tokens_input: int | None = None
    """Tokens that the model read."""
    tokens_output: int | None = None
    """Tokens that the model wrote."""
    model: str | None = None
    """The model that was asked for."""
    metadata: str = "{}"
    """JSON text of a flat object: strings, numbers, booleans and nulls."""
    error: str | None = None
    """JSON text of `{message, type?, stack?}`; None when the operation succeeded."""
    clock_skew: int = 0
    """1 when the client's clock was impossible (it ended before it started); the times are kept as they came."""
    session_id: str | None = None
    """The conversation that it belongs to."""
    user_id: str | None = None
    """The person whom the application worked for."""
    cost_pico: int | None = None
    """What it cost in picodollars; None when that is not known."""
    cost_source: str | None = None
    """Where the cost came from: `reported`, `configured` or `shipped` prices; None when it is not known."""
    is_total: int = 0
    """1 when its tokens and cost repeat those of the calls below it, and are in no sum."""

    logged: int = 0
    """Which texts came as log records: 1 the input, 2 the output, 3 both."""

    @property
    def is_call(self) -> bool:
        """Whether it stands for a call of a model, which costs something."""
        return not self.is_total and (
            self.model is not None
            or self.tokens_input is not None
            or self.tokens_output is not None
            or self.cost_pico is not None
        )


def dollars(pico: int | None) -> float | None:
    """Picodollars as a JSON number of dollars; None stays None."""
    return None if pico is None else pico / PICO


def microseconds(instant: datetime) -> int:
    """Microseconds since 1970, exactly."""
    since = instant - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def instant(us: int) -> datetime:
    """The inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=us)


def cycle_members(parents: Mapping[str, str | None]) -> set[str]:
    """The spans that are their own ancestors.

    `parents` maps a span to its parent; a parent that is not a key ends its chain.
    """
    inner = parents.keys() & set(parents.values())
    if not any(parents[node] in inner for node in inner):
        return set()  # no span is more than two steps from the end of its chain; most traces are that flat
    found: set[str] = set()
    done: set[str] = set()
    for start in parents:
        path: dict[str, int] = {}
        node: str | None = start
        while node is not None and node in parents and node not in done and node not in path:
            path[node] = len(path)
            node = parents[node]
        if node is not None and node in path:
            found.update(list(path)[path[node] :])
        done.update(path)
    return found
