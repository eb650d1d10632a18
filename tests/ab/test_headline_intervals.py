"""The headline intervals: what they are made of, what widens them, and when there is none."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.ab_rows import row

from evenhand.ab import AbReport, analyze
from evenhand.ab.intervals import ALIKE, FEW_CHANGES, INVERTED, SKEWED, STUDENT, flip_tail, skewness
from evenhand.ab.markdown import markdown
from evenhand.ab.narrative import next_steps, reasons, verdict_line
from evenhand.metrics import paired_difference


def _report(deltas: list[list[float]], field: str = "duration_seconds", **options: Any) -> AbReport:
    """One task per list; the control is 100 throughout."""
    rows = []
    for place, values in enumerate(deltas):
        for n, value in enumerate(values, start=1):
            rows.append(row(f"t{place:03}", "with_a", n, **{field: 100 + value}))
            rows.append(row(f"t{place:03}", "without_a", n, **{field: 100}))
    return analyze(rows, n_resamples=50, **options)


def _passes(treatment: list[list[bool]], control: list[list[bool]]) -> AbReport:
    rows = [
        row(f"t{place:03}", arm, n, success=passed)
        for arm, tasks in (("with_a", treatment), ("without_a", control))
        for place, values in enumerate(tasks)
        for n, passed in enumerate(values, start=1)
    ]
    return analyze(rows, n_resamples=50)


def test_symmetric_deltas_get_students_interval_on_task_means() -> None:
    """Task means −2 −1 0 1 2: standard deviation √2.5, standard error √0.5, Student's quantile for 4 is 2.7764."""
    found = _report([[x - 0.5, x + 0.5] for x in (-2, -1, 0, 1, 2)]).intervals["duration_delta_seconds"].mean
    assert found is not None
    assert found.method == STUDENT
    assert found.standard_error == pytest.approx(math.sqrt(0.5))
    assert (found.ci_lower, found.ci_upper) == pytest.approx(
        (-2.7764451 * math.sqrt(0.5), 2.7764451 * math.sqrt(0.5))
    )
    assert (found.n, found.n_groups, found.confidence_level) == (10, 5, 0.95)


def test_the_long_side_of_skewed_deltas_is_wider() -> None:
    """Task means 0 0 0 0 10: skewness 1.5, so the upper half is 1 + 4·1.5/√5 times Student's, the lower as it is."""
    means = np.array([0.0, 0, 0, 0, 10])
    assert skewness(means - 2) == pytest.approx(1.5)
    found = _report([[x, x] for x in means.tolist()]).intervals["duration_delta_seconds"].mean
    assert found is not None
    assert found.method == SKEWED
    half = 2.7764451 * means.std(ddof=1) / math.sqrt(5)
    assert found.ci_lower == pytest.approx(2 - half)
    assert found.ci_upper == pytest.approx(2 + half * (1 + 4.0 * 1.5 / math.sqrt(5)))


def test_skewed_pairs_count_where_tasks_are_even() -> None:
    """Every task has the pairs 0 0 0 4 or so: the means are symmetric, the pairs are not."""
    found = _report([[x, x, x, x + 4] for x in (-2, -1, 0, 1, 2)]).intervals["duration_delta_seconds"].mean
    assert found is not None
    pairs = np.array([x + y for x in (-2, -1, 0, 1, 2) for y in (0, 0, 0, 4)], float)
    lean = skewness(pairs - pairs.mean())
    assert lean > 0
    half = 2.7764451 * math.sqrt(0.5)
    assert (found.ci_lower, found.ci_upper) == pytest.approx((1 - half, 1 + half * (1 + lean / math.sqrt(5))))


def test_skewness_of_nothing_and_of_tiny_deviations() -> None:
    assert skewness(np.zeros(4)) == 0.0
    assert skewness(np.array([-1e-200, -1e-200, 2e-200])) == pytest.approx(skewness(np.array([-1.0, -1, 2])))


