"""The cluster bootstrap against brute force, against its own normal limit, and against the metrics package."""

import numpy as np
import pytest
from tests.ab_rows import row

from evenhand.ab import analyze
from evenhand.ab.bootstrap import LIMIT, MANY_TASKS, RESAMPLED, _limit_ends, draw_tasks
from evenhand.ab.bootstrap import _column as column_of
from evenhand.ab.decimals import Decimals, Floats, Integers
from evenhand.ab.intervals import DeltaIntervals, delta_intervals
from evenhand.ab.pairing import Pairs, summarize_deltas
from evenhand.ab.significance import MANY_PAIRS, DeltaTest, delta_tests
from evenhand.metrics.bootstrap import bootstrap_ci


def _pairs(values: Floats, task: Integers) -> Pairs:
    empty = np.zeros(0, np.bool_)
    deltas = {
        "pass_delta": np.sign(values),
        "duration_delta_seconds": values,
        "non_cache_token_delta": values,
    }
    names = (
        "cost_delta_usd token_delta cache_read_token_delta cache_write_token_delta step_count_delta "
        "tool_call_count_delta acceptance_cmd_count_delta"
    )
    deltas |= dict.fromkeys(names.split(), np.full(len(values), np.nan))
    return Pairs(
        task=task,
        repeat=np.ones(len(values), np.int64),
        exact={name: Decimals.from_floats(column) for name, column in deltas.items()},
        unpaired_treatment=empty,
        unpaired_control=empty,
    )


def _intervals(values: Floats, task: Integers, *, n_resamples: int = 10_000, seed: int = 0) -> DeltaIntervals:
    pairs = _pairs(values, task)
    found = delta_intervals(
        pairs,
        summarize_deltas(pairs),
        confidence_level=0.95,
        n_resamples=n_resamples,
        seed=seed,
        scales={"pass_delta": 1.0},
    )
    return found["duration_delta_seconds"]


def _test(values: Floats, task: Integers, *, n_resamples: int) -> DeltaTest:
    pairs = _pairs(values, task)
    return delta_tests(pairs, summarize_deltas(pairs), n_resamples=n_resamples, seed=0)[
        "duration_delta_seconds"
    ]


def _sample(tasks: int, seed: int = 5) -> tuple[Floats, Integers]:
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rng.integers(1, 7, size=tasks))
    values = np.round(rng.normal(0.4, 1.0, size=tasks)[task] + rng.normal(0, 2, size=len(task)), 2)
    return values, task


