"""Samples of a scored file that are worth a look."""

import heapq
from typing import Any

from msgspec import Struct

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.sample import response_text
from evenhand.core.terminal import preview
from evenhand.scoring.normal import text_of
from evenhand.scoring.types import ScorerInput

MOST_EXAMPLES = 10
"""How many samples of each kind are kept."""
MOST_TEXT = 4_000
"""How many characters of a response it shows."""


class Example(Struct, frozen=True, kw_only=True):
    """A sample and what became of it, cut to what a page can show."""

    line: int
    category: str | None
    outcome: str
    """In words."""
    response: str
    target: str
    extracted: str | None
    file: str = ""
    """Which of several files the line is in."""


class Examples:
    """The samples of one scorer that are worth a look: the lowest scores, and the first without one."""

    def __init__(self) -> None:
        self._lowest: list[tuple[float, int, Example]] = []
        self._highest = float("-inf")
        self._seen = 0
        self.unscored: list[Example] = []
        self.failed: list[Example] = []

    def add(
        self, outcome: Outcome, sample: ScorerInput, *, category: str | None, line: int, file: str = ""
    ) -> None:
        """One more; the text is only looked at when it is kept."""
        self._seen += 1
        match outcome:
            case Scored(value=value):
                if isinstance(value, str):
                    return
                self._highest = max(self._highest, value)
                # The heap's first is the highest score kept, and among equals the last row. Lines of several files
                # may have one number, so rows are counted.
                place = (-value, -self._seen)
                if len(self._lowest) < MOST_EXAMPLES:
                    example = _example(f"score {value:.4g}", outcome.extracted, sample, category, line, file)
                    heapq.heappush(self._lowest, (*place, example))
                elif place > self._lowest[0][:2]:
                    example = _example(f"score {value:.4g}", outcome.extracted, sample, category, line, file)
                    heapq.heapreplace(self._lowest, (*place, example))
            case Unscored(reason=reason, message=message):
                if len(self.unscored) < MOST_EXAMPLES:
                    self.unscored.append(
                        _example(_because(reason, message), None, sample, category, line, file)
                    )
            case Failed(error=error, message=message):
                if len(self.failed) < MOST_EXAMPLES:
                    self.failed.append(_example(_because(error, message), None, sample, category, line, file))

    @property
    def lowest(self) -> list[Example]:
        """The lowest scores, worst first, without those that no other is above; the first when all are alike."""
        kept = sorted(self._lowest, reverse=True)
        below = [example for value, _, example in kept if -value < self._highest]
        return below or [example for *_, example in kept]

    @property
    def alike(self) -> bool:
        """Whether every score is the same."""
        return bool(self._lowest) and -max(self._lowest)[0] == self._highest


def _because(kind: str, message: str) -> str:
    return f"{kind}: {message}" if message else kind


def _example(
    outcome: str, extracted: Any, sample: ScorerInput, category: str | None, line: int, file: str
) -> Example:
    return Example(
        line=line,
        category=category,
        outcome=outcome,
        response=text_to_show(response_text(sample.response)),
        target=text_to_show(sample.target),
        extracted=None if extracted is None else preview(text_to_show(extracted), 200),
        file=file,
    )


def text_to_show(value: Any) -> str:
    """`value` as text, cut to what a page can show."""
    if value is None:
        return "(none)"
    try:
        text = value if isinstance(value, str) else text_of(value)
    except (ValueError, TypeError):  # Parquet holds more types than JSON
        text = str(value)
    if len(text) > MOST_TEXT:
        return f"{text[:MOST_TEXT]}\n… ({len(text):,} characters in all)"
    return text or "(empty)"
