"""What humans would say, from many judge scores and a few human ones."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evenhand.metrics.checks import (
    checked_count,
    checked_level,
    checked_positive,
    checked_values,
    same_length,
)
from evenhand.metrics.differences import difference_interval
from evenhand.metrics.intervals import mean_interval
from evenhand.metrics.quantiles import normal_quantile, t_quantile
from evenhand.metrics.types import FloatArray, Interval

FEW_DIFFERENCES = 4
"""Up to so many differences between humans and judge say little about how often they differ."""


def ppi_mean(
    human: npt.ArrayLike,
    judge_on_human: npt.ArrayLike,
    judge_on_rest: npt.ArrayLike,
    *,
    power_tuned: bool = True,
    confidence_level: float = 0.95,
) -> Interval:
    """The mean of the human score over all items, from human scores on a random few and the judge's on all.

    θ = λ·mean(judge on rest) + mean(human − λ·judge on the human items): the judge's bias is measured where
    humans looked and taken off (Angelopoulos et al. 2023, arXiv 2301.09633, with λ = 1). `power_tuned` picks
    the λ in [0, 1] of least variance, cov(human, judge)/((1 + n/N)·var(judge)), so that a useless judge
    costs nothing (PPI++, Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453). The variance is
    var(human − λ·judge)/n + λ²·var(judge on rest)/N. Human scores are few, so its first part is the jackknife's
    when λ was tuned on them, and the quantile is Student's t with Satterthwaite's degrees of freedom: the
    papers' normal interval covers 92 % at n = 20 where this covers 94 %.

    Where humans and judge differ on at most four items, hardly anything is known about how often they do: 30
    labels without one difference are no proof of a perfect judge. For scores from 0 to 1 the first part is then
    that of the labels with one difference more in each direction, as Bonett and Price (2012, Journal of
    Educational and Behavioral Statistics 37:479) do for paired proportions. With a judge that is wrong on 3 % of
    the items and 30 labels this covers 95 % where the plain interval covers 87 %.
    """
    y = checked_values(human, name="human", at_least=2)
    f = checked_values(judge_on_human, name="judge_on_human")
    same_length(y, f, names=("human", "judge_on_human"))
    rest = checked_values(judge_on_rest, name="judge_on_rest", at_least=2)
    level = checked_level(confidence_level)
    shares = all(part.min() >= 0.0 and part.max() <= 1.0 for part in (y, f, rest))
    return _predicted(
        y,
        f,
        rest,
        level=level,
        power_tuned=power_tuned,
        bounds=(0.0, 1.0) if shares else None,
        humans_alone=lambda: mean_interval(y, confidence_level=level),
    )


def ppi_difference(
    *,
    human_base: npt.ArrayLike,
    human_candidate: npt.ArrayLike,
    judge_base_on_human: npt.ArrayLike,
    judge_candidate_on_human: npt.ArrayLike,
    judge_base_on_rest: npt.ArrayLike,
    judge_candidate_on_rest: npt.ArrayLike,
    power_tuned: bool = True,
    confidence_level: float = 0.95,
    scale: float | None = 1.0,
) -> Interval:
    """Candidate minus base as humans would score them, from human scores on a random few items and the judge's on all.

    `ppi_mean` of the paired differences: y = human(candidate) − human(base) where humans scored both answers to an
    item, f the same difference by the judge. What the judge gets wrong about both systems alike drops out of f; what
    it gets wrong about one of them (it likes long answers, and the candidate is long) is measured on y − f and
    taken off. Every column has one value per item; with repeats, their means.

    `scale` is the largest difference of two scores, 1 for scores from 0 to 1 and None where nobody knows. With at most
    four items on which humans and judge see another difference, one such item is added in each direction, as in
    `ppi_mean`.
    """
    y = _paired(human_base, human_candidate, names=("human_base", "human_candidate"), at_least=2)
    f = _paired(
        judge_base_on_human,
        judge_candidate_on_human,
        names=("judge_base_on_human", "judge_candidate_on_human"),
    )
    same_length(y, f, names=("human_base", "judge_base_on_human"))
    rest = _paired(
        judge_base_on_rest,
        judge_candidate_on_rest,
        names=("judge_base_on_rest", "judge_candidate_on_rest"),
        at_least=2,
    )
    level = checked_level(confidence_level)
    largest = None if scale is None else checked_positive(scale, name="scale")
    within = largest is not None and all(float(np.abs(part).max()) <= largest for part in (y, f, rest))
    return _predicted(
        y,
        f,
        rest,
        level=level,
        power_tuned=power_tuned,
        bounds=(-largest, largest) if within and largest is not None else None,
        humans_alone=lambda: difference_interval(y, None, level, scale=largest),
    )


def _paired(
    base: npt.ArrayLike, candidate: npt.ArrayLike, *, names: tuple[str, str], at_least: int = 1
) -> FloatArray:
    first = checked_values(base, name=names[0], at_least=at_least)
    second = checked_values(candidate, name=names[1])
    same_length(first, second, names=names)
    return second - first


def _predicted(
    y: FloatArray,
    f: FloatArray,
    rest: FloatArray,
    *,
    level: float,
    power_tuned: bool,
    bounds: tuple[float, float] | None,
    humans_alone: Callable[[], Interval],
) -> Interval:
    """The prediction-powered mean of y; `bounds` are the ends of the scale where every value lies within."""
    order = np.lexsort((f, y))
    y, f, rest = y[order], f[order], np.sort(rest)
    n, total = y.size, rest.size
    more_y, more_f = y, f
    if bounds is not None and np.count_nonzero(y != f) <= FEW_DIFFERENCES:
        # One difference more in each direction.
        more_y, more_f = np.append(y, (bounds[1], 0.0)), np.append(f, (0.0, bounds[1]))
    if power_tuned:
        spread = float(np.concatenate((f, rest)).var(ddof=1))
        if spread <= 0.0:
            # A judge that always says the same tells nothing: what is left are the humans.
            alone = humans_alone()
            return replace(alone, method=f"ppi++/{alone.method}", n=n + total)
        weight = float(_tuned(_covariance(y, f), n / total, spread))
        human_part = _jackknife(more_y, more_f, rest)
    else:
        weight = 1.0
        human_part = float((more_y - more_f).var(ddof=1)) / more_y.size
    value = weight * float(rest.mean()) + float((y - weight * f).mean())
    judge_part = weight**2 * float(rest.var(ddof=1)) / total
    variance = human_part + judge_part
    share = human_part / variance if variance > 0.0 else 1.0
    df = 1.0 / (share**2 / (n - 1) + (1.0 - share) ** 2 / (total - 1))
    half = t_quantile((1.0 + level) / 2.0, df) * variance**0.5
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (-np.inf, np.inf)
    return Interval(
        value=value,
        ci_lower=float(max(value - half, low)),
        ci_upper=float(min(value + half, high)),
        confidence_level=level,
        method="ppi++" if power_tuned else "ppi",
        n=n + total,
        standard_error=variance**0.5,
    )


def _covariance(y: FloatArray, f: FloatArray) -> float:
    return float(((y - y.mean()) * (f - f.mean())).sum()) / (y.size - 1)


def _tuned(covariance: float | FloatArray, ratio: float, spread: float) -> FloatArray:
    if spread <= 0.0:
        return np.zeros_like(covariance, dtype=np.float64)
    return np.clip(covariance / ((1.0 + ratio) * spread), 0.0, 1.0)


def _jackknife(y: FloatArray, f: FloatArray, rest: FloatArray) -> float:
    # The whole estimate again without each human score in turn, λ included.
    n = y.size
    centre, ratio = float(rest.mean()), n / rest.size
    spread = float(np.concatenate((f, rest)).var(ddof=1))
    if n < 3:
        return float((y - f).var(ddof=1)) / n
    others_y, others_f = y.sum() - y, f.sum() - f
    covariance = ((y * f).sum() - y * f - others_y * others_f / (n - 1)) / (n - 2)
    weight = _tuned(covariance, ratio, spread)
    values = weight * centre + (others_y - weight * others_f) / (n - 1)
    return float(((values - values.mean()) ** 2).sum()) * (n - 1) / n


def rogan_gladen(
    *,
    positives: int,
    n: int,
    true_positives: int,
    false_negatives: int,
    true_negatives: int,
    false_positives: int,
    confidence_level: float = 0.95,
) -> Interval:
    """The true share of passes, from a judge that errs at known rates.

    The judge passed `positives` of `n`; on items with human labels it was right or wrong as the four counts
    say. The estimate is (p̂ + specificity − 1)/(sensitivity + specificity − 1), kept in [0, 1] (Rogan and
    Gladen 1978, American Journal of Epidemiology 107:71). The interval is that of Lang and Reiczigel (2014,
    Preventive Veterinary Medicine 113:13), which adds z² trials to the share and one right and one wrong
    answer to each rate, so that few labels are not taken for certainty.
    """
    n = checked_count(n, name="n", at_least=1)
    positives = checked_count(positives, name="positives", at_most=n)
    tp = checked_count(true_positives, name="true_positives")
    fn = checked_count(false_negatives, name="false_negatives")
    tn = checked_count(true_negatives, name="true_negatives")
    fp = checked_count(false_positives, name="false_positives")
    level = checked_level(confidence_level)
    if tp + fn == 0:
        raise ValueError("true_positives: at least one human-labelled pass is needed")
    if tn + fp == 0:
        raise ValueError("true_negatives: at least one human-labelled failure is needed")
    value = _corrected(positives / n, tp / (tp + fn), tn / (tn + fp))
    z = normal_quantile((1.0 + level) / 2.0)
    trials = n + z * z
    share = (positives + z * z / 2.0) / trials
    n_se, n_sp = tp + fn + 2.0, tn + fp + 2.0
    se, sp = (tp + 1.0) / n_se, (tn + 1.0) / n_sp
    youden = se + sp - 1.0
    if youden <= 0.0:
        raise ValueError("true_positives: the judge is no better than chance; nothing can be corrected")
    centre = (share + sp - 1.0) / youden
    at = min(1.0, max(0.0, centre))
    se_part, sp_part = se * (1.0 - se) / n_se, sp * (1.0 - sp) / n_sp
    shift = 2.0 * z * z * (at * se_part - (1.0 - at) * sp_part)
    error = (share * (1.0 - share) / trials + at**2 * se_part + (1.0 - at) ** 2 * sp_part) ** 0.5 / youden
    return Interval(
        value=value,
        ci_lower=min(max(0.0, centre + shift - z * error), value),
        ci_upper=max(min(1.0, centre + shift + z * error), value),
        confidence_level=level,
        method="lang_reiczigel",
        n=n,
        standard_error=error,
    )


def _corrected(share: float, sensitivity: float, specificity: float) -> float:
    youden = sensitivity + specificity - 1.0
    if youden <= 0.0:
        raise ValueError("true_positives: the judge is no better than chance; nothing can be corrected")
    return min(1.0, max(0.0, (share + specificity - 1.0) / youden))
