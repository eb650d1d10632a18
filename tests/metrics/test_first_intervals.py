"""Intervals for means and proportions, against SciPy and published numbers."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import bootstrap_ci, category_breakdown, mean_interval, proportion_interval
from evenhand.metrics.intervals import NoSpread, constant_ends


@pytest.mark.parametrize(("x", "n"), [(0, 5), (1, 5), (3, 20), (10, 20), (20, 20), (499, 500), (81, 263)])
@pytest.mark.parametrize(("ours", "theirs"), [("wilson", "wilson"), ("clopper_pearson", "exact")])
def test_proportions_agree_with_scipy(x: int, n: int, ours: str, theirs: str) -> None:
    expected = scipy.stats.binomtest(x, n).proportion_ci(0.95, method=theirs)  # type: ignore[arg-type]
    result = proportion_interval(x, n, method=ours)
    assert result.ci_lower == pytest.approx(expected.low, abs=1e-12)
    assert result.ci_upper == pytest.approx(expected.high, abs=1e-12)
    assert result.method == ours


def test_jeffreys_is_the_posterior_of_the_beta_binomial() -> None:
    result = proportion_interval(3, 20, method="beta_binomial")
    assert (result.ci_lower, result.ci_upper) == pytest.approx(
        scipy.stats.beta(3.5, 17.5).ppf([0.025, 0.975])
    )


def test_wilson_as_published() -> None:
    """Newcombe (1998), Statistics in Medicine 17:857, table I, method 3: 81/263 and 15/148."""
    first, second = (proportion_interval(x, n, method="wilson") for x, n in ((81, 263), (15, 148)))
    assert (round(first.ci_lower, 4), round(first.ci_upper, 4)) == (0.2553, 0.3662)
    assert (round(second.ci_lower, 4), round(second.ci_upper, 4)) == (0.0624, 0.1605)


def test_students_t_agrees_with_scipy() -> None:
    values = [0.2, 0.9, 0.55, 0.7, 0.3]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    result = mean_interval(values, confidence_level=0.9)
    assert (result.ci_lower, result.ci_upper) == pytest.approx((expected.low, expected.high))
    assert result.method == "t"


def test_clustered_error_is_the_textbook_sandwich() -> None:
    """CR2 with Bell and McCaffrey's degrees of freedom, from the matrices themselves."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(7), [1, 2, 3, 8, 4, 4, 10])
    y = rng.normal(size=groups.size) + rng.normal(size=7)[groups]
    n = y.size
    x = np.ones((n, 1))
    hat = x @ x.T / n
    residuals = y - y.mean()
    rows = []
    for g in range(7):
        inside = groups == g
        size = int(inside.sum())
        eigenvalues, vectors = np.linalg.eigh(np.eye(size) - hat[np.ix_(inside, inside)])
        adjust = vectors @ np.diag(eigenvalues**-0.5) @ vectors.T
        select = (np.eye(n) - hat)[inside]
        rows.append(x[inside].T @ adjust @ select / n)
    linear = np.vstack(rows)
    variance = float(((linear @ residuals) ** 2).sum())
    working = (groups[:, None] == groups[None, :]).astype(float)
    eigen = np.linalg.eigvalsh(linear @ working @ linear.T)
    df = eigen.sum() ** 2 / (eigen**2).sum()
    result = mean_interval(y, groups=groups)
    assert result.standard_error == pytest.approx(variance**0.5)
    assert result.ci_upper - result.value == pytest.approx(scipy.stats.t(df).ppf(0.975) * variance**0.5)
    assert (result.n, result.n_groups, result.method) == (n, 7, "clustered_t")


