"""Enough repeats or not, high variance by the stated rule, and how many more would settle a gate."""

import math
from typing import Any

import numpy as np
import pytest
from tests.ab_rows import row

from evenhand.ab import analyze
from evenhand.ab.narrative import next_steps
from evenhand.ab.readiness import _plan
from evenhand.metrics.quantiles import normal_quantile


def _rows(repeats: int, *, noise: float = 0.0, tasks: str = "ab", **treatment: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    rows = []
    for task in tasks:
        for n in range(1, repeats + 1):
            for arm, fields in (("with_a", treatment), ("without_a", {})):
                seconds = 10 * (1 + noise * float(rng.uniform(-1, 1)))
                rows.append(row(task, arm, n, **{"duration_seconds": seconds, **fields}))
    return rows


@pytest.mark.parametrize(("repeats", "ready"), [(1, False), (4, False), (5, True), (9, True)])
def test_five_repeats_make_a_decision_ready(repeats: int, ready: bool) -> None:
    report = analyze(_rows(repeats), n_resamples=10)
    assert report.readiness.ready == ready
    assert ("not ready for promotion" in report.to_markdown()) == (not ready)
    assert report.readiness.lacking_count == (0 if ready else 4)
    assert all(lack.missing == 5 - repeats for lack in report.readiness.lacking)


def test_a_task_that_one_arm_never_ran_lacks_all_repeats() -> None:
    report = analyze([*_rows(5), row("c", "with_a", 1)], n_resamples=10)
    lacks = [(lack.task_id, lack.arm, lack.missing) for lack in report.readiness.lacking]
    assert lacks == [("c", "with_a", 4), ("c", "without_a", 5)]


def test_ten_repeats_are_recommended_when_runs_vary_a_lot() -> None:
    """Uniform ±60% has a coefficient of variation of 0.6/√3 = 0.35, above 0.3; ±30% has 0.17."""
    calm, wild = analyze(_rows(9, noise=0.3), n_resamples=10), analyze(_rows(9, noise=0.6), n_resamples=10)
    assert not calm.readiness.high_variance
    assert calm.readiness.recommended_repeats == 5
    assert wild.readiness.high_variance
    assert wild.readiness.recommended_repeats == 10
    spread = wild.readiness.spread["duration_seconds"]
    assert spread == pytest.approx(0.6 / math.sqrt(3), rel=0.15)
    assert any("use 10 repeats; 4 task-arm pairs have fewer" in step for step in next_steps(wild))
    enough = analyze(_rows(10, noise=0.6), n_resamples=10)
    assert not any("use 10 repeats" in step for step in next_steps(enough))


def test_repeats_that_disagree_about_success_are_high_variance() -> None:
    rows = _rows(6)
    for one in rows:
        if one["task_id"] == "a" and one["arm"] == "with_a":
            one["success"] = one["repeat"] % 2 == 0
    report = analyze(rows, n_resamples=10)
    assert report.readiness.disagreement == 0.25  # one of four task-arm pairs
    assert report.readiness.high_variance


def test_the_spread_is_the_pooled_coefficient_of_variation() -> None:
    """Values 1 and 3 have mean 2 and sample variance 2: a squared coefficient of ½; the constant arm has 0."""
    rows = [row("t", "with_a", n, duration_seconds=s) for n, s in ((1, 1), (2, 3))]
    rows += [row("t", "without_a", n, duration_seconds=7) for n in (1, 2)]
    assert analyze(rows, n_resamples=10).readiness.spread["duration_seconds"] == pytest.approx(0.5)


def test_extra_repeats_go_where_repeats_differ() -> None:
    """One task is constant, so only the other is repeated: until 3.54... standard errors fit into the mean.

    With weights ½ the squared standard error is ¼·s²/r. s² = 2 (values 0 and 2), the mean is 1; needed are
    z(1 − 0.05/6) + z(0.8) standard errors, so r ≥ ¼·2·(z + z)² = 5.2: six repeats, four more than the two.
    """
    values, task = (
        np.array([1.0, 1.0, 0.0, 2.0]),
        np.array([0, 0, 1, 1]),
    )  # equal means: nothing between tasks
    ratio = normal_quantile(1 - 0.05 / 6) + normal_quantile(0.8)
    needed = math.ceil(0.25 * 2 * ratio**2)
    assert needed == 6
    assert _plan(values, task) == {1: needed - 2}


def _calm_and_wild(tasks: int, lead: int) -> list[dict[str, Any]]:
    """Tasks that always gain `lead` tokens, and one whose runs vary by more than that."""
    noise = [-400, 300, -300, 400, 0]
    rows = []
    for n, shift in enumerate(noise, start=1):
        for arm, gain in (("with_a", lead), ("without_a", 0)):
            rows += [row(f"calm{t}", arm, n, input_tokens=1000 - gain) for t in range(tasks - 1)]
            rows.append(row("wild", arm, n, input_tokens=1000 - gain + (shift if gain else 0)))
    return rows


def test_repeats_are_planned_for_the_task_that_varies() -> None:
    """Every task gains 30 on average, so the tasks do not differ; only the runs of one vary.

    Their sample variance is (2·400² + 2·300²)/4 = 125,000 and their share 1/7: 125,000/49/r must fall to
    (30/(z(1 − 0.05/6) + z(0.8)))² = 85.96, so r = 29.7: 25 repeats more than the five.
    """
    values = np.concatenate([np.full(30, -30.0), -30.0 + np.array([-400, 300, -300, 400, 0])])
    assert _plan(values, np.repeat(np.arange(7), 5)) == {6: 25}


def test_the_next_step_names_the_task_and_the_gate() -> None:
    """Six of seven tasks gain, the seventh varies and loses: not proven (two or more of 2⁷ patterns on each side)."""
    rows = _calm_and_wild(7, 30)
    for one in rows:
        if one["task_id"] == "wild" and one["arm"] == "with_a":
            one["input_tokens"] += 40
    report = analyze(rows)
    (outlook,) = [one for one in report.readiness.outlook if one.gate == "tokens"]
    assert not outlook.settled
    assert set(outlook.more_by_task) == {"wild"}
    text = f"{outlook.more_repeats} more repeats of task wild would settle the token gate"
    assert any(step.startswith(text) for step in next_steps(report))


def test_few_tasks_need_more_tasks_not_repeats() -> None:
    """With five tasks no p-value by task is below 2/2⁵; seven tasks of one sign pass Holm's first step."""
    report = analyze(_calm_and_wild(5, 30))
    (outlook,) = [one for one in report.readiness.outlook if one.gate == "tokens"]
    assert (outlook.settled, outlook.more_repeats, outlook.more_tasks) == (False, None, 2)
    assert outlook.minimum_detectable_effect is None
    steps = next_steps(report)
    assert any(step.startswith("About 2 more tasks like these would settle the token gate") for step in steps)
    assert any("no gate can be proven, however many repeats" in step for step in steps)


def test_one_task_says_nothing_about_how_many_more_would_do() -> None:
    """Its spread between tasks is unknown, so no number of further tasks can be promised."""
    records = [
        row("t", arm, repeat, success=arm == "with_tool", duration_seconds=seconds + repeat / 10)
        for arm, seconds in (("with_tool", 10.0), ("without_tool", 20.0))
        for repeat in range(1, 6)
    ]
    report = analyze(records)
    assert [one.more_tasks for one in report.readiness.outlook] == [None, None, None]
    assert not any("would settle" in step for step in next_steps(report))


def test_tasks_that_differ_need_more_tasks() -> None:
    """Mean 1 and standard deviation s among task means: a test at 0.05/3 with 80% power needs about
    ((z(1 − 0.05/6) + z(0.8)) · s)² tasks; Student's quantiles add a few."""
    means = [-2, 4, -2, 4, 1, 1, -2, 4, 1, 1]
    assert sum(means) == 10
    spread = float(np.std(means, ddof=1))
    rows = [
        row(f"t{t}", arm, n, duration_seconds=10 + (mean + 0.1 * (n - 3) if arm == "with_a" else 0))
        for t, mean in enumerate(means)
        for n in range(1, 6)
        for arm in ("with_a", "without_a")
    ]
    report = analyze(rows)
    (outlook,) = [one for one in report.readiness.outlook if one.gate == "duration"]
    assert outlook.more_repeats is None  # repeats of these ten tasks take away almost nothing
    ratio = normal_quantile(1 - 0.05 / 6) + normal_quantile(0.8)
    normal = (ratio * spread) ** 2
    assert outlook.more_tasks is not None
    assert normal < outlook.more_tasks + 10 < normal + 8


def test_no_plan_without_a_difference_or_beyond_the_cap() -> None:
    task = np.repeat(np.arange(4), 5)
    assert _plan(np.tile([1.0, -1.0, 0.0, 2.0, -2.0], 4), task) is None
    noise = np.tile([1.0, -1.0, 0.5, -0.5, 0.001], 4)
    assert _plan(noise, task) is None


def test_following_the_plan_settles_the_gate_most_of_the_time() -> None:
    """The stated 80% power: of 200 simulated continuations, 65% or more end with a z above the threshold."""
    rng = np.random.default_rng(5)
    task = np.repeat(np.arange(6), 5)
    values = rng.normal(0.5, 1.0, 30)
    values = (values - values.mean()) / values.std() * 1.0 + 0.4
    plan = _plan(values, task)
    assert plan
    hits = 0
    for _ in range(200):
        sums = [values[task == t] for t in range(6)]
        means, errors = [], []
        for t in range(6):
            size = 5 + plan.get(t, 0)
            fresh = rng.normal(sums[t].mean(), sums[t].std(ddof=1), size)
            means.append(fresh.mean())
            errors.append(fresh.var(ddof=1) / size)
        z = np.mean(means) / math.sqrt(sum(errors) / 36)
        hits += z > normal_quantile(1 - 0.05 / 6)
    assert hits / 200 > 0.65


def test_settled_gates_need_no_plan() -> None:
    report = analyze(_rows(5, tasks="abcdefg", duration_seconds=5.0))
    (outlook,) = [one for one in report.readiness.outlook if one.gate == "duration"]
    assert outlook.settled
    assert outlook.more_repeats is None
    assert outlook.more_tasks is None
