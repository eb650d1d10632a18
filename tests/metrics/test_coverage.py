"""Long proof: the coverage claims of docs/metrics.md, cell by cell, with fixed seeds."""

import pytest
from bench.coverage import DATA, HIGH, LOW, SHARES, SIZES, attainable, coverage, recommended
from bench.coverage_others import OTHERS, Case

TRIALS = 2_000


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("p", SHARES)
def test_the_default_covers(data: str, n: int, p: float) -> None:
    found = coverage(data, n, p, "auto", TRIALS)
    assert found >= LOW
    if recommended(data, n, p):
        assert found <= HIGH


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS, ids=lambda case: f"{case.name}: {case.setting}")
def test_the_others_cover_where_they_are_recommended(case: Case) -> None:
    assert LOW <= case.coverage(TRIALS) <= case.at_most


@pytest.mark.slow
@pytest.mark.parametrize("method", ["t", "percentile", "bca"])
def test_what_the_default_avoids_does_fail(method: str) -> None:
    assert coverage("zeros and ones", 20, 0.99, method, TRIALS) < 0.2
    assert coverage("zeros and ones in groups", 100, 0.99, method, 300) < 0.7


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("p", SHARES)
def test_zeros_and_ones_are_covered(n: int, p: float) -> None:
    """Exact, so quick enough for every run."""
    found = coverage("zeros and ones", n, p, "auto", 0)
    assert found >= LOW
    assert found <= HIGH or not attainable(n, p)
