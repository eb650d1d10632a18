"""Several attempts per problem: pass@k and pass^k, intervals over repeats, and where the variance lies."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics.checks import checked_count, checked_level, checked_values, is_binary
from evenhand.metrics.intervals import FEW_FAILURES, mean_interval, proportion_ends, proportion_interval
from evenhand.metrics.quantiles import t_quantile
from evenhand.metrics.types import FloatArray, Interval, VarianceSplit

ByProblem = Mapping[Any, npt.ArrayLike] | Sequence[npt.ArrayLike]
"""The values of every problem's repeats: a mapping from problem to values, or one sequence per problem."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of `k` attempts is correct, given `c` correct ones among `n`.

    1 − C(n−c, k)/C(n, k), unbiased for k ≤ n (Chen et al. 2021, arXiv 2107.03374, equation 1), in exact
    arithmetic.

    >>> pass_at_k(n=8, c=3, k=1)
    0.375
    """
    n, c, k = _checked_attempts(n, c, k)
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of `k` attempts are correct, given `c` correct ones among `n`.

    C(c, k)/C(n, k), unbiased for k ≤ n (Yao et al. 2024, arXiv 2406.12045).

    >>> pass_hat_k(n=8, c=4, k=2)
    0.21428571428571427
    """
    n, c, k = _checked_attempts(n, c, k)
    return float(Fraction(comb(c, k), comb(n, k)))


def pass_at_k_interval(
    counts: Sequence[tuple[int, int]], k: int, *, confidence_level: float = 0.95
) -> Interval:
    """The mean pass@k over problems, from (attempts, correct) of each; attempts may differ, none below `k`.

    Each problem's unbiased estimate is one value, and the problems are a sample of all problems, so the
    interval is `mean_interval` of these values; it holds the noise of the attempts too. A single problem gets
    the interval of its own chance, `problem_pass_at_k_interval`.
    """
    return _over_problems(counts, k, confidence_level, pass_at_k, problem_pass_at_k_interval)


def pass_hat_k_interval(
    counts: Sequence[tuple[int, int]], k: int, *, confidence_level: float = 0.95
) -> Interval:
    """The mean pass^k over problems; see `pass_at_k_interval`."""
    return _over_problems(counts, k, confidence_level, pass_hat_k, problem_pass_hat_k_interval)


def problem_pass_at_k_interval(n: int, c: int, k: int, *, confidence_level: float = 0.95) -> Interval:
    """pass@k of one problem: the ends are 1 − (1 − p)^k at the ends of the interval of its success chance p."""
    return _one_problem(n, c, k, confidence_level, pass_at_k(n, c, k), lambda p: 1.0 - (1.0 - p) ** k)


def problem_pass_hat_k_interval(n: int, c: int, k: int, *, confidence_level: float = 0.95) -> Interval:
    """pass^k of one problem: the ends are p^k at the ends of the interval of its success chance p."""
    return _one_problem(n, c, k, confidence_level, pass_hat_k(n, c, k), lambda p: p**k)


def repeats_interval(values_by_problem: ByProblem, *, confidence_level: float = 0.95) -> Interval:
    """The mean over these very problems, with the uncertainty of the repeats alone.

    The problems are fixed and the model is noisy: how would the mean over the same problems vary if they were
    run again? The estimate is the mean of the problem means, its variance Σ s²ᵢ/mᵢ/I² with s²ᵢ the variance
    among the mᵢ repeats of problem i, and the degrees of freedom are Satterthwaite's (1946, Biometrics
    2:110). A problem with one repeat borrows the pooled variance. With at most four failures (or successes)
    among zeros and ones the interval is Clopper–Pearson's for as many attempts as carry the same information,
    which over-covers when problems differ (Hoeffding 1956, Annals of Mathematical Statistics 27:713).
    """
    groups = _checked_groups(values_by_problem)
    level = checked_level(confidence_level)
    sizes = np.array([group.size for group in groups], dtype=np.float64)
    if (sizes < 2).all():
        raise ValueError("values_by_problem: at least one problem needs two repeats")
    means = np.array([group.mean() for group in groups])
    value = float(means.mean())
    variances = np.array([group.var(ddof=1) if group.size > 1 else 0.0 for group in groups])
    pooled = float(((sizes - 1) * variances).sum() / (sizes - 1).sum())
    variances = np.where(sizes > 1, variances, pooled)
    parts = variances / sizes / means.size**2
    error = float(parts.sum() ** 0.5)
    together = np.concatenate(groups)
    failures = min(together.sum(), together.size - together.sum())
    if is_binary(together) and failures <= FEW_FAILURES:
        attempts = means.size**2 / float((1.0 / sizes).sum())
        lower, upper = proportion_ends(value * attempts, attempts, level, "clopper_pearson")
        method = "repeats_clopper_pearson"
    else:
        shares = parts / parts.max() if error > 0.0 else np.ones_like(parts)
        df = float(shares.sum() ** 2 / (shares**2 / np.maximum(sizes - 1, 1)).sum())
        half = t_quantile((1.0 + level) / 2.0, df) * error
        lower, upper, method = value - half, value + half, "repeats_t"
    return Interval(
        value=value,
        ci_lower=lower,
        ci_upper=upper,
        confidence_level=level,
        method=method,
        n=together.size,
        n_groups=means.size,
        standard_error=error,
    )


