"""Pairing by problem and repeat, and what the missing could do."""

import pytest
from tests.runs import run, single

from evenhand.compare.pairing import pair_runs
from evenhand.core.errors import InputError


def test_problems_are_compared_by_the_mean_of_their_paired_repeats() -> None:
    """Problem 0: base (1 + 0)/2, candidate (0 + 0)/2. Problem 1: repeat 1 failed in the base, so repeat 0 alone."""
    pairing = pair_runs(run({0: [1.0, 0.0], 1: [1.0, None]}), run({0: [0.0, 0.0], 1: [1.0, 1.0]}))
    assert [(p.base, p.candidate, p.repeats) for p in pairing.problems] == [(0.5, 0.0, 2), (1.0, 1.0, 1)]
    assert not pairing.single
    assert pairing.binary
    assert (pairing.base_tally.scored, pairing.base_tally.failed) == (3, 1)


def test_everything_that_is_not_compared_is_listed_with_both_statuses() -> None:
    pairing = pair_runs(run({0: [1.0], 1: [None], 2: [1.0]}), run({0: [1.0], 1: [1.0], 3: [0.0]}))
    assert [(m.problem_idx, m.base, m.candidate) for m in pairing.coverage.missing] == [
        (1, "failed", "scored"),
        (2, "scored", "absent"),
        (3, "absent", "scored"),
    ]
    assert pairing.coverage.share == 1 / 4


def test_worst_case_bounds_by_hand() -> None:
    """Four problems. 0: 1 → 1 (0). 1: ? → 1: between 1−1 and 1−0. 2: 1 → ?: −1 to 0. 3: ? → 0: −1 to 0.

    Worst (0 + 0 − 1 − 1)/4 = −0.5, best (0 + 1 + 0 + 0)/4 = 0.25.
    """
    coverage = pair_runs(run({0: [1.0], 1: [None], 2: [1.0]}), run({0: [1.0], 1: [1.0], 3: [0.0]})).coverage
    assert (coverage.worst_delta, coverage.best_delta) == (-0.5, 0.25)


def test_bounds_reach_as_far_as_the_scores_seen() -> None:
    """Scores up to 5: a missing candidate score may be anything from 0 to 5."""
    coverage = pair_runs(run(single([5.0, 2.0])), run(single([5.0, None]))).coverage
    assert (coverage.worst_delta, coverage.best_delta) == ((0 - 2) / 2, (5 - 2) / 2)


def test_nothing_in_common_is_an_error_that_counts_both_sides() -> None:
    with pytest.raises(
        InputError, match=r"no sample is scored in both runs .*1 scored.*0 scored, 1 problems"
    ):
        pair_runs(run(single([1.0])), run(single([None])))
