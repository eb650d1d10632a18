"""What must not matter: the order of lines, and which arm is called the treatment."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ab_rows import row

from evenhand.ab import AbReport, analyze
from evenhand.reports.ab import ab_page

INSTANT = datetime(2026, 1, 1, tzinfo=UTC)
MIRRORED = {"treatment": "control", "control": "treatment", "mixed": "mixed", "insufficient": "insufficient"}
FLIPPED = {"better": "worse", "worse": "better", "equal": "equal", "unknown": "unknown"}

amount = st.one_of(st.none(), st.integers(0, 50), st.floats(0, 1000, allow_subnormal=False))


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    keys = draw(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y"]), st.integers(1, 4)),
            unique=True,
            max_size=24,
        )
    )
    return [
        row(
            task,
            arm,
            repeat,
            success=draw(st.booleans()),
            duration_seconds=draw(st.floats(0, 100, allow_subnormal=False)),
            total_cost_usd=draw(amount),
            input_tokens=draw(amount),
            output_tokens=draw(st.integers(0, 9)),
            step_count=draw(amount),
            agent_exit_code=draw(st.sampled_from([0, 0, 0, 0, 86])),
        )
        for task, arm, repeat in keys
    ]


def _report(rows: list[dict[str, Any]], treatment: str = "x", control: str = "y", **options: Any) -> AbReport:
    return analyze(rows, treatment, control, n_resamples=200, generated_at=INSTANT, **options)


@given(runs(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_shuffling_lines_changes_nothing(rows: list[dict[str, Any]], rng: random.Random) -> None:
    shuffled = rows[:]
    rng.shuffle(shuffled)
    assert _report(shuffled).to_json() == _report(rows).to_json()


def _negated(value: float | None) -> float | None:
    return None if value is None else -value


@given(runs(), st.booleans())
@settings(max_examples=50)
def test_swapping_the_arms_mirrors_everything(rows: list[dict[str, Any]], significance: bool) -> None:
    """Every delta and interval changes its sign bit for bit, and the decision changes sides.

    The one exception is stated in the rule: a tie on everything prefers whichever arm is the treatment.
    """
    one = _report(rows, require_significance=significance)
    two = _report(rows, "y", "x", require_significance=significance)
    assert one.arm_summaries == two.arm_summaries[::-1]
    assert one.paired_runs == two.paired_runs
    for name, delta in one.deltas.items():
        other = two.deltas[name]
        assert (delta.mean, delta.median) == (_negated(other.mean), _negated(other.median))
        for kind in ("mean", "median"):
            left, right = getattr(one.intervals[name], kind), getattr(two.intervals[name], kind)
            assert (left is None) == (right is None)
            if left is not None:
                assert (left.ci_lower, left.ci_upper) == (-right.ci_upper, -right.ci_lower)
    assert one.tests.keys() == two.tests.keys()
    for name, test in one.tests.items():
        assert test.p_value == pytest.approx(two.tests[name].p_value, rel=1e-9)
    assert [FLIPPED[gate.standing] for gate in one.gates] == [gate.standing for gate in two.gates]
    full_tie = all(gate.standing == "equal" for gate in one.gates)
    if full_tie and one.verdict != "insufficient":
        assert one.verdict == two.verdict == ("mixed" if significance else "treatment")
    else:
        assert MIRRORED[one.verdict] == two.verdict
    assert one.readiness.ready == two.readiness.ready
    assert one.data_quality.unpaired == two.data_quality.unpaired


@given(runs())
@settings(max_examples=25)
def test_reports_of_any_runs_can_be_written(rows: list[dict[str, Any]]) -> None:
    report = _report(rows)
    assert report.to_json().endswith("}\n")
    assert "Decision" in report.to_markdown()
    assert ab_page(report).startswith("<!doctype html>")


def test_adding_a_constant_to_both_arms_moves_no_delta() -> None:
    rng = random.Random(4)
    rows = [
        row(task, arm, n, input_tokens=rng.randrange(1000))
        for task in "abc"
        for arm in ("x", "y")
        for n in range(1, 6)
    ]
    moved = [{**one, "input_tokens": one["input_tokens"] + 7} for one in rows]
    before, after = _report(rows), _report(moved)
    assert before.deltas == after.deltas
    assert before.intervals == after.intervals
    assert before.verdict == after.verdict
