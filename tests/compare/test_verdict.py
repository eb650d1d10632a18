"""The verdict's table, row by row."""

import pytest
from tests.runs import run, single

from evenhand.compare import Options, compare_runs
from evenhand.compare.pairing import pair_runs
from evenhand.compare.verdict import Evidence, decide
from evenhand.metrics.power import mcnemar_power
from evenhand.metrics.types import Interval

WHOLE = pair_runs(run(single([1.0] * 100)), run(single([1.0] * 100))).coverage


def evidence(low: float, value: float, high: float, p_drop: float, *, max_drop: float = 0.05) -> Evidence:
    return Evidence(
        delta=Interval(value=value, ci_lower=low, ci_upper=high, confidence_level=0.95, method="t", n=100),
        p_drop=p_drop,
        p_rise=1 - p_drop,
        max_drop=max_drop,
        coverage=WHOLE,
        min_coverage=0.98,
        more_problems=240,
        wanted_effect=0.05,
    )


@pytest.mark.parametrize(
    ("low", "value", "high", "p_drop", "name", "words"),
    [
        (-0.14, -0.10, -0.06, 0.001, "BLOCK", "really worse: by 10.0 points, more than the 5.0 points"),
        (-0.11, -0.06, -0.01, 0.01, "BLOCK", "really worse"),
        (-0.04, -0.03, -0.02, 0.001, "WARN", "within the 5.0 points"),
        (-0.08, -0.04, -0.001, 0.02, "WARN", "within the 5.0 points"),
        (-0.04, -0.01, 0.02, 0.3, "PASS", "more than 5.0 points is ruled out"),
        (0.01, 0.03, 0.05, 0.999, "PASS", "really better, by 3.0 points"),
        (-0.20, -0.10, 0.01, 0.06, "INCONCLUSIVE", "anywhere from -20.0 points to +1.0 points"),
        (-0.06, 0.00, 0.06, 0.5, "INCONCLUSIVE", "cannot tell"),
    ],
)
def test_each_row_of_the_table(
    low: float, value: float, high: float, p_drop: float, name: str, words: str
) -> None:
    verdict = decide(evidence(low, value, high, p_drop))
    assert verdict.name == name
    assert words in verdict.sentence
    assert verdict.next_step


def test_a_tolerance_of_zero_is_a_tolerance_and_not_unset() -> None:
    assert decide(evidence(-0.02, -0.01, -0.001, 0.01, max_drop=0.0)).name == "BLOCK"


def test_a_proven_block_does_not_doubt_itself() -> None:
    verdict = decide(evidence(-0.22, -0.20, -0.18, 1e-9))
    assert "tolerated drop 5.0 points: the whole interval lies beyond it" in verdict.reasons
    assert not any("not ruled out" in words for words in verdict.reasons)
    near = decide(evidence(-0.11, -0.06, -0.01, 0.01))
    assert (
        "tolerated drop 5.0 points: the estimate lies beyond it, the interval reaches within it"
        in near.reasons
    )
    assert near.sentence == (
        "The candidate is really worse: by 6.0 points as measured, more than the 5.0 points that are tolerated; that the "
        "true drop is larger than tolerated is not proven."
    )
    within = decide(evidence(-0.07, -0.04, -0.01, 0.01))
    assert within.sentence == (
        "The candidate is really worse, by 4.0 points as measured; that the true drop is within the 5.0 points that are "
        "tolerated is not proven."
    )


def test_what_is_not_shown_is_called_not_proven() -> None:
    assert "the gain of 1.0 points is not proven" in decide(evidence(-0.01, 0.01, 0.03, 0.8)).sentence
    assert "the drop of 1.0 points is not proven" in decide(evidence(-0.04, -0.01, 0.02, 0.3)).sentence
    assert decide(evidence(-0.06, 0.0, 0.06, 0.5)).sentence.startswith("Not proven")
    for low, value, high, p in ((-0.01, 0.01, 0.03, 0.8), (-0.06, 0.0, 0.06, 0.5)):
        assert "really" not in decide(evidence(low, value, high, p)).sentence


def test_methods_are_explained_where_they_are_named() -> None:
    assert "(Student's t on the problems' differences)" in decide(evidence(-0.01, 0.01, 0.03, 0.8)).reasons[0]


def test_a_drop_just_beyond_the_tolerance_is_told_with_enough_digits() -> None:
    found = compare_runs(run(single([0.8] * 300)), run(single([0.7499] * 300)), Options(max_drop=0.05))
    assert found.verdict.name == "BLOCK"
    assert "by 5.01 points as measured, more than the 5.0 points" in found.verdict.sentence
    tie = compare_runs(run(single([0.8] * 300)), run(single([0.75] * 300)), Options(max_drop=0.05))
    assert tie.verdict.name == "WARN"


@pytest.mark.parametrize("changed", [0, 1, 3, 8, 20])
@pytest.mark.parametrize("max_drop", [0.02, 0.05, 0.1])
def test_the_advised_number_of_problems_has_the_power_that_it_promises(changed: int, max_drop: float) -> None:
    """As many more problems, if as many differ: exact McNemar then sees the drop in 80 % of cases or more."""
    n = 60
    moved = [1.0 - (k % 2) if k < changed else 1.0 for k in range(n)]
    base = [float(k % 2) if k < changed else 1.0 for k in range(n)]
    found = compare_runs(run(single(base)), run(single(moved)), Options(max_drop=max_drop))
    more = found.evidence.more_problems
    assert more is not None
    assert mcnemar_power(max_drop, changed / n, n + more) >= 0.8
    if more:
        assert mcnemar_power(max_drop, changed / n, n + more) <= 0.98  # and not many times too many