def variance_split(values_by_problem: ByProblem) -> VarianceSplit:
    """The variance of one repeat, split into within and between problems.

    The one-way analysis of variance for unequal sizes: within = MSW, between = (MSB − MSW)/m₀, not below 0,
    with m₀ = (N − Σmᵢ²/N)/(I − 1) (Searle, Casella and McCulloch 1992, Variance Components, section 3.6).
    """
    groups = _checked_groups(values_by_problem)
    if len(groups) < 2:
        raise ValueError("values_by_problem: at least 2 problems are needed")
    sizes = np.array([group.size for group in groups], dtype=np.float64)
    n = float(sizes.sum())
    if n <= len(groups):
        raise ValueError("values_by_problem: at least one problem needs two repeats")
    means = np.array([group.mean() for group in groups])
    grand = float((sizes * means).sum() / n)
    inside = sum(float(((group - mean) ** 2).sum()) for group, mean in zip(groups, means, strict=True))
    within = inside / (n - len(groups))
    across = float((sizes * (means - grand) ** 2).sum()) / (len(groups) - 1)
    balance = (n - float((sizes**2).sum()) / n) / (len(groups) - 1)
    between = max(0.0, (across - within) / balance)
    return VarianceSplit(
        within=within, between=between, total=within + between, n_problems=len(groups), n_values=int(n)
    )


def _checked_groups(values_by_problem: ByProblem) -> list[FloatArray]:
    listed = values_by_problem.values() if isinstance(values_by_problem, Mapping) else values_by_problem
    groups = [np.sort(checked_values(values, name="values_by_problem")) for values in listed]
    if not groups:
        raise ValueError("values_by_problem: must not be empty")
    # The same problems in another order must give the same bits.
    return sorted(groups, key=lambda group: group.tolist())


def _over_problems(
    counts: Sequence[tuple[int, int]],
    k: int,
    level: float,
    estimate: Callable[[int, int, int], float],
    single: Callable[..., Interval],
) -> Interval:
    pairs = [(int(n), int(c)) for n, c in counts]
    if not pairs:
        raise ValueError("counts: must not be empty")
    for position, (n, c) in enumerate(pairs):
        try:
            _checked_attempts(n, c, k)
        except ValueError as error:
            raise ValueError(f"counts: problem {position}: {error}") from None
    if len(pairs) == 1:
        only: Interval = single(*pairs[0], k, confidence_level=level)
        return only
    return mean_interval([estimate(n, c, k) for n, c in pairs], confidence_level=level)


def _one_problem(
    n: int, c: int, k: int, level: float, value: float, transform: Callable[[float], float]
) -> Interval:
    chance = proportion_interval(c, n, confidence_level=level)
    return Interval(
        value=value,
        ci_lower=transform(chance.ci_lower),
        ci_upper=transform(chance.ci_upper),
        confidence_level=level,
        method=chance.method,
        n=n,
    )


def _checked_attempts(n: int, c: int, k: int) -> tuple[int, int, int]:
    n = checked_count(n, name="n", at_least=1)
    c = checked_count(c, name="c")
    if c > n:
        raise ValueError(f"c: must be at most n ({n}), not {c}")
    k = checked_count(k, name="k", at_least=1)
    if k > n:
        raise ValueError(f"k: must be at most n ({n}), not {k}")
    return n, c, k
