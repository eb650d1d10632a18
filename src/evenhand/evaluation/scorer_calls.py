"""What scorers that ask a judge themselves have spent on one sample."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from evenhand.core.outcome import Failed
from evenhand.judging.records import JudgeRecord


class ScorerCalls(Struct, kw_only=True):
    """The sum over the calls of one sample's scorers."""

    input_tokens: int = 0
    """Tokens of questions."""
    output_tokens: int = 0
    """Tokens of replies."""
    cost_usd: float | None = None
    """What the calls cost; None when no price is known."""
    refused: str = ""
    """Why a call was not made: a spend cap is reached."""


_counted: ContextVar[ScorerCalls | None] = ContextVar("scorer_calls", default=None)


@contextmanager
def counting_calls() -> Iterator[ScorerCalls]:
    """Count the calls that are noted in this task; samples are scored at the same time, each in a task of its own."""
    calls = ScorerCalls()
    token = _counted.set(calls)
    try:
        yield calls
    finally:
        _counted.reset(token)


def note_call(record: JudgeRecord) -> None:
    """Add a judgement to what is being counted, if anything is."""
    calls = _counted.get()
    if calls is None:
        return
    calls.input_tokens += record.input_tokens
    calls.output_tokens += record.output_tokens
    if record.cost_usd is not None:
        calls.cost_usd = (calls.cost_usd or 0.0) + record.cost_usd
    if isinstance(record.outcome, Failed) and record.outcome.error == "budget_exceeded":
        calls.refused = record.outcome.message
