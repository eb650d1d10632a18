"""Turning what a request says about a score into a measurement: given values are checked, rules are run."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import OptionError, Refusal
from evenhand.core.jsontext import decode
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.scoring.rules import parse_rule, rule_names, run_rule
from evenhand.server.fields import Name, object_text
from evenhand.store.scores import Measurement
from evenhand.store.targets import Material

T = TypeVar("T")
FEW = 5
JUDGE = "llm_judge"
"""The scorer whose scores the service works out with a model."""

GivenSource = Literal["human", "custom"]
_RATIONALE = Annotated[str, Meta(max_length=1_000_000)]


class InlineScore(Struct, frozen=True, kw_only=True):
    """A score in a run or a span: a value, or a scorer that the service knows."""

    scorer_name: Name
    """Who or what measured."""
    value: Raw = field(default_factory=Raw)
    """A number from 0 to 1, or a label; absent to have a built-in scorer work it out."""
    rationale: _RATIONALE | None = None
    """Why."""
    config: Raw = field(default_factory=Raw)
    """The scorer's parameters."""
    metadata: Raw = field(default_factory=Raw)
    """A JSON object."""
    source: GivenSource | None = None
    """Whether a person or a program worked it out."""


class ScoreCreate(InlineScore, frozen=True, kw_only=True):
    """A score to be stored."""

    target_id: Name
    """The run or span."""
    target_type: Literal["run", "span"]
    """Which of the two."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A score that the service has to work out."""

    scorer_name: str
    """A rule, or the judge."""
    config: dict[str, Any]
    """Its parameters, already checked for a rule."""
    config_text: str | None
    """The same as they came."""
    metadata: str | None
    """A JSON object as text."""
    rationale: str | None
    """Why, if the caller said."""


class Unmeasured(Struct, frozen=True, kw_only=True):
    """A rule that came to no score, and why."""

    reason: str
    """Machine-readable."""


def read_score(given: InlineScore) -> Measurement | Wanted:
    """The measurement, or what has to be worked out; the contract's error for anything else."""
    value = read_value(given.value)
    config_text = _config_text(given)
    metadata = object_text(given.metadata, "metadata")
    if value is not None:
        source = given.source or ("human" if given.scorer_name == "human" else "custom")
        return Measurement(
            scorer_name=given.scorer_name,
            value=value,
            rationale=given.rationale,
            config=config_text,
            metadata=metadata,
            source=source,
        )
    config: dict[str, Any] = {} if config_text is None else decode(config_text)
    check_scorer(given.scorer_name, config)
    return Wanted(
        scorer_name=given.scorer_name,
        config=config,
        config_text=config_text,
        metadata=metadata,
        rationale=given.rationale,
    )


async def unhurried(scores: Iterable[InlineScore], read: Callable[[], T]) -> T:
    """What reading the scores gives. A pattern takes a while to compile: many are read away from the event loop, which
    everybody waits for."""
    patterns = sum(score.scorer_name == "regex" for score in scores)
    return read() if patterns <= FEW else await asyncio.to_thread(read)


def check_scorer(scorer_name: str, config: Mapping[str, Any]) -> None:
    """The scorer is one that the service can run, and its parameters are right."""
    if scorer_name == JUDGE:
        return
    if scorer_name not in rule_names():
        raise Refusal(
            "INVALID_REQUEST",
            f"'value' is missing, and '{scorer_name[:100]}' is no built-in scorer.",
            {"built_in": [*rule_names(), JUDGE]},
        )
    try:
        parse_rule(scorer_name, {k: v for k, v in config.items() if k != "expected_output"})
    except OptionError as error:
        raise Refusal("INVALID_SCORER_CONFIG", str(error), {"scorer_name": scorer_name}) from None


def _config_text(given: InlineScore) -> str | None:
    try:
        return object_text(given.config, "config")
    except Refusal as error:
        raise Refusal("INVALID_SCORER_CONFIG", str(error), error.details) from None


def read_value(raw: Raw) -> float | str | None:
    """A number in [0, 1] or a non-empty label; None when absent or null."""
    text = bytes(raw).strip()
    if not text or text == b"null":
        return None
    if text[0] == 0x22:
        label = msgspec.json.decode(text)
        if not label:
            raise Refusal("INVALID_REQUEST", "A label cannot be empty.", {"field": "value"})
        if "\x00" in label:
            raise Refusal("INVALID_REQUEST", "A label cannot contain the character NUL.", {"field": "value"})
        return str(label)
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise invalid_value()
    return float(value) + 0.0  # -0.0 becomes 0.0


def invalid_value() -> Refusal:
    return Refusal(
        "INVALID_SCORE_VALUE", "A score is a number from 0 to 1 or a non-empty string.", {"field": "value"}
    )


def measure(wanted: Wanted, material: Material) -> Measurement | Unmeasured:
    """Run the rule. Can take a while: call it away from the event loop."""
    output = None if material.output is None else decode(material.output)
    expected = None if material.expected_output is None else decode(material.expected_output)
    try:
        outcome = run_rule(wanted.scorer_name, output, expected, wanted.config)
    except OptionError as error:
        raise Refusal("INVALID_SCORER_CONFIG", str(error), {"scorer_name": wanted.scorer_name}) from None
    match outcome:
        case Scored(value=value):
            return Measurement(
                scorer_name=wanted.scorer_name,
                value=value if isinstance(value, str) else float(value),
                rationale=wanted.rationale,
                config=wanted.config_text,
                metadata=wanted.metadata,
                source="rule",
            )
        case Unscored(reason=reason):
            return Unmeasured(reason=reason)
        case Failed(error=error_code):
            return Unmeasured(reason=error_code)


def malformed_score(body: bytes, error: Exception) -> Exception:
    """NaN and Infinity are no JSON; as a score's value they still get the error that is meant for them."""
    if len(body) < 1_000_000 and (b"NaN" in body or b"Infinity" in body):
        try:
            lenient = json.loads(body)
        except (ValueError, RecursionError):
            return error
        if _has_bad_value(lenient):
            return invalid_value()
    return error


def _has_bad_value(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            found = item.get("value")
            if isinstance(found, float) and not 0 <= found <= 1:
                return True
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False