@pytest.mark.parametrize("tasks", [2, 3, 9, 40])
def test_ends_are_those_of_resamples_made_one_by_one(tasks: int) -> None:
    """The same draws of tasks, each resample written out, sorted and cut: the same ends."""
    values, task = _sample(tasks)
    got = _intervals(values, task, n_resamples=400, seed=3)
    means, lower, upper = [], [], []
    for counts in draw_tasks(tasks, 400, 3):
        resample = np.sort(np.concatenate([np.repeat(values[task == t], n) for t, n in enumerate(counts)]))
        means.append(resample.mean())
        lower.append(resample[(len(resample) - 1) // 2])
        upper.append(resample[len(resample) // 2])
    tail = 10  # 2.5% of 400 lie beyond each end
    assert got.mean_bootstrap is not None
    assert got.median_bootstrap is not None
    assert got.mean_bootstrap.ci_lower == pytest.approx(sorted(means)[tail], rel=1e-12)
    assert got.mean_bootstrap.ci_upper == pytest.approx(sorted(means)[-1 - tail], rel=1e-12)
    assert got.median_bootstrap.ci_lower == sorted(lower)[tail]
    assert got.median_bootstrap.ci_upper == sorted(upper)[-1 - tail]


def test_draws_are_resamples() -> None:
    """Every row draws as many tasks as there are; each task once on average with variance 1 − 1/T."""
    drawn = draw_tasks(50, 10_000, 0).astype(float)
    assert (drawn.sum(axis=1) == 50).all()
    # the mean of 10,000 counts with variance 0.98 has a standard error of 0.0099: five of them
    assert np.abs(drawn.mean(axis=0) - 1).max() < 0.05
    assert abs(drawn.var() - 0.98) < 0.02


def test_agrees_with_the_metrics_package() -> None:
    """Two implementations with different draws: ends within Monte Carlo error of each other."""
    values, task = _sample(40)
    ours = _intervals(values, task).mean_bootstrap
    theirs = bootstrap_ci(values, groups=task, seed=1)
    assert ours is not None
    assert ours.value == pytest.approx(theirs.value)
    width = theirs.ci_upper - theirs.ci_lower
    assert abs(ours.ci_lower - theirs.ci_lower) < 0.03 * width
    assert abs(ours.ci_upper - theirs.ci_upper) < 0.03 * width


def test_the_normal_limit_meets_the_draws() -> None:
    """Where both can be computed they agree to a few hundredths of the width."""
    tasks = MANY_TASKS
    values, task = _sample(tasks)
    drawn = _intervals(values, task)
    assert drawn.mean_bootstrap is not None
    assert drawn.median_bootstrap is not None
    assert drawn.mean_bootstrap.method == RESAMPLED
    totals = _pairs(values, task).by_task("duration_delta_seconds")
    limit = _limit_ends(column_of(totals), 0.95)
    for interval, ends in ((drawn.mean_bootstrap, limit[0]), (drawn.median_bootstrap, limit[1])):
        width = interval.ci_upper - interval.ci_lower
        assert abs(interval.ci_lower - ends[0]) < 0.05 * width
        assert abs(interval.ci_upper - ends[1]) < 0.05 * width


def test_many_tasks_use_the_limit_and_say_so() -> None:
    values, task = _sample(MANY_TASKS + 1)
    interval = _intervals(values, task).mean_bootstrap
    assert interval is not None
    assert interval.method == LIMIT
    assert interval.n_groups == MANY_TASKS + 1


def test_many_pairs_use_the_limit_of_the_sign_flips() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(0.05, 1.0, size=MANY_PAIRS)
    task = np.arange(MANY_PAIRS)
    few = _test(values, task, n_resamples=20_000)
    more = np.append(values, 0.001)
    many = _test(more, np.arange(len(more)), n_resamples=10)
    assert "monte carlo" in few.method
    assert "normal limit" in many.method
    # the Monte Carlo error of 20,000 draws is at most 0.0035
    assert abs(few.p_value - many.p_value) < 0.012


def test_one_task_gives_no_interval() -> None:
    rows = [row("t", arm, n) for arm in ("with_a", "without_a") for n in range(1, 6)]
    report = analyze(rows)
    assert report.intervals["pass_delta"].mean is None
    assert "One task says nothing about others" in report.to_markdown()


def test_the_seed_decides_and_is_reported() -> None:
    rng = np.random.default_rng(0)
    rows = [
        row(f"t{t}", arm, n, duration_seconds=float(rng.random()))
        for t in range(12)
        for arm in ("with_a", "without_a")
        for n in range(1, 4)
    ]
    first, again, other = analyze(rows), analyze(rows), analyze(rows, seed=1)
    assert first.intervals == again.intervals
    assert first.intervals != other.intervals
    assert other.to_dict()["seed"] == 1


def test_drawn_sign_flips_count_every_draw() -> None:
    """Twenty terms that cancel: every pattern is at least as extreme, so p is 1 whatever the number of draws."""
    values = np.array([1.5, -1.5, 2.25, -2.25] * 5)
    for draws in (1, 7, 100):
        found = _test(values, np.arange(20), n_resamples=draws)
        assert found.by_task_p_value == 1.0
        assert "monte carlo" in found.by_task_method
    clear = _test(np.arange(1.0, 21.0), np.arange(20), n_resamples=99)
    assert clear.by_task_p_value == 1 / 100  # only the observed pattern is as extreme


def test_draws_agree_with_the_count_of_all_patterns() -> None:
    """19 task sums, of which 2^19 patterns can be counted: the drawn p-value is within its Monte Carlo error."""
    values = np.array([1.0, 2, -1, 3, 1, -2, 2, 1, 4, -3, 1, 2, 2, -1, 3, 1, 1, -2, 2])
    sums = np.zeros(1)
    for value in np.abs(values):
        sums = np.concatenate((sums - value, sums + value))
    exact = float((np.abs(sums) >= abs(values.sum())).mean())
    found = _test(values, np.arange(19), n_resamples=40_000)
    assert found.by_task_p_value == pytest.approx(exact, abs=5 * (exact * (1 - exact) / 40_000) ** 0.5)
