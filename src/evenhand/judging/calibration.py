"""How far a judge agrees with people, and what people would have said.

Some items carry a human score beside the judge's. On those the agreement is measured; with them the judge's mean
over all items is corrected. The correction holds if the labelled items were drawn at random from all.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.metrics.agreement import cohen_kappa, krippendorff_alpha
from evenhand.metrics.correction import ppi_mean, rogan_gladen
from evenhand.metrics.differences import seen_scale
from evenhand.metrics.intervals import mean_interval, proportion_interval
from evenhand.metrics.paired import paired_difference
from evenhand.metrics.types import Interval

Value = float | str
Trust = Literal["trusted", "corrected_only", "not_trusted", "too_few"]

FEWEST = 30
"""Human labels below which nothing is said about trust."""
FEWEST_OF_A_SIDE = 5
"""Human passes, and human failures, below which sensitivity or specificity says nothing."""
GOOD_KAPPA = 0.6
"""Lower end of agreement from which a judge may stand alone ("substantial": Landis and Koch 1977)."""
SOME_KAPPA = 0.2
"""Lower end of agreement below which a judge is hardly better than chance."""
SMALL_BIAS = 0.05
"""Largest difference of means, as a share of the scale, that a judge may stand alone with."""


class Rated(Struct, frozen=True, kw_only=True):
    """One item: the judge's score, and a person's where there is one."""

    judge: Value | None
    """None when the judge gave no score."""
    human: Value | None = None
    """None when nobody looked."""


class Calibration(Struct, frozen=True, kw_only=True):
    """What the labelled items say about a judge."""

    items: int
    """All items."""
    labelled: int
    """Items with a score of the judge and of a person."""
    no_judge_score: int
    """Items without a score of the judge: left out, and counted here."""
    scale: Literal["binary", "numeric", "label"]
    """What the scores are."""
    confidence_level: float
    """Of every interval here."""
    agreement: Interval
    """Share of labelled items on which both say the same."""
    kappa: Interval | None
    """Cohen's κ (quadratic weights for numbers); None where all ratings are the same."""
    alpha: Interval | None
    """Krippendorff's α."""
    labels: list[str]
    """Rows and columns of the confusion table; empty for numbers without a threshold."""
    confusion: list[list[int]]
    """Counts: a row for each human label, a column for each of the judge's."""
    sensitivity: Interval | None
    """Share of human passes that the judge passes."""
    specificity: Interval | None
    """Share of human failures that the judge fails."""
    bias: Interval
    """Mean of judge minus human."""
    judge_only: Interval
    """Mean of the judge over all items: what one would report without people."""
    human_only: Interval
    """Mean of the human scores."""
    corrected: Interval
    """Mean that people would have given over all items (PPI++)."""
    rogan_gladen: Interval | None
    """The same from sensitivity and specificity; for passes and failures only."""
    trust: Trust
    """The conclusion."""
    sentence: str
    """The conclusion in words."""


