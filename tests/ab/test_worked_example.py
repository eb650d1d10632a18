"""Every number of a small comparison, worked out by hand from the rows in tests/ab_rows.py."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.ab_rows import row, worked_example

from evenhand.ab import AbReport, analyze


@pytest.fixture(scope="module")
def report() -> AbReport:
    return analyze(worked_example(), generated_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_every_run_is_accounted_for(report: AbReport) -> None:
    """19 lines: one infrastructure failure leaves 18."""
    assert report.generated_at_utc == "2026-01-02T03:04:05.000Z"
    assert (report.run_count, report.effective_run_count, report.excluded_infra_failures) == (19, 18, 1)
    assert report.task_count == 2
    assert report.data_quality.infra_failures == {"with_tool": 1, "without_tool": 0}
    assert report.data_quality.null_values["total_cost_usd"] == 1
    assert report.data_quality.pairs_without_value["cost_delta_usd"] == 1


def test_treatment_summary(report: AbReport) -> None:
    arm = report.arm_summaries[0]
    assert (arm.arm, arm.runs, arm.successes) == ("with_tool", 9, 7)
    assert arm.success_rate == 7 / 9
    # 0.10 + 0.12 + 0.14 + 0.16 + 0.22 + 0.24 + 0.26 + 0.28, over the eight runs whose cost is known
    assert arm.total_cost_usd == pytest.approx(1.52, abs=1e-15)
    assert arm.avg_cost_usd == pytest.approx(0.19, abs=1e-15)
    assert arm.median_cost_usd == pytest.approx((0.16 + 0.22) / 2, abs=1e-15)
    # 10 12 14 16 [20] 22 24 26 28
    assert arm.median_duration_seconds == 20
    # 150 160 180 190 [300] 310 330 340 360
    assert arm.median_non_cache_tokens == 300
    # 300 310 330 340 [360] 890 980 1060 1160
    assert arm.median_total_tokens == 360
    # seven successes, one of them at an unknown cost
    assert arm.solved_per_dollar == pytest.approx(6 / 1.52, rel=1e-15)
    # 0 0 0 0 [0] 700 800 900 1000
    assert arm.median_cache_read_tokens == 0
    assert arm.median_step_count is None


def test_control_summary(report: AbReport) -> None:
    arm = report.arm_summaries[1]
    assert (arm.arm, arm.runs, arm.successes, arm.success_rate) == ("without_tool", 9, 5, 5 / 9)
    assert (arm.total_cost_usd, arm.avg_cost_usd, arm.median_cost_usd) == (0, 0, 0)
    assert arm.solved_per_dollar is None  # the total cost is zero
    # 11 12 13 18 [20] 22 24 25 30
    assert arm.median_duration_seconds == 20
    # 160 180 200 200 [210] 290 320 350 370; nothing was cached
    assert arm.median_non_cache_tokens == 210
    assert arm.median_total_tokens == 210


def test_paired_deltas(report: AbReport) -> None:
    """Pairs: repeats 1 to 4 of both tasks."""
    assert report.paired_runs == 8
    found: dict[str, tuple[Any, ...]] = {
        name: (delta.mean, delta.median, delta.pairs) for name, delta in report.deltas.items()
    }
    # +1 0 0 0 | +1 0 −1 +1
    assert found["pass_delta"] == (0.25, 0, 8)
    # −1 0 +1 −4 | −5 −2 +2 −4: sum −13; sorted −5 −4 −4 [−2 −1] 0 1 2
    assert found["duration_delta_seconds"] == (-13 / 8, -1.5, 8)
    # the control is free: 0.10 0.12 0.14 [0.16] 0.22 0.24 0.26, the null left out
    assert found["cost_delta_usd"] == (pytest.approx(1.24 / 7, rel=1e-15), 0.16, 7)
    # 980 900 780 690 | −20 20 −20 −30: sum 3300; sorted −30 −20 −20 [20 690] 780 900 980
    assert found["token_delta"] == (412.5, 355, 8)
    # −30 0 −20 −10 | −20 20 −20 −30: sum −110; sorted −30 −30 −20 [−20 −20] −10 0 20
    assert found["non_cache_token_delta"] == (-13.75, -20, 8)
    # 1000 900 800 700 | 0 0 0 0
    assert found["cache_read_token_delta"] == (425, 350, 8)
    assert found["cache_write_token_delta"] == (1.25, 0, 8)
    assert found["step_count_delta"] == (None, None, 0)


def test_decision(report: AbReport) -> None:
    """Better, equal, worse: mixed."""
    assert [gate.standing for gate in report.gates] == ["better", "equal", "worse"]
    assert [gate.holds for gate in report.gates] == [True, True, False]
    assert report.decision == "mixed results - inspect paired deltas"


def test_intervals_rest_on_tasks(report: AbReport) -> None:
    found = report.intervals["duration_delta_seconds"]
    # Task means (−1 + 0 + 1 − 4)/4 = −1 and (−5 − 2 + 2 − 4)/4 = −2.25, mean −1.625, standard deviation 1.25/√2, so a
    # standard error of 0.625; Student's 97.5% quantile with one degree of freedom is 12.706: ± 7.9414. Of the pairs,
    # the deviations 0.625 1.625 2.625 −2.375 −3.375 −0.375 3.625 −2.375 have skewness 0.045: the upper half is longer.
    assert found.mean is not None
    assert found.mean.ci_lower == pytest.approx(-1.625 - 12.7062047 * 0.625)
    deviations = [0.625, 1.625, 2.625, -2.375, -3.375, -0.375, 3.625, -2.375]
    skew = sum(x**3 for x in deviations) / 8 / (sum(x**2 for x in deviations) / 8) ** 1.5
    assert skew == pytest.approx(0.0452, abs=1e-4)
    assert found.mean.ci_upper == pytest.approx(-1.625 + 12.7062047 * 0.625 * (1 + skew / 2**0.5))
    assert (found.mean.n, found.mean.n_groups) == (8, 2)
    assert found.median is None
    assert found.median_reason == "2 tasks are too few for a median: its interval needs at least 6"
    assert "No interval for any median: 2 tasks are too few" in report.to_markdown()


def test_the_bootstrap_resamples_tasks(report: AbReport) -> None:
    """Two tasks give three resamples, with probabilities ¼, ½ and ¼: both 2.5% ends are single-task resamples."""
    mean = report.intervals["duration_delta_seconds"].mean_bootstrap
    assert mean is not None
    # t1 alone: (−1 + 0 + 1 − 4)/4; t2 alone: (−5 − 2 + 2 − 4)/4
    assert (mean.value, mean.ci_lower, mean.ci_upper) == (-1.625, -2.25, -1)
    middle = report.intervals["duration_delta_seconds"].median_bootstrap
    assert middle is not None
    # t2 alone: −5 [−4] −2 2, lower median −4; t1 alone: −4 −1 [0] 1, upper median 0
    assert (middle.value, middle.ci_lower, middle.ci_upper) == (-1.5, -4, 0)


def test_tests(report: AbReport) -> None:
    # three wins, one loss: 2·P(X ≤ 1) for X ~ Binomial(4, ½) = 2·(1 + 4)/16
    passed = report.tests["pass_delta"]
    assert (passed.wins, passed.losses) == (3, 1)
    assert passed.p_value == pytest.approx(0.625)
    sizes = [1, 1, 4, 5, 2, 2, 4]
    sums = [
        abs(sum(s * x for s, x in zip(signs, sizes, strict=True)))
        for signs in itertools.product((1, -1), repeat=7)
    ]
    share = sum(total >= 13 for total in sums) / len(sums)
    assert report.tests["duration_delta_seconds"].p_value == pytest.approx(share)
    # By task the sums are +1 and +1, −4 and −9, −60 and −50: two of four sign patterns are as extreme.
    for name in ("pass_delta", "duration_delta_seconds", "non_cache_token_delta"):
        test = report.tests[name]
        assert (test.by_task_p_value, test.p_holm, test.proven, test.tasks) == (0.5, 1.0, False, 2)
    assert report.tests["token_delta"].p_holm is None


def test_readiness_names_what_is_missing(report: AbReport) -> None:
    ready = report.readiness
    assert not ready.ready
    assert [(lack.task_id, lack.arm, lack.repeats, lack.missing) for lack in ready.lacking] == [
        ("t1", "with_tool", 4, 1),
        ("t2", "without_tool", 4, 1),
    ]
    assert "not ready for promotion" in report.to_markdown()


def test_unpaired_runs_say_why(report: AbReport) -> None:
    assert report.data_quality.unpaired_runs == {"with_tool": 1, "without_tool": 1}
    assert [(run.task_id, run.repeat, run.arm, run.reason) for run in report.data_quality.unpaired] == [
        ("t1", 5, "without_tool", "the other run was an infrastructure failure"),
        ("t2", 5, "with_tool", "no such run in the other arm"),
    ]


def test_null_as_zero_is_the_other_reading() -> None:
    report = analyze(worked_example(), null_as_zero=True)
    arm = report.arm_summaries[0]
    assert arm.avg_cost_usd == pytest.approx(1.52 / 9)
    assert arm.solved_per_dollar == pytest.approx(7 / 1.52)
    assert report.deltas["cost_delta_usd"].pairs == 8
    assert report.deltas["step_count_delta"].mean == 0
    assert report.data_quality.null_values["total_cost_usd"] == 1


def test_analysis_json_has_the_names_of_the_contract(report: AbReport) -> None:
    found = report.to_dict()
    assert list(found)[:10] == [
        "generated_at_utc",
        "treatment",
        "control",
        "run_count",
        "effective_run_count",
        "excluded_infra_failures",
        "task_count",
        "arm_summaries",
        "paired",
        "decision",
    ]
    assert {"gates", "intervals", "tests", "readiness", "data_quality", "diagnostics"} <= set(found)
    assert found["paired"]["mean_non_cache_token_delta"] == -13.75
    assert found["paired"]["median_cost_delta_usd"] == 0.16
    assert found["arm_summaries"][0]["arm"] == "with_tool"
    for name in ("step_count", "tool_call_count", "acceptance_cmd_count"):
        assert {f"mean_{name}_delta", f"median_{name}_delta"} <= set(found["paired"])


def test_names_of_the_last_release_stay_for_one_more() -> None:
    rows = [
        row("t", arm, 1, step_count=size, tool_call_count=2 * size, acceptance_cmd_count=3 * size)
        for arm, size in (("with_a", 5), ("without_a", 3))
    ]
    found = analyze(rows, n_resamples=10).to_dict()
    for old, new, value in (
        ("step_delta", "step_count_delta", 2),
        ("tool_call_delta", "tool_call_count_delta", 4),
        ("acceptance_cmd_delta", "acceptance_cmd_count_delta", 6),
    ):
        assert found["paired"][f"mean_{new}"] == found["paired"][f"mean_{old}"] == value
        assert found["paired"][f"median_{new}"] == found["paired"][f"median_{old}"] == value
        assert found["intervals"][new] == found["intervals"][old]
        assert found["tests"][new] == found["tests"][old]
