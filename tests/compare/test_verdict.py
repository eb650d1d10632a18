"""The verdict's table, row by row."""

import pytest

from evenhand.compare.verdict import Evidence, decide
from evenhand.metrics.types import Interval


def evidence(low: float, value: float, high: float, p_drop: float, *, max_drop: float = 0.05) -> Evidence:
    return Evidence(
        delta=Interval(value=value, ci_lower=low, ci_upper=high, confidence_level=0.95, method="t", n=100),
        p_drop=p_drop,
        p_rise=1 - p_drop,
        max_drop=max_drop,
        coverage_share=1.0,
        min_coverage=0.0,
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
