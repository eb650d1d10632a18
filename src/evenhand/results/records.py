"""One line of `results.jsonl`."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored


class SampleError(Struct, frozen=True, kw_only=True):
    """Why a sample has no score."""

    kind: str
    """Machine-readable: the `reason` of an unscored sample, the `error` of a failed one."""
    message: str = ""
    """The same for people."""


class Usage(Struct, frozen=True, kw_only=True):
    """What the answer cost. None is unknown, not zero."""

    input_tokens: int | None = None
    """Tokens of the prompt."""
    output_tokens: int | None = None
    """Tokens of the answer."""
    cost_usd: float | None = None
    """The price of the call."""
    duration_seconds: float | None = None
    """From the request to the whole answer."""


class SampleResult(Struct, frozen=True, kw_only=True):
    """What became of one answer to one problem. `reward` is null unless the status is `scored`."""

    problem_idx: int
    """Identifies the problem; the same in every run of the benchmark."""
    reward: float | None = None
    """The score, or null: a failure is not a zero."""
    repeat: int = 0
    """Which of several answers to the problem this is."""
    expected_answer: Any = None
    """The target."""
    model_response: str | None = None
    """What the model answered, without its thinking."""
    extracted_answer: Any = None
    """What the scorer found in the response."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The problem's other fields, `category` among them."""
    scoring_details: dict[str, Any] = field(default_factory=dict)
    """Whatever the scorer or the judge reported."""
    status: Literal["scored", "unscored", "failed", ""] = ""
    """Empty only in files of tools that know no status; `read_samples` fills it in."""
    error: SampleError | str | None = None
    """Why there is no score."""
    usage: Usage | None = None
    """What the answer cost; judge calls are not in it."""
    reasoning: str | None = None
    """The model's thinking, which is not part of the response and is not scored."""
    truncated: bool = False
    """Whether the response was cut off, at the token limit or inside its thinking."""

    # What follows is in the file only where it is known: the lines of other runs stay as short as they were.
    scores: dict[str, Outcome] | UnsetType = UNSET
    """What every scorer came to, by name, where a run has several or is one of a task; `reward`, `status` and
    `extracted_answer` are those of the first."""
    input: Any = UNSET
    """What a task was given."""
    output: Any = UNSET
    """What a task returned, where that is no text; `model_response` has its spelling."""
    trace_id: str | UnsetType = UNSET
    """The trace that a task says it left."""

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """What every scorer came to, by name; empty in runs that do not name their scorers here."""
        return self.scores or {}

    @property
    def category(self) -> str | None:
        """The category under which the sample is counted, if it has one."""
        found = self.metadata.get("category", self.scoring_details.get("category"))
        return None if found is None else str(found)


def scored_by(sample: SampleResult, scorer: str) -> SampleResult | None:
    """The sample with this scorer's outcome as its reward and status; None when the scorer was not applied to it."""
    outcome = sample.outcomes.get(scorer)
    if outcome is None:
        return None
    reward, status, error = ended(outcome)
    details = dict(outcome.details)
    if isinstance(outcome, Scored) and isinstance(outcome.value, str):
        details["label"] = outcome.value
    return replace(
        sample,
        reward=reward,
        status=status,
        error=error,
        extracted_answer=outcome.extracted if isinstance(outcome, Scored) else None,
        scoring_details=details,
    )


def ended(
    outcome: Outcome,
) -> tuple[float | None, Literal["scored", "unscored", "failed"], SampleError | None]:
    """Reward, status and error of a line of `results.jsonl`."""
    match outcome:
        case Scored(value=float(value)):
            return value, "scored", None
        case Scored(value=label):
            # A label has no mean: it is kept among the details and stays out of every average.
            return None, "unscored", SampleError(kind="label", message=f"the score is the label '{label}'")
        case Failed():
            return None, "failed", SampleError(kind=outcome.error, message=outcome.message)
        case Unscored():
            return None, "unscored", SampleError(kind=outcome.reason, message=outcome.message)
