"""How small a difference an experiment can see, on the scale of the score.

`sd` is the standard deviation of the paired differences (candidate minus base, problem by problem), so every
effect here is in points of the score, not in discordant pairs. Power is that of the paired t-test at level
`alpha`: with δ = effect·√n/sd it is the tail of a noncentral t with n − 1 degrees of freedom beyond the
critical value (Cohen 1988, Statistical Power Analysis, chapter 2).

With repeats, a problem's mean difference has variance between + within/repeats (see `variance_split`): more
repeats shrink the second part only.
"""

import math

import numpy as np

from evenhand.metrics.checks import (
    checked_alternative,
    checked_count,
    checked_level,
    checked_positive,
)
from evenhand.metrics.quantiles import noncentral_t_cdf, normal_quantile, t_quantile
from evenhand.metrics.special import special
from evenhand.metrics.types import Alternative, VarianceSplit

LARGEST_N = 10**9
"""`required_n` gives up beyond this many items."""


def power_of(
    effect: float, sd: float, n: int, *, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> float:
    """The chance that the test sees a true mean difference of `effect` with `n` pairs.

    One-sided, the sign of the effect counts: a drop is negative and is looked for with `less`.
    """
    effect = checked_effect(effect)
    sd = checked_positive(sd, name="sd")
    n = checked_count(n, name="n", at_least=2)
    alpha = checked_level(alpha, name="alpha")
    side = checked_alternative(alternative)
    return _power(effect, sd, n, alpha, side)


def minimum_detectable_effect(
    sd: float,
    n: int,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float:
    """The smallest true difference, as a positive number of points, that is seen with the wanted power."""
    sd = checked_positive(sd, name="sd", zero_allowed=True)
    n = checked_count(n, name="n", at_least=2)
    alpha, power = _checked_levels(alpha, power)
    side = _one_direction(checked_alternative(alternative))
    if sd == 0.0:
        return 0.0
    low, high = 0.0, sd
    while _power(high, sd, n, alpha, side) < power:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if _power(middle, sd, n, alpha, side) < power:
            low = middle
        else:
            high = middle
    return high


def mcnemar_power(effect: float, discordant: float, n: int, *, alpha: float = 0.05) -> float:
    """The chance that the exact one-sided McNemar test sees a true drop of `effect` among `n` pairs of which the
    share `discordant` differs; exact, because the test's steps cost up to 6 points of power that a t-test does not lose.
    """
    effect = checked_positive(effect, name="effect")
    n = checked_count(n, name="n", at_least=1)
    alpha = checked_level(alpha, name="alpha")
    functions = special()
    bdtr, gammaln = functions.bdtr, functions.gammaln

    share = min(1.0, max(discordant, effect))
    spread = 8.0 * (n * share * (1.0 - share)) ** 0.5 + 8.0
    first, last = max(0, int(n * share - spread)), min(n, int(n * share + spread) + 1)
    changed = np.arange(first, last + 1, dtype=np.float64)
    log = gammaln(n + 1.0) - gammaln(changed + 1.0) - gammaln(n - changed + 1.0)
    weight = np.exp(log + functions.xlogy(changed, share) + functions.xlog1py(n - changed, -share))
    whole = changed.astype(np.int64)
    guess = np.floor(changed / 2.0 - normal_quantile(1.0 - alpha) * np.sqrt(changed) / 2.0)
    tries = np.clip(guess[:, None] + np.arange(-4.0, 4.0), -1.0, changed[:, None])
    tails = np.where(tries < 0, 0.0, bdtr(np.maximum(tries, 0.0), whole[:, None], 0.5))
    wins = np.where(tails < alpha, tries, -1.0).max(axis=1)
    lost = min(1.0, (1.0 + effect / share) / 2.0)
    seen = np.where(wins < 0, 0.0, bdtr(np.maximum(wins, 0.0), whole, 1.0 - lost))
    return float((weight * seen).sum())


def mcnemar_minimum_detectable_effect(
    discordant: float, n: int, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """The smallest drop that the exact one-sided McNemar test sees with the wanted power; None when none is."""
    alpha, power = _checked_levels(alpha, power)
    low, high = 0.0, 1.0
    if mcnemar_power(high, discordant, n, alpha=alpha) < power:
        return None
    for _ in range(50):
        middle = (low + high) / 2.0
        if mcnemar_power(middle, discordant, n, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


def flip_minimum_detectable_effect(
    sd: float, n: int, changed: int, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """The smallest drop that a one-sided sign-flip test sees with the wanted power; None when none is.

    `changed` of the `n` values differ from 0. Of their 2^changed sign patterns k = ⌊α·2^changed⌋ can be significant: none
    below five values at 5 %. With k = 1 every value must have fallen, and the drop is where Φ(drop/sd)^n is the power;
    otherwise it is that of a t-test at the level k/2^changed, which the test can attain.
    """
    alpha, power = _checked_levels(alpha, power)
    patterns = 2.0 ** min(changed, 60)
    significant = math.ceil(alpha * patterns * (1.0 - 1e-12)) - 1  # p must be below α
    if significant < 1 or sd == 0.0:
        return None
    if significant == 1:
        return sd * normal_quantile(power ** (1.0 / n))
    return minimum_detectable_effect(sd, n, power=power, alpha=significant / patterns, alternative="greater")


def required_n(
    effect: float,
    sd: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> int:
    """The smallest number of pairs that sees a difference of `effect` (its sign is ignored) with the wanted power."""
    size = abs(checked_effect(effect))
    if size == 0.0:
        raise ValueError("effect: must not be 0")
    sd = checked_positive(sd, name="sd", zero_allowed=True)
    alpha, power = _checked_levels(alpha, power)
    side = _one_direction(checked_alternative(alternative))
    if sd == 0.0:
        return 2
    tail = alpha / 2.0 if side == "two-sided" else alpha
    first_guess = ((normal_quantile(1.0 - tail) + normal_quantile(power)) * sd / size) ** 2
    if first_guess > LARGEST_N:
        raise ValueError(f"effect: {effect} would need more than {LARGEST_N} items")
    low, high = 1, max(2, int(first_guess))
    while _power(size, sd, high, alpha, side) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _power(size, sd, middle, alpha, side) < power:
            low = middle
        else:
            high = middle
    return high


def sd_of_problem_means(split: VarianceSplit, repeats: int) -> float:
    """The standard deviation of a problem's mean over `repeats`: √(between + within/repeats)."""
    repeats = checked_count(repeats, name="repeats", at_least=1)
    return float((split.between + split.within / repeats) ** 0.5)


def clustered_power_of(
    effect: float,
    split: VarianceSplit,
    *,
    items: int,
    repeats: int,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float:
    """`power_of` for `items` problems with `repeats` each, from the variance split of their differences."""
    sd = sd_of_problem_means(split, repeats)
    items = checked_count(items, name="items", at_least=2)
    return power_of(effect, sd, items, alpha=alpha, alternative=alternative)


def clustered_minimum_detectable_effect(
    split: VarianceSplit,
    *,
    items: int,
    repeats: int,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float:
    """`minimum_detectable_effect` for `items` problems with `repeats` each."""
    sd = sd_of_problem_means(split, repeats)
    items = checked_count(items, name="items", at_least=2)
    return minimum_detectable_effect(sd, items, power=power, alpha=alpha, alternative=alternative)


def required_items(
    effect: float,
    split: VarianceSplit,
    *,
    repeats: int,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> int:
    """How many problems are needed in all, each repeated `repeats` times."""
    sd = sd_of_problem_means(split, repeats)
    return required_n(effect, sd, power=power, alpha=alpha, alternative=alternative)


def required_repeats(
    effect: float,
    split: VarianceSplit,
    *,
    items: int,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> int | None:
    """How many repeats of each of `items` problems are needed; None when no number of repeats suffices."""
    size = abs(checked_effect(effect))
    if size == 0.0:
        raise ValueError("effect: must not be 0")
    items = checked_count(items, name="items", at_least=2)
    # Seen as soon as the standard deviation of the problem means falls to where this design has the power.
    per_unit = minimum_detectable_effect(1.0, items, power=power, alpha=alpha, alternative=alternative)
    allowed = (size / per_unit) ** 2
    if split.between >= allowed:
        return None
    return max(1, -int(-split.within // (allowed - split.between)))


def checked_effect(effect: float) -> float:
    """A finite number."""
    number = float(effect)
    if not abs(number) < float("inf"):
        raise ValueError(f"effect: must be finite, not {effect!r}")
    return number


def _checked_levels(alpha: float, power: float) -> tuple[float, float]:
    alpha = checked_level(alpha, name="alpha")
    power = checked_level(power, name="power")
    if power <= alpha:
        raise ValueError(f"power: must be above alpha ({alpha}), not {power}")
    return alpha, power


def _one_direction(side: Alternative) -> Alternative:
    return "greater" if side == "less" else side


def _power(effect: float, sd: float, n: int, alpha: float, side: Alternative) -> float:
    shift = effect * n**0.5 / sd
    df = n - 1
    if side == "two-sided":
        edge = t_quantile(1.0 - alpha / 2.0, df)
        # A rejection in the wrong direction is a rejection too: both tails count.
        return noncentral_t_cdf(-edge, df, shift) + noncentral_t_cdf(-edge, df, -shift)
    edge = t_quantile(1.0 - alpha, df)
    return noncentral_t_cdf(-edge, df, -shift if side == "greater" else shift)
