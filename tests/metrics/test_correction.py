"""Judge correction: against the formulas of the papers, and by what it is for."""

from typing import Any

import numpy as np
import pytest

from evenhand.metrics import mean_interval, ppi_mean, rogan_gladen


def test_ppi_is_the_papers_formula() -> None:
    rng = np.random.default_rng(1)
    y, f, rest = rng.random(40), rng.random(40), rng.random(300)
    plain = ppi_mean(y, f, rest, power_tuned=False)
    assert plain.value == pytest.approx(rest.mean() - (f - y).mean())
    assert plain.standard_error == pytest.approx((rest.var(ddof=1) / 300 + (f - y).var(ddof=1) / 40) ** 0.5)


def test_tuning_hardly_loses_to_the_humans_alone() -> None:
    """A judge of pure noise costs the estimation of λ, a few percent at n = 60, and a good judge gains much."""
    rng = np.random.default_rng(2)
    y = rng.random(60)
    noise, rest = rng.random(60), rng.random(5000)
    tuned = ppi_mean(y, noise, rest)
    alone = mean_interval(y)
    assert alone.standard_error is not None
    assert tuned.standard_error is not None
    assert tuned.standard_error <= alone.standard_error * 1.08
    good = ppi_mean(y, y + 0.3 + 0.05 * noise, rng.random(5000) + 0.325)
    assert good.standard_error is not None
    assert good.standard_error < 0.3 * alone.standard_error


def test_a_biased_judge_is_corrected() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(20_000) < 0.6
    judge = np.where(truth, rng.random(20_000) < 0.95, rng.random(20_000) < 0.3).astype(float)
    looked = np.arange(200)
    result = ppi_mean(truth[looked], judge[looked], judge[200:])
    assert abs(judge.mean() - 0.6) > 0.08
    assert result.ci_lower < 0.6 < result.ci_upper


def test_labels_without_a_difference_are_no_proof_of_a_perfect_judge() -> None:
    labels = [1.0] * 27 + [0.0] * 3
    same = ppi_mean(labels, labels, [1.0] * 900 + [0.0] * 100)
    assert same.value == pytest.approx(0.9)
    assert same.ci_upper - same.ci_lower > 0.1
    constant = ppi_mean([1.0] * 30, [1.0] * 30, [1.0] * 1000)
    # Such a judge tells nothing: Clopper and Pearson's bound for 30 of 30 is 0.025^(1/30).
    assert (constant.value, constant.ci_upper) == (1.0, 1.0)
    assert constant.ci_lower == pytest.approx(0.025 ** (1 / 30))
    graded = ppi_mean([0.7, 0.7, 0.7], [0.7, 0.7, 0.7], [0.7] * 50 + [0.6] * 50)
    assert graded.ci_upper - graded.ci_lower > 0.1


