"""A mean over all items from labels of a weighted sample: which items to label first, and what follows from them.

Priority sampling (Duffield, Lund, Thorup 2007, Journal of the ACM 54:32): item i with weight wᵢ gets the rank uᵢ/wᵢ for
a uniform uᵢ, and items are labelled in the order of their ranks. Given t, the smallest rank that is not labelled, the
items before it were taken with the probability min(1, t·wᵢ), and inverse weighting is unbiased.
"""

import math
from collections.abc import Sequence

import numpy as np

from evenhand.metrics.checks import checked_level
from evenhand.metrics.quantiles import t_quantile
from evenhand.metrics.types import Interval


def corrected_by_sample(
    judged: Sequence[float],
    labelled: Sequence[float | None],
    *,
    ranks: Sequence[float],
    weights: Sequence[float],
    confidence_level: float = 0.95,
) -> Interval:
    """The mean that labels would give over these items, from the judge's values and the labels of a priority sample.

    The population is the items themselves. Labels beyond the first unlabelled rank are left out: they were not taken
    by the sample. Values lie in [0, 1].
    """
    judge = np.asarray(judged, dtype=np.float64)
    human = np.array([math.nan if value is None else value for value in labelled])
    rank, weight = np.asarray(ranks, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if not judge.size == human.size == rank.size == weight.size:
        raise ValueError("judged, labelled, ranks and weights must have the same length")
    level = checked_level(confidence_level)
    threshold = float(rank[np.isnan(human)].min(initial=math.inf))
    used = ~np.isnan(human) & (rank < threshold)
    count, items = int(used.sum()), judge.size
    if count < 2:
        raise ValueError("labelled: at least 2 items of the sample need a label")
    chance = np.minimum(1.0, weight[used] * threshold) if math.isfinite(threshold) else np.ones(count)
    error = human[used] - judge[used]
    value = float(judge.mean() + (error / chance).sum() / items)
    standard_error = math.sqrt(float(((error / chance) ** 2 * (1.0 - chance)).sum())) / items
    half = t_quantile(0.5 + level / 2, count - 1) * standard_error
    # Labels that all agree with the judge leave nothing to vary: so large a share of others would go unseen.
    unseen = (1.0 - ((1.0 - level) / 2) ** (1.0 / count)) * (items - count) / items
    half = max(half, unseen)
    return Interval(
        value=min(1.0, max(0.0, value)),
        ci_lower=max(0.0, value - half),
        ci_upper=min(1.0, value + half),
        confidence_level=level,
        method="priority_sample",
        n=count,
        standard_error=standard_error,
    )