def test_mean_and_error_agree_with_the_alpaca_eval_leaderboard(shared_data: Path) -> None:
    folder = shared_data / "alpaca_eval"
    with (folder / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        published = {row["model"]: row for row in csv.DictReader(file)}
    files = sorted(folder.glob("*.json"))
    assert len(files) >= 8
    for path in files:
        rows = msgspec.json.decode(path.read_bytes())
        percent = [100.0 * (row["preference"] - 1.0) for row in rows if row["preference"] is not None]
        result = mean_interval(percent)
        row = published[path.stem]
        assert result.n == int(row["n_total"])
        assert result.value == pytest.approx(float(row["win_rate"]), rel=1e-6)
        assert result.standard_error == pytest.approx(float(row["standard_error"]), rel=1e-6)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("kind", ["binary", "few", "distinct"])
def test_bootstrap_agrees_with_scipy(method: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    values = {
        "binary": (rng.random(60) < 0.8).astype(float),
        "few": rng.integers(0, 5, 60) / 4.0,
        "distinct": rng.exponential(size=60),
    }[kind]
    name = "BCa" if method == "bca" else method
    expected = scipy.stats.bootstrap(  # type: ignore[call-overload]
        (values,), np.mean, method=name, n_resamples=20_000, rng=np.random.default_rng(1)
    )
    result = bootstrap_ci(values, method=method, n_bootstrap=20_000)
    # A 2.5 % quantile of 20,000 normal draws has an error of 0.019 sd; two of them, four times, and BCa's own.
    slack = 0.15 * expected.standard_error
    assert result.ci_lower == pytest.approx(expected.confidence_interval.low, abs=max(slack, 1 / 60 / 4))
    assert result.ci_upper == pytest.approx(expected.confidence_interval.high, abs=max(slack, 1 / 60 / 4))


@pytest.mark.parametrize("n", [30, 31])
def test_medians_are_distributed_as_medians_of_resamples(n: int) -> None:
    values = np.random.default_rng(2).normal(size=n)
    expected = scipy.stats.bootstrap(
        (values,), np.median, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    result = bootstrap_ci(values, statistic="median", n_bootstrap=20_000)
    # The median's resampling distribution has atoms at the values: the same one or its neighbour.
    nearby = np.abs(np.diff(np.sort(values))).max() / 2
    assert result.ci_lower == pytest.approx(expected.low, abs=nearby)
    assert result.ci_upper == pytest.approx(expected.high, abs=nearby)


@pytest.mark.parametrize("value", [0.25, 0.5, 0.3])
@pytest.mark.parametrize("n", [2, 10, 300])
def test_scores_that_are_all_alike_leave_room_for_the_unseen(value: float, n: int) -> None:
    """Everything else may have a share of 1 − 0.025^(1/n) and still not be seen, with probability 0.025."""
    unseen = 1 - 0.025 ** (1 / n)
    found = mean_interval([value] * n)
    assert found.method == "constant"
    assert found.ci_lower == pytest.approx(value * (1 - unseen))
    assert found.ci_upper == pytest.approx(value * (1 - unseen) + unseen)


def test_the_room_for_the_unseen_is_clopper_pearson_at_the_ends() -> None:
    for value, n in ((0.0, 7), (1.0, 7), (1.0, 100)):
        exact = proportion_interval(int(value * n), n, method="clopper_pearson")
        ends = constant_ends(value, n, 0.025, low=0.0, high=1.0)
        assert ends == pytest.approx((exact.ci_lower, exact.ci_upper))


def test_equal_groups_count_as_one_value_each() -> None:
    found = mean_interval([0.5] * 12, groups=[n // 3 for n in range(12)])
    alone = mean_interval([0.5] * 4)
    assert (found.ci_lower, found.ci_upper) == pytest.approx((alone.ci_lower, alone.ci_upper))
    assert found.method == "clustered_constant"


def test_no_spread_on_a_scale_without_ends_is_refused() -> None:
    with pytest.raises(NoSpread, match="all are 2, so there is no spread"):
        mean_interval([2.0] * 10)
    with pytest.raises(NoSpread):
        mean_interval([-1.0] * 4, groups=[1, 1, 2, 2])
    assert mean_interval([2.0] * 10, bounds=(0.0, 5.0)).ci_upper > 2.0
    [category] = category_breakdown([{"reward": 2.0}] * 3, "category")
    assert (category.mean_reward, category.ci) == (2.0, None)
