"""The fast bootstrap and the fast sign flips, against honest resampling and exact counting."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import bootstrap_ci, mcnemar, permutation_test
from evenhand.metrics.signflip import flip_p_value

RNG = np.random.default_rng(11)
SAMPLES = {
    "normal": RNG.normal(size=200),
    "skewed": RNG.lognormal(sigma=1.2, size=150),
    "marks": np.round(RNG.random(300), 2),
    "small": RNG.random(25),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_limit_is_what_many_resamples_tend_to(name: str) -> None:
    """200,000 honest resamples: a 2.5 % quantile then has an error of 0.6 % of the standard error."""
    values = SAMPLES[name]
    rng = np.random.default_rng(1)
    means = np.concatenate(
        [values[rng.integers(0, values.size, (2000, values.size))].mean(axis=1) for _ in range(100)]
    )
    lower, upper = np.quantile(means, [0.025, 0.975])
    result = bootstrap_ci(values)
    error = values.std() / values.size**0.5
    assert result.method == "percentile/inversion"
    assert result.ci_lower == pytest.approx(lower, abs=0.03 * error)
    assert result.ci_upper == pytest.approx(upper, abs=0.03 * error)


@pytest.mark.parametrize("n", [14_000, 100_000])
def test_large_samples_agree_with_the_normal_limit_and_stay_small(n: int) -> None:
    values = np.random.default_rng(2).random(n)
    tracemalloc.start()
    result = bootstrap_ci(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    error = values.std() / n**0.5
    assert result.ci_lower == pytest.approx(values.mean() - 1.96 * error, abs=0.005 * error)
    assert result.ci_upper == pytest.approx(values.mean() + 1.96 * error, abs=0.005 * error)
    assert peak < 100e6


def test_a_hidden_lattice_is_resampled_honestly() -> None:
    """Passes and failures blurred by a millionth: all values differ, and the mean still moves in steps of 1/n."""
    rng = np.random.default_rng(3)
    values = np.concatenate((np.zeros(10), np.ones(90))) + rng.normal(0, 1e-6, 100)
    result = bootstrap_ci(values)
    assert result.method == "percentile/resampling"
    expected = scipy.stats.binom(100, 0.9).ppf([0.025, 0.975]) / 100
    assert (result.ci_lower, result.ci_upper) == pytest.approx(expected, abs=1e-4)


def test_one_giant_is_resampled_honestly() -> None:
    values = np.append(np.random.default_rng(4).random(100), 1e6)
    result = bootstrap_ci(values)
    assert result.method == "percentile/resampling"
    assert result.ci_upper == pytest.approx(scipy.stats.poisson(1).ppf(0.975) * 1e6 / 101, rel=0.01)


@pytest.mark.parametrize("sizes", ["equal", "unequal"])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_groups_are_resampled_whole(sizes: str, method: str) -> None:
    rng = np.random.default_rng(5)
    counts = np.full(40, 5) if sizes == "equal" else rng.integers(1, 12, 40)
    codes = np.repeat(np.arange(40), counts)
    values = rng.normal(size=codes.size) + rng.normal(size=40)[codes]
    members = [values[codes == g] for g in range(40)]
    result = bootstrap_ci(values, groups=codes, method=method)

    def overall(*picked: object) -> float:
        chosen = [members[int(i)] for i in np.asarray(picked[0])]
        return float(np.concatenate(chosen).mean())

    expected = scipy.stats.bootstrap(
        (np.arange(40),),
        overall,
        method="BCa" if method == "bca" else "percentile",
        n_resamples=6000,
        vectorized=False,
        rng=np.random.default_rng(6),
    )
    slack = 0.2 * float(expected.standard_error)  # four errors of a 2.5 % quantile of 6,000 draws
    assert result.ci_lower == pytest.approx(expected.confidence_interval.low, abs=slack)
    assert result.ci_upper == pytest.approx(expected.confidence_interval.high, abs=slack)
    assert result.method.startswith(f"{method}/groups/")


def _counted_exactly(terms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Two-sided share over all 2^m patterns, by meeting in the middle."""

    def sums(
        part: np.ndarray[tuple[int], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        out = np.zeros(1)
        for size in part:
            out = np.concatenate((out - size, out + size))
        return out

    half = terms.size // 2
    first, second = sums(np.abs(terms[:half])), np.sort(sums(np.abs(terms[half:])))
    edge = abs(terms.sum()) - 1e-9
    above = second.size - np.searchsorted(second, edge - first, side="left")
    below = np.searchsorted(second, -edge - first, side="right")
    return float((above.sum() + below.sum()) / (first.size * second.size))


@pytest.mark.parametrize("m", [30, 34])
def test_the_product_of_cosines_counts_all_patterns(m: int) -> None:
    """2^30 and 2^34 sign patterns, every one counted."""
    terms = np.random.default_rng(m).normal(0.25, 1.0, size=m)
    result = flip_p_value(terms, side="two-sided", n_resamples=1, seed=0)
    assert result.how == "inversion"
    assert result.p_value == pytest.approx(_counted_exactly(terms), abs=2e-4)


def test_marks_are_counted_exactly() -> None:
    terms = np.random.default_rng(9).choice([-2, -1, 1, 2, 3], size=30) / 3
    result = flip_p_value(terms, side="two-sided", n_resamples=1, seed=0)
    assert result.how == "exact"
    assert result.p_value == pytest.approx(_counted_exactly(terms), abs=1e-12)


@pytest.mark.parametrize(("losses", "wins"), [(60, 40), (5, 40), (30, 30), (0, 200), (400, 1)])
def test_flipping_passes_and_failures_is_mcnemar(losses: int, wins: int) -> None:
    differences = np.repeat([-1.0, 1.0, 0.0], [losses, wins, 300])
    for side in ("two-sided", "less", "greater"):
        assert permutation_test(differences, alternative=side).p_value == pytest.approx(
            mcnemar(losses, wins, alternative=side).p_value, rel=1e-9
        )


def test_monte_carlo_says_how_far_it_may_be_off() -> None:
    """Twenty-two terms of wildly different sizes: neither few, nor on a lattice, nor smooth."""
    terms = np.random.default_rng(12).normal(size=22) * 3.0 ** np.arange(22) ** 0.9
    result = permutation_test(terms)
    assert result.method == "permutation/monte carlo"
    assert result.monte_carlo_error is not None
    assert result.p_value == pytest.approx(_counted_exactly(terms), abs=4 * result.monte_carlo_error)
    assert permutation_test(terms) == result
    assert permutation_test(terms, seed=1) != result


def test_the_test_holds_its_level_when_problems_repeat() -> None:
    """Problems that differ by a coin each, five repeats alike: flipping pairs one by one rejects far too often."""
    rng = np.random.default_rng(13)
    groups = np.repeat(np.arange(20), 5)
    whole = single = 0
    for _ in range(400):
        differences = rng.normal(size=20)[groups] + 0.2 * rng.normal(size=100)
        whole += permutation_test(differences, groups=groups).p_value <= 0.05
        single += permutation_test(differences).p_value <= 0.05
    assert whole / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert single / 400 > 0.2


def test_clustered_medians_by_the_definition() -> None:
    values = [0.1, 0.2, 0.9, 0.8, 0.5, 0.55]
    groups = ["a", "a", "b", "b", "c", "c"]
    members = [[0.1, 0.2], [0.9, 0.8], [0.5, 0.55]]
    medians = [
        float(np.median(np.concatenate([members[i] for i in chosen])))
        for chosen in itertools.product(range(3), repeat=3)
    ]
    result = bootstrap_ci(values, groups=groups, statistic="median", confidence=0.8)
    assert result.ci_lower == pytest.approx(np.quantile(medians, 0.1), abs=0.06)
    assert result.ci_upper == pytest.approx(np.quantile(medians, 0.9), abs=0.06)
