"""From what a scorer returns, or raises, to an outcome. Nothing here turns a failure into a zero."""

import asyncio
import inspect
import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evenhand.core.errors import (
    ModelError,
    OptionError,
    SandboxUnavailable,
    ScoringError,
    Unavailable,
    UserError,
)
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.sample import response_text
from evenhand.models.reasoning import THINK_TAGS, Split, split_reasoning
from evenhand.scoring.definition import Scorer
from evenhand.scoring.registry import BUILT_IN
from evenhand.scoring.types import ScorerInput

VALUE_KEYS = ("reward", "correct", "score", "label")
"""Where a scorer's result holds its value; the first that is there counts."""


class Measurement(NamedTuple):
    """An outcome, and what only the scorer's own result tells."""

    outcome: Outcome
    reports_extraction: bool = False
    """Whether the result says what was extracted, if only that it was nothing."""


def score_sample(scorer: Scorer, sample: ScorerInput, *, think_tags: Sequence[str] = THINK_TAGS) -> Outcome:
    """Score one sample, without the thinking that a model wrote into its response between `think_tags`.

    Strict scorers (`as_stored`) get the response as it is, thinking included: the service's contract compares what was
    stored. Async scorers run to their end; inside a running loop use `score_sample_async`.
    """
    return measure_sample(scorer, _shown(scorer, sample, think_tags)).outcome


async def score_sample_async(
    scorer: Scorer, sample: ScorerInput, *, think_tags: Sequence[str] = THINK_TAGS
) -> Outcome:
    """`score_sample` with a plain or an async scorer."""
    return (await measure_sample_async(scorer, _shown(scorer, sample, think_tags))).outcome


def _shown(scorer: Scorer, sample: ScorerInput, think_tags: Sequence[str]) -> ScorerInput:
    return sample if scorer.as_stored else without_thinking(sample, think_tags)


def without_thinking(sample: ScorerInput, think_tags: Sequence[str]) -> ScorerInput:
    """The sample with only the answer of its response; the sample itself where there is no thinking in it."""
    split = split_thinking(sample, think_tags)
    return sample if split is None else replace(sample, response=split.answer)


def split_thinking(sample: ScorerInput, think_tags: Sequence[str]) -> Split | None:
    """The answer and the thinking of the sample's response; None where there is no thinking in it."""
    try:
        text = response_text(sample.response)
    except ScoringError:  # the scorer will say why it cannot be read
        return None
    if not text or (tuple(think_tags) == THINK_TAGS and "<" not in text):
        return None
    split = split_reasoning(text, think_tags)
    return None if split.reasoning is None and not split.unclosed else split


def measure_sample(scorer: Scorer, sample: ScorerInput) -> Measurement:
    """`score_sample` of a response as it is, with what only the result tells."""
    absent = _absent(scorer, sample)
    if absent is not None:
        return Measurement(absent)
    if scorer.is_async and _in_loop():
        raise OptionError(f"scorer '{scorer.name}' is async: inside an event loop await score_sample_async")
    try:
        result = scorer(sample)
        if inspect.isawaitable(result):
            result = asyncio.run(_wait(result))
    except Exception as error:
        return Measurement(failure(error))
    return _measured(result)


async def measure_sample_async(scorer: Scorer, sample: ScorerInput) -> Measurement:
    """`score_sample_async` of a response as it is, with what only the result tells."""
    absent = _absent(scorer, sample)
    if absent is not None:
        return Measurement(absent)
    try:
        result = scorer(sample)
        if inspect.isawaitable(result):
            result = await result
    except Exception as error:
        return Measurement(failure(error))
    return _measured(result)


def _measured(result: Any) -> Measurement:
    return Measurement(outcome_of(result), isinstance(result, Mapping) and "extracted" in result)


