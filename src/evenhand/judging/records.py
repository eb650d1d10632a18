"""What is kept of judging one sample."""

from msgspec import Struct

from evenhand.core.outcome import Outcome
from evenhand.models.port import ChatReply


class JudgeCall(Struct, frozen=True, kw_only=True):
    """One question to a judge model and its raw reply."""

    prompt_hash: str
    """SHA-256 of the conversation that was sent."""
    reply: str
    """The reply as it came."""
    model: str
    """The model that answered, in the endpoint's words."""
    finish_reason: str
    """Why the reply ended."""
    input_tokens: int | None
    """Tokens of the question."""
    output_tokens: int | None
    """Tokens of the reply."""
    cost_usd: float | None
    """Price of the call, 0 from the cache."""
    latency_seconds: float
    """Time of the attempt that succeeded."""
    attempts: int
    """Requests that it took."""
    cached: bool
    """Whether the reply came from the cache."""


class JudgeRecord(Struct, frozen=True, kw_only=True):
    """The outcome of judging one sample, and everything needed to check it."""

    outcome: Outcome
    """A score, or why there is none."""
    identity: str
    """Hash of model, parameters, rubric and parser: scores of different identities are not averaged."""
    model: str
    """The judge model's id, as requests named it."""
    prompt_hash: str | None = None
    """SHA-256 of the first conversation; None when nothing was sent."""
    raw_reply: str | None = None
    """The reply from which the judgement was read, or could not be."""
    input_tokens: int = 0
    """Tokens of all questions."""
    output_tokens: int = 0
    """Tokens of all replies."""
    cost_usd: float | None = None
    """Price of all calls; None when a price is not known."""
    latency_seconds: float = 0.0
    """Time of all calls, one after the other."""
    calls: tuple[JudgeCall, ...] = ()
    """Every call, repairs and repeats included."""
    warnings: tuple[str, ...] = ()
    """`multiple_numbers`, `foreign_verdict`, `repaired`."""
    flags: tuple[str, ...] = ()
    """`injection_suspected`: a person may want to look."""


def call_of(reply: ChatReply, prompt_hash: str) -> JudgeCall:
    """What is kept of a reply."""
    return JudgeCall(
        prompt_hash=prompt_hash,
        reply=reply.text,
        model=reply.model,
        finish_reason=reply.finish_reason,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cost_usd=reply.cost_usd,
        latency_seconds=reply.latency_seconds,
        attempts=reply.attempts,
        cached=reply.cached,
    )


def record_of(
    outcome: Outcome,
    calls: tuple[JudgeCall, ...],
    *,
    identity: str,
    model: str,
    warnings: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> JudgeRecord:
    """The record that sums up calls."""
    costs = [call.cost_usd for call in calls]
    return JudgeRecord(
        outcome=outcome,
        identity=identity,
        model=model,
        prompt_hash=calls[0].prompt_hash if calls else None,
        raw_reply=calls[-1].reply if calls else None,
        input_tokens=sum(call.input_tokens or 0 for call in calls),
        output_tokens=sum(call.output_tokens or 0 for call in calls),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        latency_seconds=sum(call.latency_seconds for call in calls),
        calls=calls,
        warnings=tuple(dict.fromkeys(warnings)),
        flags=tuple(dict.fromkeys(flags)),
    )
