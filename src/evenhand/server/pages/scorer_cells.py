"""What a scorer came to in an experiment, in one cell: a mean with its interval, labels with counts, or versions."""

from evenhand.core.objects.experiments import ScorerSummary
from evenhand.reports.numbers import number
from evenhand.server.pages.grid import Cell

SHOWN_LABELS = 5


def scorer_cell(scorer: ScorerSummary | None) -> Cell:
    """A dash where nothing was scored."""
    if scorer is None:
        return Cell(text="—", quiet=True)
    if scorer.mixed_versions:
        # Two versions of a scorer have no mean in common.
        return Cell(text=versions_text(scorer), below="several versions: no common mean")
    if scorer.mean is not None:
        low, high = scorer.ci_lower, scorer.ci_upper
        note = "" if low is None or high is None else f"[{number(low, 2)}, {number(high, 2)}]"
        return Cell(text=number(scorer.mean), note=note, value=scorer.mean, below=scorer.mixed or "")
    if scorer.distribution:
        return Cell(text=labels_text(scorer.distribution))
    return Cell(text="—", quiet=True)


def labels_text(distribution: dict[str, int]) -> str:
    """The most common labels first."""
    most = sorted(distribution.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{label[:40]} {count:,}" for label, count in most[:SHOWN_LABELS])
    return shown if len(most) <= SHOWN_LABELS else f"{shown}, {len(most) - SHOWN_LABELS} more"


def versions_text(scorer: ScorerSummary) -> str:
    """Each version with its mean and count: `polite 1 0.750 (4), submitted 0.250 (1)`."""
    return ", ".join(
        (f"{one.canonical_name} {one.version}" if one.version else "submitted")
        + ("" if one.mean is None else f" {number(one.mean)}")
        + f" ({one.score_count:,})"
        for one in scorer.versions
    )
