"""What scoring one sample can end in: a score, no score with a reason, or a failure with an error.

The three are different types and stay different in files, tables and pages. Nothing turns a failure or an
absence into a zero, and every aggregate reports all three counts.
"""

from typing import Any, Literal

from msgspec import Struct, field

Status = Literal["scored", "unscored", "failed"]


class Scored(Struct, frozen=True, kw_only=True, tag_field="status", tag="scored"):
    """The sample was measured."""

    value: float | str
    """A number (1.0 is best where the scorer says so) or, for categorical scorers, a non-empty label."""
    extracted: Any = None
    """The answer that the scorer found in the response."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else the scorer reported."""


class Unscored(Struct, frozen=True, kw_only=True, tag_field="status", tag="unscored"):
    """There was nothing to measure: say, no expected output to compare with. Not an error."""

    reason: str
    """Machine-readable: `no_expected_output`, `needs_judge`, ..."""
    message: str = ""
    """The same for people."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else the scorer reported."""


class Failed(Struct, frozen=True, kw_only=True, tag_field="status", tag="failed"):
    """Measuring was tried and did not succeed: a dead judge, a time-out, a scorer that raised."""

    error: str
    """Machine-readable: `scorer_timeout`, `judge_unavailable`, `sandbox_unavailable`, ..."""
    message: str
    """What happened, for people."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever helps to find the cause: a raw reply, a trace back."""


Outcome = Scored | Unscored | Failed
NoScore = Unscored | Failed
"""The two ways in which there is no score."""


class Tally(Struct, kw_only=True):
    """A closed denominator: total = scored + unscored + failed, always."""

    scored: int = 0
    unscored: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.scored + self.unscored + self.failed

    def add(self, outcome: Outcome) -> None:
        match outcome:
            case Scored():
                self.scored += 1
            case Unscored():
                self.unscored += 1
            case Failed():
                self.failed += 1
