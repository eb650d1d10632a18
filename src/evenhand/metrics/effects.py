"""Effect sizes of paired comparisons, each with its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics.checks import checked_count, checked_level, checked_values, same_length
from evenhand.metrics.intervals import mean_interval, proportion_ends
from evenhand.metrics.quantiles import noncentrality
from evenhand.metrics.types import Interval


def cohens_d_paired(
    base: npt.ArrayLike, candidate: npt.ArrayLike, *, confidence_level: float = 0.95
) -> Interval:
    """The mean difference in units of the standard deviation of the differences (d_z).

    The interval inverts the noncentral t: its ends are the noncentralities at which the observed
    t = d·√n has tail probability (1 − level)/2, over √n (Cumming and Finch 2001, Educational and
    Psychological Measurement 61:532). One value per problem: average repeats first.
    """
    first = checked_values(base, name="base", at_least=2)
    second = checked_values(candidate, name="candidate")
    same_length(first, second, names=("base", "candidate"))
    level = checked_level(confidence_level)
    differences = np.sort(second - first)
    n = differences.size
    sd = float(differences.std(ddof=1))
    if sd <= 1e-12 * float(np.abs(differences).max()):
        raise ValueError("candidate: every pair differs by the same amount, so the effect size is undefined")
    d = float(differences.mean()) / sd
    tail = (1.0 - level) / 2.0
    return Interval(
        value=d,
        ci_lower=noncentrality(1.0 - tail, n - 1.0, d * n**0.5) / n**0.5,
        ci_upper=noncentrality(tail, n - 1.0, d * n**0.5) / n**0.5,
        confidence_level=level,
        method="noncentral_t",
        n=n,
    )


def matched_odds_ratio(losses: int, wins: int, *, confidence_level: float = 0.95) -> Interval:
    """The odds that the candidate wins a discordant pair: wins/losses.

    The ends are the odds of the Clopper–Pearson interval for wins among discordant pairs (Breslow and Day
    1980, Statistical Methods in Cancer Research I, section 5.2).
    """
    losses = checked_count(losses, name="losses", at_least=1)
    wins = checked_count(wins, name="wins", at_least=1)
    level = checked_level(confidence_level)
    lower, upper = proportion_ends(wins, losses + wins, level, "clopper_pearson")
    return Interval(
        value=wins / losses,
        ci_lower=lower / (1.0 - lower),
        ci_upper=upper / (1.0 - upper),
        confidence_level=level,
        method="clopper_pearson",
        n=losses + wins,
    )


def win_rate(
    base: npt.ArrayLike,
    candidate: npt.ArrayLike,
    *,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    confidence_level: float = 0.95,
) -> Interval:
    """The share of pairs in which the candidate scores higher, ties counting half."""
    first = checked_values(base, name="base", at_least=2)
    second = checked_values(candidate, name="candidate")
    same_length(first, second, names=("base", "candidate"))
    wins = (np.sign(second - first) + 1.0) / 2.0
    return mean_interval(wins, groups=groups, confidence_level=confidence_level)
