"""Why samples failed: one category each, counted, with examples.

A sample fails when it was answered wrongly or could not be measured. The two stay apart: only what could not be
measured is an infrastructure failure, and `status` in `results.jsonl` says which it was.
"""

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from evenhand.core.terminal import preview
from evenhand.evaluation.causes import TRUNCATED_ADVICE, Cause, Causes
from evenhand.results.records import SampleError, SampleResult
from evenhand.scoring.refusal import is_refusal

EXEMPLARS = 5
"""Examples kept of each category, each of another problem."""
ADVICE = {"truncated": TRUNCATED_ADVICE}
"""What helps against a category whose samples have a score; those without one have their causes."""

# The first pattern that the error's kind and message match decides.
_ERRORS = (
    ("rate_limit", re.compile(r"(?<!\d)429(?!\d)|\brate\b|rate.?limit|too many requests", re.IGNORECASE)),
    ("context_length", re.compile(r"context.?length|maximum context|too many tokens", re.IGNORECASE)),
    ("content_filter", re.compile(r"content.?filter", re.IGNORECASE)),
    ("budget", re.compile(r"budget|spend cap", re.IGNORECASE)),
    ("sandbox_error", re.compile(r"sandbox", re.IGNORECASE)),
    ("judge_error", re.compile(r"judge|grade_parse|verdict", re.IGNORECASE)),
    ("scorer_error", re.compile(r"scorer|bad_result", re.IGNORECASE)),
    ("timeout", re.compile(r"time.?out|timed out", re.IGNORECASE)),
    ("server_error", re.compile(r"server.?error|\b5\d\d\b|connection|bad_reply", re.IGNORECASE)),
)


class Category(Struct, frozen=True, kw_only=True):
    """How many samples failed in one way."""

    count: int
    """Samples."""
    rate: float
    """Of all samples."""


class Exemplar(Struct, frozen=True, kw_only=True):
    """One failed sample."""

    category: str
    """Why it failed."""
    problem_idx: int
    """The problem."""
    response_preview: str
    """The start of the response, or the error where there is none."""
    repeat: int = 0
    """Which answer to the problem."""


class FailureAnalysis(Struct, frozen=True, kw_only=True):
    """The content of `failure_analysis.json`."""

    total_failures: int
    """Samples that were wrong or could not be measured."""
    failure_rate: float
    """Of all samples."""
    categories: dict[str, Category]
    """The most frequent first."""
    exemplars: list[Exemplar]
    """A few of each category."""
    samples: int
    """All samples: problems times repeats."""
    causes: list[Cause] = []
    """Why samples have no score: failed ones first, the most frequent first. Empty in files of older versions."""


def classify(sample: SampleResult, *, extracts: bool = True) -> str | None:
    """The category of a failed sample; None for one that did not fail.

    `extracts` says whether the scorer looks for an answer in the response: only then is finding none an error of
    format.
    """
    if sample.status == "failed":
        return _error_category(sample.error)
    if sample.status == "unscored":
        return None
    if sample.reward is None or sample.reward > 0:
        return None
    if sample.truncated:
        return "truncated"
    response = sample.model_response or ""
    if not response.strip():
        return "empty"
    # One may think at length before declining; beside an answer, an apology is only a part of the text.
    if is_refusal(response, anywhere=sample.extracted_answer is None):
        return "refusal"
    if extracts and sample.extracted_answer is None:
        return "format_error"
    return "wrong_answer"


def _error_category(error: SampleError | str | None) -> str:
    if error is None:
        return "unknown_error"
    kind, message = (error.kind, error.message) if isinstance(error, SampleError) else (error, "")
    # The kind is exact where there is one; the message decides only for errors of other tools.
    for text in (kind, message):
        for category, pattern in _ERRORS:
            if pattern.search(text):
                return category
    return kind if re.fullmatch(r"[a-z_]{1,40}", kind) else "unknown_error"


class ArtifactCollector:
    """Takes every sample of a run, in order, and gives the failure analysis."""

    def __init__(self) -> None:
        self._total = 0
        self._counts: Counter[str] = Counter()
        self._exemplars: dict[str, list[Exemplar]] = {}
        self._causes = Causes()

    def add(self, sample: SampleResult, *, extracts: bool = True) -> str | None:
        """Count a sample; its category when it failed."""
        self._total += 1
        self._causes.add(sample)
        category = classify(sample, extracts=extracts)
        if category is None:
            return None
        self._counts[category] += 1
        kept = self._exemplars.setdefault(category, [])
        if len(kept) < EXEMPLARS and not (kept and kept[-1].problem_idx == sample.problem_idx):
            kept.append(
                Exemplar(
                    category=category,
                    problem_idx=sample.problem_idx,
                    repeat=sample.repeat,
                    response_preview=_shown(sample),
                )
            )
        return category

    def analysis(self) -> FailureAnalysis:
        """What was found so far."""
        ordered = sorted(self._counts.items(), key=lambda entry: (-entry[1], entry[0]))
        total = sum(self._counts.values())
        return FailureAnalysis(
            total_failures=total,
            failure_rate=self._rate(total),
            categories={name: Category(count=count, rate=self._rate(count)) for name, count in ordered},
            exemplars=[exemplar for name, _ in ordered for exemplar in self._exemplars[name]],
            samples=self._total,
            causes=self._causes.most_frequent(),
        )

    def restore(
        self,
        samples: int,
        counts: Counter[str],
        exemplars: dict[str, list[Exemplar]],
        causes: Iterable[Cause],
    ) -> None:
        """Go on from counts that were made elsewhere."""
        self._total, self._counts = samples, counts
        self._causes.merge(causes)
        for name, found in exemplars.items():
            ordered = sorted(found, key=lambda one: (one.problem_idx, one.repeat))
            self._exemplars[name] = ordered[:EXEMPLARS]

    def _rate(self, count: int) -> float:
        return count / self._total if self._total else 0.0


def combined(analyses: Iterable[FailureAnalysis]) -> FailureAnalysis:
    """The analysis of several parts of one run."""
    counts: Counter[str] = Counter()
    exemplars: dict[str, list[Exemplar]] = {}
    causes: list[Cause] = []
    samples = 0
    for analysis in analyses:
        samples += analysis.samples
        causes += analysis.causes
        counts.update({name: category.count for name, category in analysis.categories.items()})
        for exemplar in analysis.exemplars:
            exemplars.setdefault(exemplar.category, []).append(exemplar)
    collector = ArtifactCollector()
    collector.restore(samples, counts, exemplars, causes)
    return collector.analysis()


def _shown(sample: SampleResult) -> str:
    if sample.truncated and sample.reasoning and not (sample.model_response or "").strip():
        return preview("… " + sample.reasoning[-198:].lstrip(), 200)
    if sample.model_response is not None:
        return preview(sample.model_response, 200)
    if isinstance(sample.error, SampleError):
        return preview(sample.error.message or sample.error.kind, 200)
    return preview(sample.error or "", 200)
