"""Intervals from kept sums equal the intervals from the scores themselves."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from evenhand.metrics.exact import as_fraction
from evenhand.metrics.intervals import mean_interval
from evenhand.metrics.kept import KeptGroups, kept_interval


def kept(scores: list[float], groups: list[int]) -> list[KeptGroups]:
    """What a store would have kept of the scores."""
    entries: dict[tuple[int, int], list[Fraction]] = {}
    for group, size in Counter(groups).items():
        own = [as_fraction(s) for s, g in zip(scores, groups, strict=True) if g == group]
        entries.setdefault((size, sum(v == 1 for v in own)), []).append(sum(own, Fraction(0)))
    return [
        KeptGroups(
            size=size,
            passes=passes,
            count=len(sums),
            total=sum(sums, Fraction(0)),
            squares=sum((s * s for s in sums), Fraction(0)),
        )
        for (size, passes), sums in entries.items()
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("repeats", [1, 3])
def test_kept_sums_give_the_interval_of_the_scores(seed: int, binary: bool, repeats: int) -> None:
    """Chances near 1 in some seeds bring in the intervals for few failures."""
    rng = np.random.default_rng(seed)
    groups = [g for g in range(30) for _ in range(rng.integers(1, repeats + 1))]
    chance = rng.choice([0.5, 0.9, 0.98, 1.0])
    scores = [float(rng.random() < chance) if binary else round(rng.random(), 2) for _ in groups]
    alone = len(set(groups)) == len(groups)
    wanted = mean_interval(scores, groups=None if alone else groups)
    found = kept_interval(kept(scores, groups), binary=binary)
    assert found is not None
    assert found.method == wanted.method
    for name in ("value", "ci_lower", "ci_upper"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-12)


def test_too_little_data_gives_no_interval() -> None:
    assert kept_interval([], binary=True) is None
    assert kept_interval(kept([0.5], [1]), binary=False) is None
    assert kept_interval(kept([0.5, 0.25], [1, 1]), binary=False) is None


@pytest.mark.parametrize("repeats", [1, 2])
def test_kept_scores_that_are_all_alike(repeats: int) -> None:
    scores, groups = [0.3] * 6, [n // repeats for n in range(6)]
    wanted = mean_interval(scores, groups=None if repeats == 1 else groups)
    found = kept_interval(kept(scores, groups), binary=False)
    assert found is not None
    assert found.method == wanted.method
    assert (found.ci_lower, found.ci_upper) == pytest.approx((wanted.ci_lower, wanted.ci_upper))
    assert kept_interval(kept([2.0] * 6, groups), binary=False) is None
