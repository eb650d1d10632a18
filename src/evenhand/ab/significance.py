"""Whether a paired delta is more than chance, for tasks like these and for these very tasks.

`by_task_p_value` decides. Repeats of one task share whatever makes that task special, so only tasks are independent: the
test flips the sign of whole tasks. With T tasks it cannot fall below 2/2^T; five tasks prove nothing at 0.05, and the
three gates, corrected after Holm, need seven.

`p_value` treats every pair as a unit: exact McNemar for pass and fail, sign flips of single pairs for the rest. It
answers for these very tasks only: where tasks differ in how they take to the treatment, it calls a mean effect of zero
proven in 19 to 43% of data sets (docs/ab.md).
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand.ab.arms import METRIC_BY_NAME, METRICS
from evenhand.ab.decimals import Floats
from evenhand.ab.pairing import DeltaSummary, Pairs, TaskTotals
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import mcnemar, permutation_test
from evenhand.metrics.quantiles import normal_cdf

ALPHA = 0.05
TESTED = ("success", "duration_seconds", "non_cache_tokens")
"""The metrics of the three gates, over which the p-values are corrected."""
_CHUNK_CELLS = 1 << 20
EXACT_FLIPS = 18
"""Up to this many terms that are not 0, every sign pattern is enumerated."""
MANY_PAIRS = 1_000
"""Beyond this many pairs that differ, a sum of random signs is normal for all purposes, and 10,000 draws are not."""


class DeltaTest(Struct, frozen=True, kw_only=True):
    """A two-sided test that a delta is zero."""

    by_task_p_value: float
    """The probability, were the mean delta zero over tasks like these, of task sums at least this extreme."""
    by_task_method: str
    """`sign flips of whole tasks (exact | monte carlo | normal limit)`."""
    tasks: int
    """Tasks that went in."""
    p_holm: float | None
    """`by_task_p_value` after Holm's correction over the three gates; None for other deltas."""
    proven: bool | None
    """Whether `p_holm` is at most 0.05; None for other deltas."""
    mean: float
    """The mean delta."""
    p_value: float
    """The same question about these very tasks: pairs as units."""
    method: str
    """How `p_value` was made: `exact McNemar`, `sign-flip permutation (exact | monte carlo | normal limit)`."""
    statistic: float
    """The mean delta; for McNemar the number of pairs that only the treatment passed."""
    pairs: int
    """Pairs that went in."""
    wins: int | None = None
    """McNemar: pairs that only the treatment passed."""
    losses: int | None = None
    """McNemar: pairs that only the control passed."""


def delta_tests(
    pairs: Pairs, deltas: Mapping[str, DeltaSummary], *, n_resamples: int, seed: int
) -> dict[str, DeltaTest]:
    """A test for every delta that at least one pair has."""
    found: dict[str, DeltaTest] = {}
    for metric in METRICS:
        mean = deltas[metric.delta].mean
        if mean is not None:
            totals = pairs.by_task(metric.delta)
            found[metric.delta] = _test(
                totals, mean, binary=metric.name == "success", n_resamples=n_resamples, seed=seed
            )
    tested = [delta for name in TESTED if (delta := METRIC_BY_NAME[name].delta) in found]
    if tested:
        adjusted = holm([found[delta].by_task_p_value for delta in tested])
        for delta, p_holm in zip(tested, adjusted.tolist(), strict=True):
            found[delta] = replace(found[delta], p_holm=p_holm, proven=p_holm <= ALPHA)
    return found


def _test(totals: TaskTotals, mean: float, *, binary: bool, n_resamples: int, seed: int) -> DeltaTest:
    values = totals.values
    by_task, p_by_task = _flip(totals.sums, n_resamples, seed)
    wins, losses = int((values > 0).sum()), int((values < 0).sum())
    if binary:
        method, p_value = "exact McNemar", mcnemar(losses, wins).p_value
    else:
        how, p_value = _flip(values, n_resamples, seed)
        method = f"sign-flip permutation ({how})"
    return DeltaTest(
        by_task_p_value=p_by_task,
        by_task_method=f"sign flips of whole tasks ({by_task})",
        tasks=len(totals),
        p_holm=None,
        proven=None,
        mean=mean,
        p_value=p_value,
        method=method,
        statistic=float(wins) if binary else mean,
        pairs=len(values),
        wins=wins if binary else None,
        losses=losses if binary else None,
    )


def _flip(terms: Floats, n_resamples: int, seed: int) -> tuple[str, float]:
    count = int(np.count_nonzero(terms))
    if count <= EXACT_FLIPS:
        result = permutation_test(terms, n_resamples=n_resamples, seed=seed)
        return result.method.rpartition("/")[2], result.p_value
    if count <= MANY_PAIRS:
        # Drawn here: the exact sum of whole numbers of tokens would cost seconds per delta.
        return "monte carlo", _drawn(terms, n_resamples, seed)
    z = abs(float(terms.sum())) / float(np.sqrt((terms**2).sum()))
    return "normal limit", 2.0 * normal_cdf(-z)


def _drawn(terms: Floats, n_resamples: int, seed: int) -> float:
    """The p-value over drawn sign patterns, the observed one counted too (Phipson and Smyth 2010, SAGMB 9:39)."""
    sizes = np.sort(np.abs(terms[terms != 0.0]))
    observed = abs(float(terms.sum()))
    # Sums this close are equal: floats of 0.9 − 0.8 are not all alike.
    slack = 1e-9 * float(sizes.sum())
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK_CELLS // len(sizes))
    hits = 0
    for start in range(0, n_resamples, rows):
        drawn = rng.integers(0, 2, size=(min(rows, n_resamples - start), len(sizes)), dtype=np.int8)
        sums = (2.0 * drawn - 1.0) @ sizes
        hits += int((np.abs(sums) >= observed - slack).sum())
    return (hits + 1) / (n_resamples + 1)
