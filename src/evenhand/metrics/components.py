"""Where the noise of a mean comes from: items, repeats and the judge; and what less of it would cost."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from evenhand.metrics.checks import checked_count, checked_positive, checked_values
from evenhand.metrics.types import FloatArray

Lever = Literal["items", "repeats", "judgements"]


class VarianceComponents(Struct, frozen=True, kw_only=True):
    """The variance of one judgement of one answer to a random item, in three parts."""

    items: float
    """Variance of the items' true means: what only more items average away."""
    repeats: float | None
    """Variance of the answers to one item, as a perfect judge would see it; None where no item has two answers
    (then it is part of `items`)."""
    judge: float | None
    """Variance of the judgements of one answer; None where no answer is judged twice (then it is part of
    `repeats`)."""

    @property
    def total(self) -> float:
        """The variance of one judgement of one answer to a random item."""
        return self.items + (self.repeats or 0.0) + (self.judge or 0.0)

    def variance_of_mean(self, *, items: int, repeats: int = 1, judgements: int = 1) -> float:
        """Of a mean over so many items, answers to each and judgements of each answer."""
        inner = (self.repeats or 0.0) + (self.judge or 0.0) / judgements
        return (self.items + inner / repeats) / items


class Reduction(Struct, frozen=True, kw_only=True):
    """One way to a smaller standard error."""

    lever: Lever
    """More of what."""
    share: float | None
    """The part of the present squared standard error that it would average away; None where it is not known."""
    now: int
    """How many there are now."""
    needed: int | None
    """How many would do; None when no number does, or when its part is not known."""
    extra_cost: float | None
    """What the difference costs; None when `needed` is."""


Nested = Mapping[Any, Sequence[Sequence[float]]] | Sequence[Sequence[Sequence[float]]]
"""Items, the answers to each, the judgements of each answer."""


def variance_components(scores: Nested) -> VarianceComponents:
    """The variance of scores split into items, repeats and judge.

    `scores` holds, for every item, a list of judgements for each of its answers. The estimates equate the mean squares
    of the nested analysis of variance to their expectations, for any numbers of answers and judgements; none is
    below 0 (Searle, Casella and McCulloch 1992, Variance Components, the nested classification). With n_ij judgements of answer j
    to item i, n_i of item i, N in all, a items and b answers:

    MS(judge)   = ΣΣΣ (y_ijk − ȳ_ij)²/(N − b),     expected σ²_judge
    MS(repeats) = ΣΣ n_ij (ȳ_ij − ȳ_i)²/(b − a),   expected σ²_judge + k₁σ²_repeats
    MS(items)   = Σ n_i (ȳ_i − ȳ)²/(a − 1),        expected σ²_judge + k₂σ²_repeats + k₃σ²_items

    with k₁ = (N − ΣΣn_ij²/n_i)/(b − a), k₂ = (ΣΣn_ij²/n_i − ΣΣn_ij²/N)/(a − 1), k₃ = (N − Σn_i²/N)/(a − 1).
    """
    groups = _checked(scores)
    sizes = [np.array([answer.size for answer in item], np.float64) for item in groups]
    means = [np.array([float(answer.mean()) for answer in item]) for item in groups]
    n_i = np.array([float(size.sum()) for size in sizes])
    mean_i = np.array(
        [float((size * mean).sum() / size.sum()) for size, mean in zip(sizes, means, strict=True)]
    )
    n, a, b = float(n_i.sum()), len(groups), sum(size.size for size in sizes)
    squares_in_items = float(sum((size**2).sum() / size.sum() for size in sizes))
    squares = float(sum((size**2).sum() for size in sizes))
    inside = sum(
        float(((answer - mean) ** 2).sum())
        for item, item_means in zip(groups, means, strict=True)
        for answer, mean in zip(item, item_means, strict=True)
    )
    judge = inside / (n - b) if n > b else None
    among = sum(
        float((size * (mean - middle) ** 2).sum())
        for size, mean, middle in zip(sizes, means, mean_i, strict=True)
    )
    repeats = None
    if b > a:
        repeats = max(0.0, (among / (b - a) - (judge or 0.0)) / ((n - squares_in_items) / (b - a)))
    across = float((n_i * (mean_i - float((n_i * mean_i).sum()) / n) ** 2).sum()) / (a - 1)
    k2 = (squares_in_items - squares / n) / (a - 1)
    k3 = (n - float((n_i**2).sum()) / n) / (a - 1)
    items = max(0.0, (across - (judge or 0.0) - k2 * (repeats or 0.0)) / k3)
    return VarianceComponents(items=items, repeats=repeats, judge=judge)


def ways_to_reduce(
    components: VarianceComponents,
    *,
    items: int,
    repeats: int = 1,
    judgements: int = 1,
    by: float = 0.1,
    item_cost: float = 0.0,
    answer_cost: float = 0.0,
    judge_cost: float = 0.0,
) -> list[Reduction]:
    """What a standard error smaller by the share `by` takes with each lever alone, and what that costs.

    Costs are per item, per answer and per judgement. More items shrink everything; more repeats leave the items' part,
    more judgements leave the items' and the repeats' part.
    """
    items = checked_count(items, name="items", at_least=1)
    repeats = checked_count(repeats, name="repeats", at_least=1)
    judgements = checked_count(judgements, name="judgements", at_least=1)
    by = checked_positive(by, name="by")
    if by >= 1.0:
        raise ValueError(f"by: must lie between 0 and 1, not {by!r}")
    costs = [
        checked_positive(cost, name=name, zero_allowed=True)
        for name, cost in (("item_cost", item_cost), ("answer_cost", answer_cost), ("judge_cost", judge_cost))
    ]

    def price(counts: Mapping[Lever, int]) -> float:
        answers = counts["items"] * counts["repeats"]
        return counts["items"] * costs[0] + answers * costs[1] + answers * counts["judgements"] * costs[2]

    now: dict[Lever, int] = {"items": items, "repeats": repeats, "judgements": judgements}
    variance = components.variance_of_mean(items=items, repeats=repeats, judgements=judgements)
    target = variance * (1.0 - by) ** 2
    # The variance of the mean is fixed + moved/count in each lever's own count.
    judged = (components.judge or 0.0) / (items * repeats)
    answered = (components.repeats or 0.0) / items + judged * repeats / judgements
    moved: dict[Lever, float | None] = {
        "items": variance * items,
        "repeats": None if components.repeats is None else answered,
        "judgements": None if components.judge is None else judged,
    }
    found = []
    for lever, part in moved.items():
        needed = None
        if part is not None and variance > 0.0:
            left = target - (variance - part / now[lever])
            # Less than a millionth of an item is rounding.
            needed = math.ceil(part / left - 1e-6) if left > 1e-12 * variance else None
        cost = None if needed is None else price({**now, lever: needed}) - price(now)
        share = None if part is None or variance <= 0.0 else part / now[lever] / variance
        found.append(Reduction(lever=lever, share=share, now=now[lever], needed=needed, extra_cost=cost))
    return found


def _checked(scores: Nested) -> list[list[FloatArray]]:
    listed = scores.values() if isinstance(scores, Mapping) else scores
    groups = [[np.sort(checked_values(answer, name="scores")) for answer in item] for item in listed]
    if len(groups) < 2:
        raise ValueError("scores: at least 2 items are needed")
    if not all(groups):
        raise ValueError("scores: every item needs at least one answer")
    # The same items and answers in another order must give the same bits.
    for item in groups:
        item.sort(key=lambda answer: answer.tolist())
    return sorted(groups, key=lambda item: [answer.tolist() for answer in item])
