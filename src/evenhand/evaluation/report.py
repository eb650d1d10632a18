"""What the report of a run shows, and who writes it: the caller passes the writer, `reports.run` has one."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from evenhand.evaluation.failures import FailureAnalysis
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.evaluation.sample_views import SampleView
from evenhand.results.bundle import Bundle


class RunReport(Struct, frozen=True, kw_only=True):
    """Everything that the report of a run shows."""

    bundle: Bundle
    """Scores, configuration and digests."""
    failures: FailureAnalysis | None
    """What went wrong, by category."""
    runtime: RuntimeStats | None
    """Time and tokens; None where they are not known any more."""
    latencies: Sequence[float] = ()
    """Seconds per call."""
    output_tokens: Sequence[float] = ()
    """Length of every answer."""
    samples: Iterable[SampleView] = ()
    """Every sample with what was said; read while the report is written."""


ReportWriter = Callable[[RunReport], Iterable[str]]
"""Writes the text of `report.html`, part after part: all samples of a long run are in it."""
