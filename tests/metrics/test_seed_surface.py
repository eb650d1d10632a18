"""What the documentation promised first: pass@k, bootstrap intervals, category breakdowns, corrections for many tests."""

import itertools
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import benjamini_hochberg, bootstrap_ci, holm, pass_at_k, pass_hat_k
from evenhand.metrics.aggregation import category_breakdown


def test_pass_at_k_is_the_share_of_subsets_with_a_success() -> None:
    for n in range(1, 7):
        for c, k in itertools.product(range(n + 1), range(1, n + 1)):
            subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
            assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_pass_at_k_is_exact_for_large_counts() -> None:
    assert pass_at_k(n=8, c=3, k=1) == 0.375
    assert pass_at_k(n=8, c=3, k=4) == 1 - comb(5, 4) / comb(8, 4)
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("n", "c", "k", "named"),
    [(5, 2, 6, "k"), (5, 6, 1, "c"), (5, 2, 0, "k"), (0, 0, 1, "n"), (5, -1, 1, "c"), (5, 1.5, 1, "c")],
)
def test_impossible_counts_are_refused(n: int, c: int, k: int, named: str) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=f"^{named}:"):
            function(n, c, k)


def test_bootstrap_ci_as_documented() -> None:
    ci = bootstrap_ci([1, 0, 1, 1, 0, 1, 1, 1])
    assert (
        f"pass@1: {ci.value:.4f} [{ci.ci_lower:.4f}, {ci.ci_upper:.4f}]" == "pass@1: 0.7500 [0.3750, 1.0000]"
    )


def test_category_breakdown_as_documented() -> None:
    rows = [
        {"reward": 1.0, "metadata": {"category": "algebra"}},
        {"reward": 0.0, "metadata": {"category": "algebra"}},
        {"reward": None, "status": "failed", "metadata": {"category": "algebra"}},
        {"reward": None, "status": "unscored", "metadata": {"category": "logic"}},
        SimpleNamespace(reward=0.5, metadata={"category": "logic"}),
        {"reward": 1.0, "metadata": {}},
    ]
    cats = category_breakdown(rows, "category")
    assert [(c.category, c.mean_reward, c.n_samples, c.unscored, c.failed) for c in cats] == [
        ("algebra", 0.5, 2, 0, 1),
        ("logic", 0.5, 1, 1, 0),
        ("uncategorised", 1.0, 1, 0, 0),
    ]
    assert cats[0].ci is not None
    assert cats[0].ci.ci_lower < 0.5 < cats[0].ci.ci_upper
    assert cats[1].ci is None


def test_repeats_of_a_problem_are_one_group() -> None:
    rows = [
        {"reward": float(problem % 2), "problem_idx": problem, "repeat": repeat, "metadata": {"c": "x"}}
        for problem in range(10)
        for repeat in range(5)
    ]
    (category,) = category_breakdown(rows, "c")
    assert category.ci is not None
    assert (category.ci.n, category.ci.n_groups) == (50, 10)


def test_multiplicity_corrections() -> None:
    """Holm by its definition; Benjamini–Hochberg against SciPy."""
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.5])
    # sorted: .005·5, .01·4, .03·3, .04·2 → raised to the previous, .5·1
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.5])
    assert benjamini_hochberg(p) == pytest.approx(scipy.stats.false_discovery_control(p))
    with pytest.raises(ValueError, match="p_values"):
        holm([0.1, 1.2])