def test_twelve_tasks_that_both_arms_pass_are_no_proof() -> None:
    """As `compare` has it: one win and one loss among 14, so 0 ± 1.96·√(2/14/14) = ±0.198."""
    always = [[True] * 5] * 12
    report = _passes(always, always)
    found = report.intervals["pass_delta"].mean
    assert found is not None
    assert found.method == FEW_CHANGES
    assert (found.ci_lower, found.ci_upper) == pytest.approx((-0.19799, 0.19799), abs=1e-5)
    compared = paired_difference(np.ones(12), np.ones(12))
    assert (found.ci_lower, found.ci_upper) == (compared.ci_lower, compared.ci_upper)
    assert report.intervals["pass_delta"].median is None
    assert report.intervals["pass_delta"].median_reason == (
        "every pair has the same delta: no spread to estimate from"
    )


def test_equal_durations_have_no_interval_and_say_so() -> None:
    """Nobody knows how far a duration could be off, so there is no scale to bound it with."""
    report = _report([[0.0] * 5] * 12)
    found = report.intervals["duration_delta_seconds"]
    assert found.mean is None
    assert found.mean_reason == "every task has the same mean delta: no spread to estimate from"
    assert "No interval for the mean of cost, duration, total tokens" in markdown(report)
    assert _report([[3.0] * 5] * 12).intervals["duration_delta_seconds"].mean is None


def test_few_changed_tasks_widen_and_never_narrow_students_interval() -> None:
    """One of ten tasks gains once in five: Student's interval and the one of `compare`, whichever reaches further."""
    control = [[False] * 5 for _ in range(10)]
    treatment = [[False] * 5 for _ in range(10)]
    treatment[3][2] = True
    found = _passes(treatment, control).intervals["pass_delta"].mean
    assert found is not None
    means = np.array([0.0] * 9 + [0.2])
    half = 2.2621572 * means.std(ddof=1) / math.sqrt(10)
    compared = paired_difference(np.zeros(10), means)
    assert compared.method == "bonett_price"
    assert found.method == FEW_CHANGES
    assert found.ci_lower == pytest.approx(min(0.02 - half, compared.ci_lower))
    assert found.ci_upper == pytest.approx(max(0.02 + half, compared.ci_upper))


def test_intervals_of_passes_stay_within_one() -> None:
    """Task means 1, 1 and −0.6 have a standard error of 0.53: Student's ± 2.3 would leave the scale."""
    treatment = [[True] * 5, [True] * 5, [True] + [False] * 4]
    control = [[False] * 5, [False] * 5, [True] * 4 + [False]]
    found = _passes(treatment, control).intervals["pass_delta"].mean
    assert found is not None
    assert (found.ci_lower, found.ci_upper) == (-1.0, 1.0)


def test_every_task_alike_with_a_difference() -> None:
    """Every task gains 0.2: what went unseen has a share of 1 − 0.025^(1/8) and may lie anywhere from −1 to 1."""
    found = _passes([[True, False, False, False, False]] * 8, [[False] * 5] * 8).intervals["pass_delta"].mean
    assert found is not None
    assert found.method == ALIKE
    seen = 0.025 ** (1 / 8)
    assert (found.ci_lower, found.ci_upper) == pytest.approx(
        (0.2 * seen - (1 - seen), 0.2 * seen + (1 - seen))
    )


def test_unequal_repeats_keep_the_interval_around_the_mean_of_pairs() -> None:
    found = _passes([[True] * 9, [True], [True]], [[True] * 9, [False], [True]]).intervals["pass_delta"].mean
    assert found is not None
    assert found.value == 1 / 11
    assert found.ci_lower < 1 / 11 < found.ci_upper


