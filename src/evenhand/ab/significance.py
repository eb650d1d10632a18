"""Whether a paired delta is more than chance: exact McNemar for pass and fail, sign flips for the rest.

Were both arms alike on every task, each pair could as well have been swapped. That holds pair by pair, whatever the
tasks are, so the tests answer for *these tasks*; the intervals, which resample tasks, answer for *tasks like these*.
`by_task_p_value` flips whole tasks together, for those who want the second question tested as well: with T tasks it
cannot fall below 2/2^T.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import METRIC_BY_NAME, METRICS
from evenhand.ab.decision import GATE_METRICS, Gate, Verdict
from evenhand.ab.pairing import Pairs
from evenhand.ab.table import Floats, Integers
from evenhand.metrics.multiplicity import holm
from evenhand.metrics.paired import mcnemar, permutation_test
from evenhand.metrics.quantiles import normal_cdf

ALPHA = 0.05
_CHUNK_CELLS = 1 << 20
EXACT_FLIPS = 18
"""Up to this many terms that are not 0, every sign pattern is enumerated."""
MANY_PAIRS = 1_000
"""Beyond this many pairs that differ, a sum of random signs is normal for all purposes, and 10,000 draws are not."""


class DeltaTest(Struct, frozen=True, kw_only=True):
    """A two-sided test that a delta is zero."""

    method: str
    """`exact McNemar`, `sign-flip permutation (exact | monte carlo | normal limit)`."""
    statistic: float
    """The mean delta; for McNemar the number of pairs that only the treatment passed."""
    p_value: float
    """The probability, were the arms alike, of data at least this extreme."""
    p_holm: float | None
    """The same after Holm's correction over the three gates; None for other deltas."""
    proven: bool | None
    """Whether `p_holm` is at most 0.05; None for other deltas."""
    by_task_p_value: float
    """The sign-flip p-value when whole tasks are flipped."""
    pairs: int
    """Pairs that went in."""
    wins: int | None = None
    """McNemar: pairs that only the treatment passed."""
    losses: int | None = None
    """McNemar: pairs that only the control passed."""


def delta_tests(pairs: Pairs, *, n_resamples: int, seed: int) -> dict[str, DeltaTest]:
    """A test for every delta that at least one pair has."""
    raw: dict[str, DeltaTest] = {}
    for metric in METRICS:
        column = pairs.deltas[metric.delta]
        known = ~np.isnan(column)
        if known.any():
            values, task = column[known], pairs.task[known]
            make = _mcnemar if metric.name == "success" else _flips
            raw[metric.delta] = make(values, task, n_resamples, seed)
    gate_deltas = [METRIC_BY_NAME[name].delta for name in GATE_METRICS.values()]
    tested = [delta for delta in gate_deltas if delta in raw]
    if tested:
        for delta, adjusted in zip(tested, holm([raw[delta].p_value for delta in tested]), strict=True):
            raw[delta] = _with_holm(raw[delta], float(adjusted))
    return raw


def _with_holm(test: DeltaTest, adjusted: float) -> DeltaTest:
    fields = {name: getattr(test, name) for name in test.__struct_fields__}
    return DeltaTest(**{**fields, "p_holm": adjusted, "proven": adjusted <= ALPHA})


def _mcnemar(values: Floats, task: Integers, n_resamples: int, seed: int) -> DeltaTest:
    wins, losses = int((values > 0).sum()), int((values < 0).sum())
    result = mcnemar(losses, wins)
    return DeltaTest(
        method="exact McNemar",
        statistic=float(wins),
        p_value=result.p_value,
        p_holm=None,
        proven=None,
        by_task_p_value=_flip(_sums(values, task), n_resamples, seed)[1],
        pairs=len(values),
        wins=wins,
        losses=losses,
    )


def _flips(values: Floats, task: Integers, n_resamples: int, seed: int) -> DeltaTest:
    how, p_value = _flip(values, n_resamples, seed)
    return DeltaTest(
        method=f"sign-flip permutation ({how})",
        statistic=float(values.mean()),
        p_value=p_value,
        p_holm=None,
        proven=None,
        by_task_p_value=_flip(_sums(values, task), n_resamples, seed)[1],
        pairs=len(values),
    )


def _sums(values: Floats, task: Integers) -> Floats:
    _, codes = np.unique(task, return_inverse=True)
    return np.bincount(codes, weights=values).astype(np.float64)


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


def require_proof(verdict: Verdict, gates: tuple[Gate, ...], tests: Mapping[str, DeltaTest]) -> Verdict:
    """The verdict when an unproven gate counts as open: mixed unless every gate is proven in its favour."""
    if verdict not in ("treatment", "control"):
        return verdict
    sign = 1.0 if verdict == "treatment" else -1.0
    for gate in gates:
        metric = METRIC_BY_NAME[GATE_METRICS[gate.name]]
        test = tests.get(metric.delta)
        lead = _lead(test) * (1.0 if metric.higher_is_better else -1.0)
        if test is None or not test.proven or lead * sign <= 0.0:
            return "mixed"
    return verdict


def _lead(test: DeltaTest | None) -> float:
    if test is None:
        return 0.0
    if test.wins is not None and test.losses is not None:
        return float(test.wins - test.losses)
    return test.statistic
