"""Several scorers on the same two runs: each has its own verdict, and together they are corrected."""

import pytest
from tests.runs import run, single

from evenhand.compare.comparison import Options, compare_runs
from evenhand.compare.scorers import ScorerVerdict, Sides, compare_scorers, overall


def sides(lost: int, won: int, problems: int = 200) -> Sides:
    """`lost` problems go from right to wrong and `won` from wrong to right; the others are right twice."""
    base = [1.0] * (problems - won) + [0.0] * won
    candidate = [0.0] * lost + [1.0] * (problems - lost)
    return Sides(base=run(single(base)), candidate=run(single(candidate)))


CLEAR, SLIGHT, NONE = sides(40, 0), sides(14, 4), sides(5, 5)
"""Exact McNemar, one-sided: 2⁻⁴⁰ for 40 to 0; 0.0154 for 14 to 4 of 18; 0.62 for 5 to 5."""


def test_one_scorer_is_what_compare_runs_says_and_is_not_corrected() -> None:
    found = compare_scorers({"s": SLIGHT})["s"]
    alone = compare_runs(SLIGHT.base, SLIGHT.candidate)
    assert found.comparison == alone
    assert (found.name, found.sentence) == (alone.verdict.name, alone.verdict.sentence)
    assert (found.p_adjusted, found.p_drop_adjusted) == (alone.test.p_value, alone.p_drop)
    assert overall({"s": found}).sentence == alone.verdict.sentence


def test_p_values_are_corrected_after_holm() -> None:
    """Sorted p-values times 3, 2 and 1, never falling and at most 1."""
    found = compare_scorers({"clear": CLEAR, "slight": SLIGHT, "none": NONE})
    drops = {name: one.comparison.p_drop for name, one in found.items() if one.comparison}
    assert found["clear"].p_drop_adjusted == pytest.approx(3 * drops["clear"], rel=1e-12)
    assert found["slight"].p_drop_adjusted == pytest.approx(2 * drops["slight"], rel=1e-12)
    assert found["none"].p_drop_adjusted == pytest.approx(drops["none"], rel=1e-12)


def test_a_drop_that_does_not_survive_the_correction_blocks_nothing() -> None:
    """Alone, 14 to 4 is shown (p 0.0154). As one of four it is not: 4 × 0.0154 = 0.062."""
    options = Options(max_drop=0.02)
    assert overall(compare_scorers({"slight": SLIGHT}, options)).name == "BLOCK"
    several = compare_scorers({"slight": SLIGHT, "a": NONE, "b": NONE, "c": NONE}, options)
    assert several["slight"].name == "BLOCK"
    found = overall(several)
    assert found.name == "INCONCLUSIVE"
    assert found.sentence.endswith("With 4 scorers tested a drop of slight can still be chance.")
    surely = overall(compare_scorers({"clear": CLEAR, "a": NONE, "b": NONE, "c": NONE}, options))
    assert surely.name == "BLOCK"
    assert surely.sentence.startswith("clear: The candidate is")


def test_all_pass_only_if_each_does() -> None:
    options = Options(max_drop=0.2)
    assert overall(compare_scorers({"a": NONE, "b": NONE}, options)).sentence == "All 2 scorers pass."
    open_ = Sides(base=run(single([1.0, 0.0])), candidate=run(single([0.0, 1.0])))
    assert overall(compare_scorers({"a": NONE, "b": open_}, options)).name == "INCONCLUSIVE"


def test_what_measures_different_things_has_a_verdict_and_no_numbers() -> None:
    known = Sides(base=NONE.base, candidate=NONE.candidate, not_comparable="version 1 against version 2")
    found = compare_scorers({"s": known, "t": NONE})
    assert (found["s"].name, found["s"].reasons) == ("NOT_COMPARABLE", ["version 1 against version 2"])
    assert found["s"].comparison is None
    # It is no test, so the other is corrected for nothing.
    assert found["t"].p_adjusted == pytest.approx(1.0)
    assert overall(found).name == "NOT_COMPARABLE"


def test_what_is_forced_keeps_a_caveat() -> None:
    known = Sides(base=NONE.base, candidate=NONE.candidate, not_comparable="version 1 against version 2")
    found = compare_scorers({"s": known}, Options(force=True))["s"]
    assert found.comparison is not None
    assert (
        found.comparison.caveats[0] == "compared by force although this differs: version 1 against version 2"
    )


def test_labels_have_no_verdict_and_stop_nobody() -> None:
    labels = Sides(base=NONE.base, candidate=NONE.candidate, labels_only=True)
    options = Options(max_drop=0.2)
    found = compare_scorers({"tone": labels, "s": NONE}, options)
    assert found["tone"].name is None
    assert overall(found).name == "PASS"
    assert overall({"tone": found["tone"]}).name == "INCONCLUSIVE"
    nothing: dict[str, ScorerVerdict] = {}
    assert overall(nothing).sentence == "No scorer has numbers to compare."


def test_samples_that_neither_run_has_are_missing() -> None:
    base, candidate = run(single([1.0, 0.0, 1.0])), run(single([1.0, 1.0, 1.0]))
    found = compare_runs(base, candidate, expected=[(problem, 0) for problem in range(5)])
    assert (found.coverage.pairs, found.coverage.possible) == (3, 5)
    assert [(one.problem_idx, one.base, one.candidate) for one in found.coverage.missing] == [
        (3, "absent", "absent"),
        (4, "absent", "absent"),
    ]


def test_equal_means_of_decimals_are_equal() -> None:
    """0.1, 0.2 and 0.3 sum to 0.6000000000000001 in floats; their mean and that of three 0.2 is the same."""
    found = compare_runs(run({0: [0.1, 0.2, 0.3], 1: [0.3, 0.1]}), run({0: [0.2, 0.2, 0.2], 1: [0.1, 0.7]}))
    assert (found.improved, found.regressed, found.unchanged) == (1, 0, 1)
    # Problem 1: 0.4 − 0.2; the mean with problem 0's zero is 0.1 exactly.
    assert found.delta.value == 0.1