def _brute_median_ends(deltas: list[list[float]]) -> tuple[float, float]:
    """Every observed value tested against every sign pattern, written out."""
    values = sorted({value for task in deltas for value in task})

    def rejected(x: float, direction: int) -> bool:
        sums = [sum(1 if direction * (value - x) > 0 else -1 for value in task) for task in deltas]
        patterns = list(itertools.product((1, -1), repeat=len(sums)))
        extreme = sum(
            sum(s * abs(b) for s, b in zip(signs, sums, strict=True)) >= sum(sums) for signs in patterns
        )
        return extreme / len(patterns) <= 0.025

    return (
        next(x for x in values if not rejected(x, 1)),
        next(x for x in reversed(values) if not rejected(x, -1)),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_median_interval_is_what_the_sign_flips_leave(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = 6 + seed % 4
    deltas = [np.round(rng.normal(rng.normal(0, 1), 1, 3 + seed % 3), 1).tolist() for _ in range(tasks)]
    found = _report(deltas).intervals["duration_delta_seconds"].median
    assert found is not None
    assert found.method == INVERTED
    assert (found.ci_lower, found.ci_upper) == _brute_median_ends(deltas)


@pytest.mark.parametrize(("tasks", "given"), [(5, False), (6, True)])
def test_a_median_needs_six_tasks(tasks: int, given: bool) -> None:
    """2/2⁵ is above 0.05, 2/2⁶ below."""
    report = _report([[1.0 * place, 2.0] for place in range(tasks)])
    found = report.intervals["duration_delta_seconds"]
    assert (found.median is not None) == given
    if not given:
        assert found.median_reason == "5 tasks are too few for a median: its interval needs at least 6"
        assert "No interval for any median: 5 tasks are too few" in markdown(report)


def test_sign_flips_of_whole_numbers_three_ways() -> None:
    """Enumerated, added up term by term, and in the limit: the same tail."""
    rng = np.random.default_rng(4)
    few = rng.integers(-5, 6, 14)
    assert flip_tail(few) == pytest.approx(
        np.mean([np.dot(s, np.abs(few)) >= few.sum() for s in itertools.product((1, -1), repeat=14)])
    )
    assert flip_tail(np.array([3, 0, 0])) == 0.5
    assert flip_tail(np.zeros(3, np.int64)) == 1.0
    # 20 terms of 1, 14 up and 6 down: P(X ≥ 14) for X ~ Binomial(20, ½) = 60,460/2²⁰
    assert flip_tail(np.array([1] * 14 + [-1] * 6)) == pytest.approx(60460 / 2**20)
    many = rng.integers(-9, 10, 400)
    many[:30] = 9
    exact = flip_tail(many)
    assert flip_tail(np.tile(many, 1)) == exact
    z = (many.sum() - 1.0) / math.sqrt(float((many**2).sum()))
    assert exact == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), abs=2e-3)
    giant = many * 1_000
    assert flip_tail(giant) == pytest.approx(exact, abs=2e-3)


def test_the_headline_says_what_is_not_proven() -> None:
    """Eight tasks: every one quicker, as many passes, fewer tokens in five of eight."""
    rows = []
    for task in range(8):
        for n in range(1, 6):
            tokens = 9 if task < 5 else 11
            rows.append(row(f"t{task}", "with_a", n, duration_seconds=9, input_tokens=tokens))
            rows.append(row(f"t{task}", "without_a", n, duration_seconds=10, input_tokens=10))
    report = analyze(rows, n_resamples=10)
    assert verdict_line(report) == "prefer with_a (not proven: success rate, median non-cache tokens)"
    assert report.decision == "prefer with_a"
    why = reasons(report)
    assert why[0] == "success rate: 100% against 100%, equal"
    # one of 2⁷ on each side, times three: 3 · 2/2⁸
    assert why[1] == (
        "median duration: 9 s against 10 s, better (proven: p = 0.0234 by task, corrected for three gates after Holm)"
    )
    assert why[2] == "median non-cache tokens: 14 against 15, better (not proven: p = 1.00)"
    steps = next_steps(report)
    assert not any("can be promoted" in step for step in steps)
    assert steps[-1] == (
        "All gates hold with enough repeats, but not proven: success rate, median non-cache tokens. "
        "Promote with_a only if that is enough for you."
    )


def test_a_proven_decision_can_be_promoted() -> None:
    rows = [
        row(
            f"t{task}",
            arm,
            n,
            success=good,
            duration_seconds=9 if good else 10,
            input_tokens=9 if good else 10,
        )
        for task in range(7)
        for n in range(1, 6)
        for arm, good in (("with_a", True), ("without_a", False))
    ]
    report = analyze(rows, n_resamples=10)
    assert verdict_line(report) == "prefer with_a"
    assert next_steps(report)[-1].endswith("with_a can be promoted.")


def test_a_full_tie_is_called_not_proven() -> None:
    rows = [
        row(f"t{task}", arm, n) for task in range(8) for n in range(1, 6) for arm in ("with_a", "without_a")
    ]
    report = analyze(rows, n_resamples=10)
    assert verdict_line(report) == "prefer with_a (not proven)"
    text = report.to_markdown()
    assert "p = 1.00" not in text.partition("## What to do next")[0]
    assert "none is proven. Promote with\\_a only if that is enough for you." in text
