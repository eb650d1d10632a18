"""Numbers and sentences of a report at their edges."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.ab_rows import row

from evenhand.ab import analyze
from evenhand.ab.narrative import next_steps, reasons, verdict_line
from evenhand.ab.numbers import counted, p_text, percent, shown, signed
from evenhand.ab.profile import MAX_TASKS, MAX_VALUES


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "–"),
        (0.0, "", "0"),
        (0.12345, "", "0.123"),
        (0.99999, "", "1"),
        (1.0, "s", "1 s"),
        (1.23456, "s", "1.235 s"),
        (999.96, "", "1000"),
        (1000.4, "", "1,000"),
        (1234567.0, "", "1,234,567"),
        (-0.5, "USD", "−$0.5"),
        (12.5, "USD", "$12.5"),
        (-1234.0, "s", "−1,234 s"),
    ],
)
def test_numbers_are_short(value: float | None, unit: str, text: str) -> None:
    assert shown(value, unit) == text
    assert signed(value, unit) == (f"+{text}" if value is not None and value > 0 else text)


def test_percentages_p_values_and_counts() -> None:
    assert [percent(value) for value in (None, 0.0, 0.12345, 1.0)] == ["–", "0%", "12.35%", "100%"]
    assert [p_text(value) for value in (None, 0.00009, 0.0001, 0.0999, 0.1, 1.0)] == [
        "–",
        "< 0.0001",
        "0.0001",
        "0.0999",
        "0.10",
        "1.00",
    ]
    assert [counted(1, "run"), counted(2, "run"), counted(0, "run")] == ["1 run", "2 runs", "0 runs"]
    assert counted(1_200, "entry", "entries") == "1,200 entries"


def _rows(tasks: int, repeats: int, **treatment: Any) -> list[dict[str, Any]]:
    return [
        row(f"t{task:03}", arm, n, **(treatment if arm == "with_a" else {}))
        for task in range(tasks)
        for n in range(1, repeats + 1)
        for arm in ("with_a", "without_a")
    ]


@pytest.mark.parametrize(
    ("failures", "suspicious"),
    [((2, 0), False), ((3, 0), True), ((3, 1), True), ((3, 2), False), ((5, 2), True)],
)
def test_infrastructure_failures_of_one_arm_are_suspicious(
    failures: tuple[int, int], suspicious: bool
) -> None:
    """At least three, and more than twice as many as in the other arm."""
    rows = _rows(1, 6)
    for arm, count in zip(("with_a", "without_a"), failures, strict=True):
        for one in [one for one in rows if one["arm"] == arm][:count]:
            one["infra_failure"] = True
    steps = next_steps(analyze(rows, n_resamples=10))
    assert any("one arm has far more of them" in step for step in steps) == suspicious
    assert (
        f"Run the infrastructure failures again: {failures[0]} in with_a, {failures[1]} in without_a."
        in steps
    )


def test_lists_name_five_and_count_the_rest() -> None:
    """Eight tasks with four repeats: sixteen task-arm pairs lack one."""
    (step,) = [
        one for one in next_steps(analyze(_rows(8, 4), n_resamples=10)) if one.startswith("Before promoting")
    ]
    assert step.count("1 of task") == 5
    assert step.endswith(" and 11 more.")
    (step,) = [
        one for one in next_steps(analyze(_rows(2, 4), n_resamples=10)) if one.startswith("Before promoting")
    ]
    assert step.count("1 of task") == 4
    assert "more" not in step.removeprefix("Before promoting, run at least 5 repeats")


def test_what_is_missing_is_said() -> None:
    assert verdict_line(analyze([row("t", "without_a")])) == (
        "insufficient data: the records have one arm only, without_a"
    )
    assert (
        verdict_line(analyze([row("t", "with_a")]))
        == "insufficient data: the records have one arm only, with_a"
    )
    assert verdict_line(analyze([row("t", "x"), row("t", "y")], "x", "z")) == (
        "insufficient data: no runs of z; the records have x, y"
    )
    assert verdict_line(analyze([])) == "insufficient data: there are no records"


def test_a_plan_for_every_task_is_said_shortly() -> None:
    """The same plan for every task is one sentence; one that differs names the tasks, most repeats first."""
    report = analyze(_rows(3, 5, input_tokens=9), n_resamples=10)
    plan = {"settled": False, "more_repeats": 6}

    def step(more_by_task: dict[str, int]) -> str:
        outlook = [
            replace(one, **plan, more_by_task=more_by_task)
            if one.gate == "tokens"
            else replace(one, settled=True)
            for one in report.readiness.outlook
        ]
        readiness = replace(report.readiness, outlook=tuple(outlook))
        return next(line for line in next_steps(replace(report, readiness=readiness)) if "token gate" in line)

    assert step({"t000": 2, "t001": 2, "t002": 2}).startswith("2 more repeats of every task would settle")
    assert step({"t000": 1, "t001": 4, "t002": 1}).startswith(
        "6 more repeats (4 of t001, 1 of t000, 1 of t002)"
    )
    assert step({"t000": 3, "t001": 3}).startswith("6 more repeats (3 of t000, 3 of t001)")
    assert step({"t001": 6}).startswith("6 more repeats of task t001")


def test_pictures_stay_small() -> None:
    """The 60 tasks on which the arms differ most, and 2,000 evenly spaced values of each distribution."""
    tasks, repeats = MAX_TASKS + 5, 40
    rng = np.random.default_rng(2)
    rows = _rows(tasks, repeats)
    for one in rows:
        one["duration_seconds"] = float(rng.integers(1, 10_000))
        if one["arm"] == "with_a":
            one["success"] = int(one["task_id"][1:]) >= 5 or one["repeat"] % 2 == 0
        else:
            one["success"] = False
    profile = analyze(rows, n_resamples=1).profile
    assert (len(profile.tasks), profile.task_count) == (MAX_TASKS, tasks)
    assert {task.task_id for task in profile.tasks} == {f"t{task:03}" for task in range(5, tasks)}
    assert profile.tasks[0].treatment_rate == 1.0
    assert profile.tasks[0].control_rate == 0.0
    assert profile.tasks[0].treatment_cost == 0.5
    seconds = sorted(one["duration_seconds"] for one in rows if one["arm"] == "with_a")
    drawn = profile.durations["treatment"]
    assert len(drawn) == MAX_VALUES
    assert (drawn[0], drawn[-1]) == (seconds[0], seconds[-1])
    assert drawn == sorted(drawn)
    assert drawn[1000] in seconds[1295:1305]  # 1000/1999 of the way through 2,600 values


def test_what_did_not_move_explains_nothing() -> None:
    """The treatment is slower: steps moved and are listed beside it, tool calls did not."""
    records = [
        row(f"t{task}", arm, repeat, duration_seconds=seconds, step_count=steps, tool_call_count=4)
        for task in range(3)
        for arm, seconds, steps in (("with_tool", 20.0, 7), ("without_tool", 10.0, 5))
        for repeat in (1, 2)
    ]
    lines = reasons(analyze(records))
    assert any(line.strip().startswith("steps: +2 per pair") for line in lines)
    assert not any(line.strip().startswith(("tool calls", "cache-read tokens")) for line in lines)
