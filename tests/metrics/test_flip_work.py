"""Sign flips of whole numbers: exact where that is cheap, and the same answer by other means where it is not."""

import numpy as np
import pytest

from evenhand.metrics.paired import permutation_test


def test_token_counts_do_not_start_an_endless_exact_sum() -> None:
    """1,000 whole numbers up to 1,900 would take 1.8 billion cosines; the normal limit is the reference.

    z = Σd / √Σd²; with a thousand terms the one-sided p-value is 1 − Φ(z) to about a hundredth of itself.
    """
    differences = np.random.default_rng(5).integers(-900, 1000, size=1000).astype(float)
    found = permutation_test(differences, alternative="greater")
    z = differences.sum() / np.sqrt((differences**2).sum())
    from scipy.stats import norm

    assert found.method != "permutation/exact"
    assert found.p_value == pytest.approx(norm.sf(z), rel=0.05)


def test_marks_and_passes_are_still_summed_exactly() -> None:
    differences = np.random.default_rng(6).integers(-4, 5, size=400) / 4
    assert permutation_test(differences).method == "permutation/exact"
