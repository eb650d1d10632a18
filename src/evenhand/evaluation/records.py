"""The steps of a sample as the journal keeps them: generated, scored, judged."""

from typing import Any

from msgspec import Struct, field

from evenhand.core.outcome import Outcome


class Generated(Struct, frozen=True, kw_only=True, tag="generated", tag_field="step", omit_defaults=True):
    """The model answered, or could not be made to."""

    key: int
    """The sample: the problem's place in the plan times the repeats, plus the repeat."""
    text: str | None = None
    """The answer without the thinking before it; None when there is none."""
    error: str | None = None
    """Why there is none, machine-readable: `timeout`, `rate_limit`, `server_error`, ..."""
    message: str = ""
    """The same for people."""
    finish_reason: str = ""
    """Why the answer ended."""
    input_tokens: int | None = None
    """Tokens of the question."""
    output_tokens: int | None = None
    """Tokens of the answer."""
    latency_seconds: float = 0.0
    """Time of the attempt that succeeded."""
    cost_usd: float | None = None
    """What the call cost, when a price is known."""
    model: str = ""
    """The model that answered, in the endpoint's words."""
    cached: bool = False
    """Whether the answer came from the cache."""
    attempts: int = 1
    """How many requests it took."""
    reasoning: str | None = None
    """The model's own thinking, from the endpoint's own field or from between tags in the answer."""
    truncated: bool = False
    """Whether the answer was cut off, at the token limit or inside its thinking."""
    adjusted: tuple[str, ...] = ()
    """Parameters that the endpoint does not take, and what was done about each."""
    output: Any = None
    """What a task returned, where that is not a text: JSON; `text` has its spelling."""
    messages: list[Any] | None = None
    """The conversation that a task says it had."""
    trace_id: str = ""
    """The trace that a task says it left."""
    trace: str = ""
    """Where in a task's code its error was raised."""
    at: float = 0.0
    """When, in seconds since 1970."""

    @property
    def response(self) -> Any:
        """What is scored: what a task returned, else the text."""
        return self.text if self.output is None else self.output


class Measured(Struct, frozen=True, kw_only=True, tag="scored", tag_field="step", omit_defaults=True):
    """Every scorer has spoken."""

    key: int
    """The sample."""
    outcome: Outcome
    """What the first scorer said, whose numbers are the headline."""
    extracts: bool = True
    """Whether the scorer reported what it extracted, if only that there was nothing."""
    seconds: float = 0.0
    """How long it took."""
    others: dict[str, Outcome] = field(default_factory=dict)
    """What the further scorers said, by their names."""
    input_tokens: int = 0
    """Tokens of questions that scorers put to a judge themselves."""
    output_tokens: int = 0
    """Tokens of the judge's answers to them."""
    cost_usd: float | None = None
    """What these calls cost, when a price is known."""
    refused: str = ""
    """Why a spend cap kept a scorer from asking: then only what was spent counts, the answer is still to be scored."""


class Judged(Struct, frozen=True, kw_only=True, tag="judged", tag_field="step", omit_defaults=True):
    """The judge has spoken."""

    key: int
    """The sample."""
    outcome: Outcome
    """What it said."""
    info: dict[str, Any] = field(default_factory=dict)
    """The judge's model, prompt digest, raw reply and identity."""
    input_tokens: int = 0
    """Tokens of all questions to the judge for this sample."""
    output_tokens: int = 0
    """Tokens of all its answers."""
    cost_usd: float | None = None
    """What the calls cost, when a price is known."""
    seconds: float = 0.0
    """How long it took."""
    scorer: str = ""
    """The scorer that asked for it; empty for the first one."""


Step = Generated | Measured | Judged
