"""What a request says about a score: a value, which is checked, or a scorer, which is to be run."""

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.jsontext import decode
from evenhand.server.http.fields import Name, is_null, object_text
from evenhand.server.jobs.scorers import EXPECTED, Prepared, Scorers
from evenhand.store.jobs import JobRequest
from evenhand.store.scores import Measurement
from evenhand.store.targets import TargetName

GivenSource = Literal["human", "custom"]
_RATIONALE = Annotated[str, Meta(max_length=1_000_000)]


class InlineScore(Struct, frozen=True, kw_only=True):
    """A score in a run or a span: a value, or a scorer that the service knows."""

    scorer_name: Name
    """Who or what measured."""
    value: Raw = field(default_factory=Raw)
    """A number from 0 to 1, or a label; absent to have a scorer compute it: `GET /v1/scorers` lists them."""
    rationale: _RATIONALE | None = None
    """Why."""
    config: Raw = field(default_factory=Raw)
    """The scorer's options; `expected_output` among them takes the place of what is expected."""
    metadata: Raw = field(default_factory=Raw)
    """A JSON object."""
    source: GivenSource | None = None
    """Whether a person or a program computed the value."""


class ScoreCreate(InlineScore, frozen=True, kw_only=True):
    """A score to be stored."""

    target_id: Name
    """The run or span."""
    target_type: Literal["run", "span"]
    """Which of the two."""
    trace_id: str | None = None
    """A span's trace; needed where several spans have its id."""
    project_id: str | None = None
    """The target's project; needed only where a token for all projects meets a trace's id twice."""

    def target(self, scope: str | None) -> TargetName:
        """What the score is for, as far as a caller with this scope may say."""
        return TargetName(self.target_type, self.target_id, scope, self.trace_id, self.project_id)


class ScoreToCompute(Struct, frozen=True, kw_only=True):
    """A score that the service computes."""

    scorer_name: str
    """As the request named the scorer."""
    prepared: Prepared
    """The scorer with its options."""
    config: dict[str, Any]
    """The options as they came, decoded."""
    config_text: str | None
    """The same as text."""
    metadata: str | None
    """A JSON object as text."""
    rationale: str | None
    """Why, if the caller said."""

    @property
    def job(self) -> JobRequest:
        """The same as a job."""
        return JobRequest(
            scorer_name=self.scorer_name,
            config=self.config_text or "{}",
            rationale=self.rationale,
            metadata=self.metadata,
        )

    def expected(self, otherwise: Any) -> Any:
        """The expected output that the request brings, else `otherwise`."""
        return self.config.get(EXPECTED, otherwise)


def read_score(given: InlineScore, scorers: Scorers) -> Measurement | ScoreToCompute:
    """The measurement, or what has to be computed; the contract's error for anything else."""
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
    return ScoreToCompute(
        scorer_name=given.scorer_name,
        prepared=scorers.prepare(given.scorer_name, config),
        config=config,
        config_text=config_text,
        metadata=metadata,
        rationale=given.rationale,
    )


def quick_to_read(scores: Iterable[InlineScore], scorers: Scorers) -> bool:
    """Whether reading these scores needs neither a check of options nor a module that is not loaded yet.

    Values always do; otherwise reading belongs off the event loop, which everybody waits for.
    """
    return all(
        not is_null(score.value) or (is_null(score.config) and scorers.at_hand(score.scorer_name))
        for score in scores
    )


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


def malformed_score(body: bytes, error: Exception) -> Exception:
    """NaN, Infinity and numbers out of range are no JSON; as a score's value they still get the error that is meant for
    them."""
    if len(body) < 1_000_000 and (b"NaN" in body or b"Infinity" in body or "out of range" in str(error)):
        try:
            lenient = json.loads(body, parse_int=_lenient_int)
        except (ValueError, RecursionError):
            return error
        if _has_bad_value(lenient):
            return invalid_value()
    return error


def _lenient_int(text: str) -> int | float:
    return int(text) if len(text) < 400 else float(text)  # infinite


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