@pytest.mark.parametrize(
    ("share", "wrong_on_passes", "wrong_on_failures", "labels"),
    [(0.9, 0.03, 0.03, 30), (0.9, 0.0, 0.3, 30), (0.9, 0.03, 0.03, 100), (0.8, 0.1, 0.1, 100)],
)
def test_the_interval_covers_with_a_judge_that_is_seldom_wrong(
    share: float, wrong_on_passes: float, wrong_on_failures: float, labels: int
) -> None:
    """The plain interval of the papers covers 87 % and 79 % in the first two settings."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        truth = (rng.random(labels + 1000) < share).astype(float)
        wrong = rng.random(truth.size) < np.where(truth == 1.0, wrong_on_passes, wrong_on_failures)
        judge = np.where(wrong, 1.0 - truth, truth)
        covered += ppi_mean(truth[:labels], judge[:labels], judge[labels:]).contains(share)
    assert 930 <= covered <= 990


def test_rogan_gladen_point_is_the_formula() -> None:
    result = rogan_gladen(
        positives=300, n=1000, true_positives=90, false_negatives=10, true_negatives=80, false_positives=20
    )
    assert result.value == pytest.approx((0.3 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert 0 <= result.ci_lower < result.value < result.ci_upper <= 1


def test_many_labels_approach_the_delta_method() -> None:
    """With huge label counts the interval is Wald's of p̂ divided by Youden's index."""
    result = rogan_gladen(
        positives=4000,
        n=10_000,
        true_positives=9 * 10**7,
        false_negatives=10**7,
        true_negatives=8 * 10**7,
        false_positives=2 * 10**7,
    )
    half = 1.96 * (0.4 * 0.6 / 10_000) ** 0.5 / 0.7
    assert (result.ci_upper - result.ci_lower) / 2 == pytest.approx(half, rel=0.002)


def test_both_corrections_cover() -> None:
    """2,000 experiments each: coverage 93–97 % where they are recommended (30 human labels and more)."""
    rng = np.random.default_rng(5)
    trials, hits, rg_hits = 2000, 0, 0
    for _ in range(trials):
        truth = rng.random(530) < 0.7
        judge = np.where(truth, rng.random(530) < 0.9, rng.random(530) < 0.25)
        seen = ppi_mean(truth[:30], judge[:30], judge[30:])
        hits += seen.ci_lower <= 0.7 <= seen.ci_upper
        tp, tn = int(rng.binomial(60, 0.9)), int(rng.binomial(40, 0.75))
        rg = rogan_gladen(
            positives=int(judge[30:].sum()),
            n=500,
            true_positives=tp,
            false_negatives=60 - tp,
            true_negatives=tn,
            false_positives=40 - tn,
        )
        rg_hits += rg.ci_lower <= 0.7 <= rg.ci_upper
    assert 0.93 <= hits / trials <= 0.97
    assert 0.93 <= rg_hits / trials <= 0.97


def test_a_judge_no_better_than_chance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^true_positives: .*chance"):
        rogan_gladen(
            positives=5, n=10, true_positives=5, false_negatives=5, true_negatives=5, false_positives=5
        )
    with pytest.raises(ValueError, match=r"^judge_on_human:"):
        ppi_mean([1.0, 0.0], [1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"^positives:"):
        rogan_gladen(
            positives=11, n=10, true_positives=5, false_negatives=1, true_negatives=5, false_positives=1
        )


def test_the_variance_of_the_tuned_mean_by_its_formula() -> None:
    """var = jackknife of the human part + λ²·var(judge on rest)/N; with λ for λ² it would be half as large again."""
    rng = np.random.default_rng(12)
    truth = rng.random(460) < 0.6
    judge = np.where(rng.random(460) < 0.75, truth, ~truth).astype(float)
    human, on_human, rest = truth[:60].astype(float), judge[:60], judge[60:]
    n, total = human.size, rest.size
    assert (human != on_human).sum() > 4

    def estimate(
        y: np.ndarray[Any, Any], f: np.ndarray[Any, Any], ratio: float, spread: float
    ) -> tuple[float, float]:
        weight = float(np.cov(y, f)[0, 1] / ((1 + ratio) * spread))
        return weight * float(rest.mean()) + float((y - weight * f).mean()), weight

    spread = float(np.concatenate((on_human, rest)).var(ddof=1))
    value, weight = estimate(human, on_human, n / total, spread)
    assert 0.2 < weight < 0.8
    left_out = np.array(
        [estimate(np.delete(human, i), np.delete(on_human, i), n / total, spread)[0] for i in range(n)]
    )
    human_part = float(((left_out - left_out.mean()) ** 2).sum()) * (n - 1) / n
    judge_part = weight**2 * float(rest.var(ddof=1)) / total
    found = ppi_mean(human, on_human, rest)
    assert found.value == pytest.approx(value)
    assert found.standard_error is not None
    assert found.standard_error**2 == pytest.approx(human_part + judge_part)
    assert found.standard_error**2 != pytest.approx(human_part + judge_part / weight, rel=0.01)
