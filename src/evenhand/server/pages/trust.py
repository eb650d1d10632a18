"""How far a judge may be trusted, as its page says it."""

from typing import TYPE_CHECKING

from evenhand.reports.components import Reason, Tone, VerdictBanner
from evenhand.server.pages.estimates import estimates_grid
from evenhand.server.pages.grid import Cell, Grid

if TYPE_CHECKING:
    from evenhand.judging.against_people import AgainstPeople
    from evenhand.judging.calibration import Calibration


def verdict_of(found: "AgainstPeople", version: str) -> VerdictBanner:
    """The conclusion of the labels, and what more labels would bring."""
    name, tone = _name(found.values)
    start, _, more = found.mean.sentence.partition("; ")
    reasons = [_kappa(found.values), _bias(found.values)]
    if version:
        reasons.append(Reason(f"Labels and scores are of {version} alone."))
    return VerdictBanner(
        name=name,
        sentence=start.rstrip(".") + ".",
        tone=tone,
        shown=found.values.trust != "too_few",
        reasons=reasons,
        next_steps=[more[:1].upper() + more[1:]] if more else [],
    )


def _name(values: "Calibration") -> tuple[str, Tone]:
    if values.trust == "too_few":
        return "Too few labels to say", "plain"
    if values.trust == "trusted":
        return "May be trusted for this task", "good"
    if values.trust == "not_trusted":
        return "Not to be trusted for this task", "bad"
    if values.bias.ci_lower > 0:
        return "Too kind: read the corrected mean", "bad"
    if values.bias.ci_upper < 0:
        return "Too strict: read the corrected mean", "bad"
    return "Read the corrected mean", "warn"


def _kappa(values: "Calibration") -> Reason:
    kappa = values.kappa
    if kappa is None:
        return Reason("Agreement beyond chance is undefined: too few labels, or all alike.", "warn")
    words = f"κ {kappa.value:.2f} ({kappa.ci_lower:.2f} to {kappa.ci_upper:.2f}) with people".replace(
        "-", "−"
    )
    return Reason(words, "good" if kappa.ci_lower >= 0.6 else "warn" if kappa.ci_lower >= 0.2 else "bad")


def _bias(values: "Calibration") -> Reason:
    bias = values.bias
    shown = bias.ci_lower > 0 or bias.ci_upper < 0
    words = f"judge minus people {bias.value:+.2f} ({bias.ci_lower:+.2f} to {bias.ci_upper:+.2f})".replace(
        "-", "−"
    )
    return Reason(words, "bad" if shown else "plain")


def rates_grid(passes: "Calibration") -> Grid:
    """Sensitivity and specificity. Rows of the table are people's, columns the judge's: bad first."""
    (true_bad, false_good), (false_bad, true_good) = passes.confusion
    return estimates_grid(
        [
            (
                "sensitivity: people said good, judge too",
                passes.sensitivity,
                [_share(true_good, true_good + false_bad)],
            ),
            (
                "specificity: people said bad, judge too",
                passes.specificity,
                [_share(true_bad, true_bad + false_good)],
            ),
        ],
        ("Rate", "Count"),
        "How often the judge is right on either side",
    )


def _share(part: int, whole: int) -> Cell:
    return Cell(text=f"{part:,} of {whole:,}", value=part)