def calibrate(
    items: Sequence[Rated],
    *,
    threshold: float | None = None,
    positive: Sequence[str] = (),
    confidence_level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Compare a judge with people.

    `threshold` turns numbers into passes and failures; `positive` names the labels that are passes.
    """
    judged = [item for item in items if item.judge is not None]
    pairs = [(item.human, item.judge) for item in judged if item.human is not None and item.judge is not None]
    if len(pairs) < 2:
        raise InputError(
            f"at least 2 items need a score of the judge and of a person; {len(pairs)} have both"
        )
    scale, known = scale_of(judged, threshold, positive)
    human = np.array([as_number(h, threshold, positive) for h, _ in pairs])
    judge = np.array([as_number(j, threshold, positive) for _, j in pairs])
    rest = np.array(
        [
            as_number(item.judge, threshold, positive)
            for item in judged
            if item.human is None and item.judge is not None
        ]
    )
    level = confidence_level
    labels, confusion = _confusion(pairs, scale, threshold, known)
    kappa, alpha = _agreement(pairs, scale, threshold, level, seed)
    sides = _sides(human, judge) if _passes(scale, positive) else None
    means = corrected_means(human, judge, rest, confidence_level=level, sides=sides, seed=seed)
    draft = Calibration(
        items=len(items),
        labelled=len(pairs),
        no_judge_score=len(items) - len(judged),
        scale=scale,
        confidence_level=level,
        agreement=proportion_interval(
            sum(_same(h, j, scale, threshold) for h, j in pairs), len(pairs), confidence_level=level
        ),
        kappa=kappa,
        alpha=alpha,
        labels=labels,
        confusion=confusion,
        sensitivity=_rate(sides, "true_positives", "false_negatives", level),
        specificity=_rate(sides, "true_negatives", "false_positives", level),
        bias=paired_difference(
            human, judge, confidence_level=level, seed=seed, scale=seen_scale(human, judge)
        ),
        judge_only=means.judge_only,
        human_only=means.human_only,
        corrected=means.corrected,
        rogan_gladen=means.rogan_gladen,
        trust="too_few",
        sentence="",
    )
    return _concluded(draft, float(np.ptp(np.concatenate([human, judge, rest]))) or 1.0)


class Means(Struct, frozen=True, kw_only=True):
    """The mean four ways."""

    judge_only: Interval
    human_only: Interval
    corrected: Interval
    rogan_gladen: Interval | None


def corrected_means(
    human: np.ndarray,
    judge_on_human: np.ndarray,
    judge_on_rest: np.ndarray,
    *,
    confidence_level: float = 0.95,
    sides: dict[str, int] | None = None,
    seed: int = 0,
) -> Means:
    """Judge only, humans only, and corrected; without unlabelled items the human mean needs no correction."""
    level = confidence_level
    everything = np.concatenate([judge_on_human, judge_on_rest])
    seen = np.concatenate([human, everything])
    bounds = (min(0.0, float(seen.min())), max(1.0, float(seen.max())))
    human_only = mean_interval(human, confidence_level=level, seed=seed, bounds=bounds)
    corrected = human_only
    if judge_on_rest.size >= 2:
        corrected = ppi_mean(human, judge_on_human, judge_on_rest, confidence_level=level)
    gladen = None
    if sides is not None:
        try:
            gladen = rogan_gladen(
                positives=int(everything.sum()), n=everything.size, confidence_level=level, **sides
            )
        except ValueError:
            # One-sided labels, or a judge no better than chance: there is nothing to correct with.
            gladen = None
    return Means(
        judge_only=mean_interval(everything, confidence_level=level, seed=seed, bounds=bounds),
        human_only=human_only,
        corrected=corrected,
        rogan_gladen=gladen,
    )


def scale_of(
    judged: Sequence[Rated], threshold: float | None, positive: Sequence[str]
) -> tuple[Literal["binary", "numeric", "label"], list[Value]]:
    """What the scores are, and the different ones among them; `InputError` for what cannot be compared."""
    values = [value for item in judged for value in (item.judge, item.human) if value is not None]
    texts = [value for value in values if isinstance(value, str)]
    if texts and len(texts) < len(values):
        raise InputError("some scores are numbers and some are labels; they cannot be compared")
    known: list[Value] = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    if texts:
        unknown = [name for name in positive if name not in known]
        if unknown:
            raise InputError(f"no score is '{unknown[0]}'; the labels are {', '.join(map(str, known))}")
        if not positive:
            raise InputError(
                f"the scores are labels ({', '.join(map(str, known[:8]))}); say which are passes with --positive"
            )
        return "label", known
    if threshold is not None or set(values) <= {0.0, 1.0}:
        return "binary", [0.0, 1.0]
    return "numeric", known


def _passes(scale: str, positive: Sequence[str]) -> bool:
    return scale == "binary" or bool(positive)


def as_number(value: Value | None, threshold: float | None, positive: Sequence[str]) -> float:
    """A score as a number: labels by whether they are passes, numbers by the threshold if there is one."""
    if isinstance(value, str):
        return float(value in positive)
    assert value is not None
    return float(value) if threshold is None else float(value >= threshold)


def _category(value: Value, scale: str, threshold: float | None) -> Value:
    return as_number(value, threshold, ()) if scale == "binary" and not isinstance(value, str) else value


def _same(human: Value, judge: Value, scale: str, threshold: float | None) -> bool:
    return _category(human, scale, threshold) == _category(judge, scale, threshold)


def _confusion(
    pairs: Sequence[tuple[Value, Value]], scale: str, threshold: float | None, known: list[Value]
) -> tuple[list[str], list[list[int]]]:
    if len(known) > 12:
        return [], []
    counts = Counter((_category(h, scale, threshold), _category(j, scale, threshold)) for h, j in pairs)
    table = [[counts[row, column] for column in known] for row in known]
    names = {0.0: "fail", 1.0: "pass"} if scale == "binary" else {}
    return [str(names.get(value, value)) if not isinstance(value, str) else value for value in known], table


def _agreement(
    pairs: Sequence[tuple[Value, Value]], scale: str, threshold: float | None, level: float, seed: int
) -> tuple[Interval | None, Interval | None]:
    human = [_category(h, scale, threshold) for h, _ in pairs]
    judge = [_category(j, scale, threshold) for _, j in pairs]
    numeric = scale == "numeric"
    try:
        kappa: Interval | None = cohen_kappa(
            human, judge, weights="quadratic" if numeric else None, confidence_level=level, seed=seed
        )
    except ValueError:
        kappa = None
    try:
        alpha: Interval | None = krippendorff_alpha(
            [human, judge], level="interval" if numeric else "nominal", confidence_level=level, seed=seed
        )
    except ValueError:
        alpha = None
    return kappa, alpha


def _sides(human: np.ndarray, judge: np.ndarray) -> dict[str, int]:
    return {
        "true_positives": int(((human == 1) & (judge == 1)).sum()),
        "false_negatives": int(((human == 1) & (judge == 0)).sum()),
        "true_negatives": int(((human == 0) & (judge == 0)).sum()),
        "false_positives": int(((human == 0) & (judge == 1)).sum()),
    }


def _rate(sides: dict[str, int] | None, right: str, wrong: str, level: float) -> Interval | None:
    if sides is None or sides[right] + sides[wrong] == 0:
        return None
    return proportion_interval(sides[right], sides[right] + sides[wrong], confidence_level=level)


def _concluded(found: Calibration, span: float) -> Calibration:
    trust, sentence = conclusion(found, span)
    values = {name: getattr(found, name) for name in found.__struct_fields__}
    return Calibration(**{**values, "trust": trust, "sentence": sentence})


def conclusion(found: Calibration, span: float) -> tuple[Trust, str]:
    """Whether this judge may be trusted for this task, with the reason."""
    smaller = [rate.n for rate in (found.sensitivity, found.specificity) if rate is not None]
    if found.labelled < FEWEST or found.kappa is None or any(n < FEWEST_OF_A_SIDE for n in smaller):
        return "too_few", (
            f"Too few human labels to say whether this judge may be trusted: {found.labelled} items were labelled;"
            f" at least {FEWEST} are needed, with both passes and failures among them."
        )
    kappa, bias = found.kappa, found.bias
    agrees = f"κ is {kappa.value:.2f} [{kappa.ci_lower:.2f}, {kappa.ci_upper:.2f}]"
    off = f"its mean is off by {bias.value:+.3f} [{bias.ci_lower:+.3f}, {bias.ci_upper:+.3f}]"
    if kappa.ci_lower < SOME_KAPPA:
        return "not_trusted", (
            f"Do not trust this judge for this task: it agrees with people hardly better than chance ({agrees})."
        )
    small = max(abs(bias.ci_lower), abs(bias.ci_upper)) <= SMALL_BIAS * span
    if kappa.ci_lower >= GOOD_KAPPA and small:
        return "trusted", f"This judge may be trusted for this task: {agrees}, and {off}."
    why = off if kappa.ci_lower >= GOOD_KAPPA else f"{agrees}, and {off}"
    return "corrected_only", (
        f"Do not report this judge's mean as it is ({why}); report the corrected mean,"
        f" {found.corrected.value:.3f} [{found.corrected.ci_lower:.3f}, {found.corrected.ci_upper:.3f}]."
    )