def check_options(scorer: Scorer) -> None:
    """Find a bad pattern or schema now, not once per sample: `OptionError` when the scorer refuses its options.

    It is tried on an empty sample; what else that comes to does not matter. Scorers of others that are slow are not
    tried: they might call a model.
    """
    if not scorer.settings or scorer.is_async or (scorer.slow and scorer.name not in BUILT_IN):
        return
    try:
        scorer(ScorerInput(response="", target=""))
    except UserError as error:
        raise OptionError(str(error)) from None
    except Exception:  # noqa: S110  whatever else an empty sample does is not about the options
        pass


def outcome_of(result: Any) -> Outcome:
    """The outcome that a scorer's result stands for."""
    if isinstance(result, Scored | Unscored | Failed):
        return result
    if isinstance(result, Mapping):
        return _from_mapping(result)
    value = _number(result)
    if value is None:
        return _bad_result(f"a scorer returns a dict, not {type(result).__name__}")
    return _scored(value, None, {})


def failure(error: Exception) -> Failed:
    """The outcome of a scorer that raised."""
    message = str(error) or type(error).__name__
    match error:
        case ScoringError():
            reply = getattr(error, "reply", None)
            return Failed(
                error=error.kind, message=message, details={} if reply is None else {"reply": reply}
            )
        case ModelError():
            return Failed(error=error.kind, message=message)
        case SandboxUnavailable():
            return Failed(error="sandbox_unavailable", message=message)
        case Unavailable():
            return Failed(error="unavailable", message=message)
        case UserError():
            return Failed(error="invalid_option", message=message)
        case _:
            trace = "".join(traceback.format_exception(error, limit=-5))[-4000:]
            return Failed(
                error="scorer_error",
                message=f"{type(error).__name__}: {message}"[:1000],
                details={"trace": trace},
            )


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _absent(scorer: Scorer, sample: ScorerInput) -> Unscored | None:
    response: Any = sample.response  # files hold null where a model gave no answer
    if response is None:
        return Unscored(reason="no_response", message="the sample has no response")
    if scorer.needs_target and sample.target is None and not sample.metadata.get("correct_answers"):
        return Unscored(reason="no_expected_output", message="the sample has no expected answer")
    return None


def _from_mapping(result: Mapping[str, Any]) -> Outcome:
    details = {str(k): v for k, v in result.items()}
    extracted = details.pop("extracted", None)
    if details.get("needs_judge"):
        details.pop("needs_judge")
        return Unscored(reason="needs_judge", message="a judge has to score this sample", details=details)
    reason = details.pop("unscored", None)
    if reason:
        return Unscored(reason=str(reason), details=details)
    for key in VALUE_KEYS:
        if key in details:
            return _from_value(key, details.pop(key), extracted, details)
    return _bad_result(f"the scorer's result has none of {', '.join(VALUE_KEYS)}")


def _from_value(key: str, raw: Any, extracted: Any, details: dict[str, Any]) -> Outcome:
    if key == "label":
        if isinstance(raw, str) and raw:
            return Scored(value=raw, extracted=extracted, details=details)
        return _bad_result(f"'label' must be a non-empty string, not {raw!r:.80}")
    value = _number(raw)
    if value is None or (key == "correct" and value not in (0.0, 1.0)):
        kind = "true or false" if key == "correct" else "a number"
        return _bad_result(f"'{key}' must be {kind}, not {raw!r:.80}")
    return _scored(value, extracted, details)


def _scored(value: float, extracted: Any, details: dict[str, Any]) -> Outcome:
    if not math.isfinite(value):
        return _bad_result(f"the scorer's value is {value}, which is not a number")
    return Scored(value=value, extracted=extracted, details=details)


def _number(raw: Any) -> float | None:
    """Numbers and truth values, numpy's too; None for anything else."""
    if not isinstance(raw, bool | int | float):
        item = getattr(raw, "item", None)
        raw = item() if callable(item) and getattr(raw, "ndim", None) == 0 else None
    if not isinstance(raw, bool | int | float):
        return None
    try:
        return float(raw)
    except OverflowError:
        return math.inf


def _bad_result(message: str) -> Failed:
    return Failed(error="bad_result", message=message)
