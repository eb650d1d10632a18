"""The decision over everything that three gates can say, and which arms are compared."""

import itertools
from typing import Any

import pytest
from tests.ab_rows import row, worked_example

from evenhand.ab import analyze
from evenhand.core.errors import OptionError

STANDINGS = ("better", "equal", "worse")


def _arm(arm: str, standing: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Two runs that stand so to a control with one success, 10 seconds and 100 tokens."""
    success, duration, tokens = standing
    passes = {"better": (True, True), "equal": (True, False), "worse": (False, False)}[success]
    seconds = {"better": 9, "equal": 10, "worse": 11}[duration]
    sent = {"better": 90, "equal": 100, "worse": 110}[tokens]
    return [
        row("t", arm, n, success=passed, duration_seconds=seconds, input_tokens=sent, output_tokens=0)
        for n, passed in enumerate(passes, start=1)
    ]


@pytest.mark.parametrize("standing", list(itertools.product(STANDINGS, repeat=3)))
def test_truth_table(standing: tuple[str, str, str]) -> None:
    """No gate worse: the treatment. No gate better, and one worse: the control. Otherwise mixed."""
    report = analyze([*_arm("new", standing), *_arm("old", ("equal",) * 3)], "new", "old", n_resamples=10)
    assert tuple(gate.standing for gate in report.gates) == standing
    if "worse" not in standing:
        expected = "prefer new"
    elif "better" not in standing:
        expected = "prefer old"
    else:
        expected = "mixed results - inspect paired deltas"
    assert report.decision == expected


def test_a_gate_without_values_is_unknown_and_the_result_mixed() -> None:
    rows = [row("t", arm, 1, input_tokens=None) for arm in ("with_a", "without_a")]
    report = analyze(rows, n_resamples=10)
    assert [gate.standing for gate in report.gates] == ["equal", "equal", "unknown"]
    assert report.gates[2].holds is None
    assert report.verdict == "mixed"


def test_success_rates_are_compared_without_rounding() -> None:
    """1/3 against 2/6 are equal, though sums of floats might not be."""
    rows = [row("t", "with_a", n, success=n == 1) for n in (1, 2, 3)]
    rows += [row("t", "without_a", n, success=n <= 2) for n in range(1, 7)]
    assert analyze(rows, n_resamples=10).gates[0].standing == "equal"


@pytest.mark.parametrize(
    ("fields", "left_out"),
    [
        ({"infra_failure": True}, True),
        ({"infra_failure": False}, False),
        ({"infra_failure": None}, False),
        ({"agent_exit_code": 86}, True),
        ({"opencode_exit_code": 86}, True),
        ({"agent_exit_code": 1}, False),
        ({"agent_exit_code": 1, "acceptance_exit_code": 99}, True),
        ({"opencode_exit_code": -9, "acceptance_exit_code": 99}, True),
        ({"agent_exit_code": 0, "acceptance_exit_code": 99}, False),
        ({"acceptance_exit_code": 99}, False),
        ({"agent_exit_code": None, "acceptance_exit_code": 99}, False),
        ({"setup_exit_code": 1}, False),
    ],
)
def test_infrastructure_failures(fields: dict[str, Any], left_out: bool) -> None:
    rows = [row("t", "with_a", 1, **fields), row("t", "with_a", 2), row("t", "without_a", 1)]
    assert analyze(rows, n_resamples=10).excluded_infra_failures == int(left_out)


def test_an_arm_of_infrastructure_failures_is_insufficient_data() -> None:
    rows = [row("t", "with_a", 1, infra_failure=True), row("t", "without_a", 1)]
    report = analyze(rows)
    assert report.decision == "insufficient data"
    assert report.arm_summaries[0].success_rate is None
    assert report.arm_summaries[0].median_duration_seconds is None
    assert "infrastructure failure" in report.to_markdown()


@pytest.mark.parametrize(
    ("arms", "treatment", "control", "expected"),
    [
        (("with_a", "without_a"), None, None, ("with_a", "without_a")),
        (("with_a", "without_b"), None, None, ("with_a", "without_b")),
        (("without_a", "with_a"), "without_a", None, ("without_a", "with_a")),
        (("x", "y"), None, "x", ("y", "x")),
        (("x", "y", "z"), "z", "x", ("z", "x")),
        (("with_a",), None, None, ("with_a", None)),
        (("without_a",), None, None, (None, "without_a")),
        (("x", "y"), "gone", "y", ("gone", "y")),
        ((), None, None, (None, None)),
    ],
)
def test_which_arms_are_compared(
    arms: tuple[str, ...], treatment: str | None, control: str | None, expected: tuple[str | None, str | None]
) -> None:
    report = analyze([row("t", arm) for arm in arms], treatment, control, n_resamples=10)
    assert (report.treatment, report.control) == expected
    enough = expected[0] in arms and expected[1] in arms
    assert (report.verdict != "insufficient") == enough


@pytest.mark.parametrize(
    ("arms", "treatment", "control"),
    [
        (("x", "y"), None, None),
        (("with_a", "with_b"), None, None),
        (("with_a", "without_a", "other"), None, None),
        (("x", "y", "z"), "x", None),
        (("x", "y"), "x", "x"),
    ],
)
def test_arms_that_must_be_named(arms: tuple[str, ...], treatment: str | None, control: str | None) -> None:
    with pytest.raises(OptionError, match=r"--treatment|two different arms"):
        analyze([row("t", arm) for arm in arms], treatment, control)


def test_other_arms_are_counted_and_left_out() -> None:
    rows = [row("t", "a"), row("t", "b"), row("t", "c", 1), row("t", "c", 2)]
    report = analyze(rows, "a", "b", n_resamples=10)
    assert report.run_count == 2
    assert report.data_quality.other_arms == {"c": 2}
    assert report.data_quality.records == 4


def _clear(tasks: int, *, worse: bool = False, repeats: int = 1) -> list[dict[str, Any]]:
    return [
        row(
            f"t{task}",
            arm,
            n,
            success=good,
            duration_seconds=9 if good else 10,
            input_tokens=9 if good else 10,
        )
        for task in range(tasks)
        for n in range(1, repeats + 1)
        for arm, good in (("with_a", not worse), ("without_a", worse))
    ]


def test_require_significance_asks_every_gate_for_proof() -> None:
    """Seven tasks that all point one way prove it (3 · 2/2⁷ = 0.047); six do not (3 · 2/2⁶ = 0.094)."""
    assert analyze(_clear(7), require_significance=True).decision == "prefer with_a"
    assert analyze(_clear(7, worse=True), require_significance=True).decision == "prefer without_a"
    assert analyze(_clear(6)).decision == "prefer with_a"
    report = analyze(_clear(6), require_significance=True)
    assert report.verdict == "mixed"
    assert "not every one is proven" in report.to_markdown()


def test_repeats_prove_nothing_about_other_tasks() -> None:
    """Forty repeats of two tasks that all point one way: overwhelming for these two, two coin flips for the rest."""
    report = analyze(_clear(2, repeats=40))
    test = report.tests["pass_delta"]
    assert test.p_value < 1e-20
    assert test.by_task_p_value == 0.5  # + + or − −, of four patterns
    assert test.p_holm == 1.0
    assert not test.proven
    assert [gate.proven for gate in report.gates] == [False, False, False]


def test_a_gate_is_proven_only_in_the_direction_of_its_figures() -> None:
    """The treatment's median is lower, but the mean delta, which is what is tested, is far higher in every task.

    Nine quick runs and one of 10,000 s against ten of 2 s: medians 1 and 2, mean delta (9 · −1 + 9,998)/10 > 0.
    """
    rows = [
        row(f"t{task}", arm, n, duration_seconds=(1 if n < 10 else 10_000) if arm == "with_a" else 2)
        for task in range(8)
        for n in range(1, 11)
        for arm in ("with_a", "without_a")
    ]
    report = analyze(rows, n_resamples=10)
    gate = report.gates[1]
    assert gate.standing == "better"
    assert report.tests["duration_delta_seconds"].proven
    assert not gate.proven
    assert "the paired deltas point the other way" in report.to_markdown()


def test_an_arm_without_a_treatment_comes_second() -> None:
    """Readers may rely on the first summary being the treatment's."""
    (missing, control) = analyze([row("t", "without_a")]).arm_summaries
    assert (missing.arm, missing.runs, missing.success_rate) == ("(no such arm)", 0, None)
    assert (control.arm, control.runs) == ("without_a", 1)
    (gone, present) = analyze([row("t", "x")], "gone", "x").arm_summaries
    assert (gone.arm, gone.runs, present.arm) == ("gone", 0, "x")
    (only,) = analyze([row("t", "with_a")]).arm_summaries
    assert only.arm == "with_a"


def test_diagnostics_explain_and_never_block() -> None:
    rows = []
    for n in range(1, 6):
        rows.append(row("t", "with_a", n, step_count=9, tool_call_count=20, cache_read_tokens=500))
        rows.append(row("t", "without_a", n, step_count=3, tool_call_count=2, duration_seconds=0.5))
    report = analyze(rows, n_resamples=10)
    assert report.decision == "prefer without_a"
    explained = {(found.gate, found.delta): found for found in report.diagnostics}
    assert explained["duration", "step_count_delta"].mean == 6
    assert explained["duration", "step_count_delta"].regression
    assert not explained["tokens", "cache_read_token_delta"].regression
    assert "steps: +6 per pair" in report.to_markdown()
    better = [{**one, "duration_seconds": 1.0} for one in rows]
    assert analyze(better, n_resamples=10).decision == "prefer with_a"


def test_worked_example_by_name_of_arms() -> None:
    report = analyze(worked_example(), "without_tool", "with_tool", n_resamples=10)
    assert [gate.standing for gate in report.gates] == ["worse", "equal", "better"]
