"""Missing samples cannot make a candidate better: coverage, worst cases, and what verdicts say of them."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.runs import run, single, usage, write_run

from evenhand.ab.classic import classic_gate
from evenhand.compare import Options, compare_many, compare_runs
from evenhand.compare.coverage import share_text
from evenhand.compare.gate import GateReport, run_gate
from evenhand.compare.pairing import pair_runs
from evenhand.compare.policy import parse_policy
from evenhand.compare.sequential import compare_sequentially
from evenhand.compare.stopping import in_asked_order
from evenhand.results import BenchmarkSummary, Bundle, RunResults, read_run


def hidden_drop() -> tuple[RunResults, RunResults]:
    """200 problems; the base fails the 50 hardest, and the candidate, worse elsewhere too, never finished those.

    Over the 150 that both scored: base 120/150, candidate 140/150, +13.3 points. Worst case: all 50 lost.
    """
    base = [1.0] * 120 + [0.0] * 30 + [1.0] * 50
    candidate = [1.0] * 140 + [0.0] * 10 + [None] * 50
    return run(single(base), path="base"), run(single(candidate), path="candidate")


def gate(base: RunResults, candidate: RunResults, policy: str = "{max_drop: 0.05}") -> GateReport:
    rules = parse_policy(f"version: 1\nbenchmarks: {{a: {policy}}}")
    return run_gate({"a": base}, {"a": candidate}, rules)


def test_a_candidate_that_failed_on_the_hard_samples_does_not_pass() -> None:
    """Worst case by hand: (140 + 0·50)/200 − (120 + 50)/200 = −0.15; best: (190 − 170)/200 = +0.10."""
    found = compare_runs(*hidden_drop())
    assert found.delta.value == pytest.approx(20 / 150)
    assert found.verdict.name == "INCONCLUSIVE"
    assert found.verdict.sentence == (
        "Not proven: 50 of 200 samples are not compared, and they could hide a drop of more than 5.0 points."
    )
    assert [found.coverage.worst_delta, found.coverage.best_delta] == pytest.approx([-0.15, 0.10])
    assert (found.coverage.base_share, found.coverage.candidate_share) == (1.0, 0.75)
    assert (found.candidate.lowest_mean, found.candidate.highest_mean) == (0.7, 0.95)
    assert (found.base.lowest_mean, found.base.highest_mean) == (0.85, 0.85)
    assert found.candidate.covered == "the 150 of 200 samples scored on both sides"


def test_the_gate_does_not_say_go_either() -> None:
    report = gate(*hidden_drop())
    assert report.verdict == "INCONCLUSIVE"
    one = report.gates[0]
    assert one.status == "INSUFFICIENT_EVIDENCE"
    assert (one.base_coverage, one.candidate_coverage, one.problems, one.possible) == (1.0, 0.75, 150, 200)
    assert [one.worst_damage, one.best_damage] == pytest.approx([0.15, -0.10])
    estimate = gate(*hidden_drop(), "{max_drop: 0.05, require_significance: false}")
    assert estimate.verdict == "INCONCLUSIVE"


def test_whoever_accepts_gaps_says_so_and_the_headline_tells() -> None:
    found = compare_runs(*hidden_drop(), Options(min_coverage=0.7))
    assert found.verdict.name == "PASS"
    assert found.verdict.sentence.endswith(
        "(over the 150 of 200 samples scored on both sides); this assumes that the 50 missing samples are like the others."
    )
    assert gate(*hidden_drop(), "{max_drop: 0.05, min_coverage: 0.7}").verdict == "GO"


def test_a_worst_case_that_clears_the_limit_passes_without_coverage() -> None:
    """1,000 of which 900 gained and 50 are missing: at worst +85 points, so nothing missing can matter."""
    base = run(single([0.0] * 1000))
    candidate = run(single([1.0] * 900 + [0.0] * 50 + [None] * 50))
    found = compare_runs(base, candidate)
    assert found.coverage.candidate_share == 0.95
    assert found.coverage.worst_lower is not None
    assert found.coverage.worst_lower > 0.8
    assert found.verdict.name == "PASS"
    assert "really better" in found.verdict.sentence
    assert gate(base, candidate).verdict == "GO"


def test_ninety_eight_percent_is_enough_and_ninety_seven_is_not() -> None:
    """Equal on 1,000 problems but for the gaps: 20 missing is 98 %, 30 is 97 %, whose worst case is −3 ± 1."""
    base = run(single([1.0, 0.0] * 500))

    def verdict(gaps: int) -> str:
        values: list[float | None] = [1.0, 0.0] * 500
        values[:gaps] = [None] * gaps
        return compare_runs(base, run(single(values)), Options(max_drop=0.015)).verdict.name

    assert (verdict(20), verdict(30)) == ("PASS", "INCONCLUSIVE")


def test_a_block_stands_whatever_is_missing_and_says_what_it_covers() -> None:
    base, candidate = run(single([1.0] * 100)), run(single([0.0] * 50 + [None] * 50))
    found = compare_runs(base, candidate)
    assert found.verdict.name == "BLOCK"
    assert "over the 50 of 100 samples scored on both sides" in found.verdict.sentence
    assert gate(base, candidate).verdict == "NO-GO"


def test_coverage_is_among_the_reasons_of_every_verdict() -> None:
    whole = compare_runs(run(single([1.0, 0.0] * 200)), run(single([1.0, 0.0] * 200)))
    assert "coverage 100%: all 400 samples are scored on both sides" in whole.verdict.reasons
    assert whole.base.covered == "all 400 samples"
    partly = compare_runs(*hidden_drop()).verdict.reasons
    assert any(
        words.startswith(
            "coverage: base 200 of 200 samples scored (100.0%), candidate 150 (75.0%); the means and the delta cover the 150"
        )
        and "worst case -15.0 points (bound " in words
        and "best case +10.0 points (bound " in words
        for words in partly
    )


def test_repeats_that_one_side_never_made_are_not_missing() -> None:
    base = run({i: [float(i % 2)] for i in range(400)})
    candidate = run({i: [float(i % 2)] * 4 for i in range(400)})
    found = compare_runs(base, candidate)
    assert (found.coverage.possible, found.coverage.pairs) == (400, 400)
    assert any("only the shared repeats are compared" in words for words in found.caveats)
    assert found.verdict.name == "PASS"
    assert gate(base, candidate).gates[0].base_coverage == 1.0


def test_repeats_that_failed_are_missing_although_the_problem_has_others() -> None:
    """Four repeats each; the candidate's second to fourth failed on every problem: a quarter is covered."""
    base = run({i: [1.0, 1.0, 0.0, 0.0] for i in range(300)})
    candidate = run({i: [1.0, None, None, None] for i in range(300)})
    one = gate(base, candidate, "{max_drop: 0.05}").gates[0]
    assert (one.problems, one.possible, one.candidate_coverage) == (300, 300, 0.25)
    assert one.status == "INSUFFICIENT_EVIDENCE"
    # The base has 2/4 right. The candidate at worst 1/4, a damage of 1/4; at best 4/4, a gain of 2/4.
    assert (one.worst_damage, one.best_damage) == (0.25, -0.5)


def test_pass_at_k_counts_missing_attempts_as_wrong_in_the_worst_case() -> None:
    """pass@2 of 2 attempts: base 1 − C(1,2)/C(2,2) = 1 each; candidate with one attempt lost: 0 at worst, 1 at best."""
    base = run({i: [1.0, 0.0] for i in range(100)})
    candidate = run({i: [1.0, 0.0] if i < 90 else [0.0, None] for i in range(100)})
    one = gate(base, candidate, "{metric: pass@2, max_drop: 0.05}").gates[0]
    assert (one.problems, one.candidate_coverage) == (90, 190 / 200)
    assert [one.worst_damage, one.best_damage] == pytest.approx([0.1, 0.0])
    assert one.status == "INSUFFICIENT_EVIDENCE"


def test_costs_have_no_worst_case_so_only_coverage_helps() -> None:
    spent = usage(tokens=100, cost=0.01, seconds=2.0)
    base = run(single([1.0] * 50), usage=spent)
    known, unknown = run(single([1.0] * 40), usage=spent), run(single([1.0] * 50))
    candidate = RunResults(
        path=base.path, name="bench", bundle=None, samples=[*known.samples, *unknown.samples[40:]]
    )
    one = gate(base, candidate, "{metrics: {cost: {max_relative_drop: 0.1}}}").gates[0]
    assert (one.status, one.worst_damage, one.candidate_coverage) == ("INSUFFICIENT_EVIDENCE", None, 0.8)
    assert "the worst case has no limit" in one.reasons[1]


def test_several_runs_are_not_told_apart_by_what_is_missing() -> None:
    """Over what both scored b leads by 60 of 150; at worst it loses the 50 missing ones: 150 against 140, not shown."""
    a = run(single([0.0] * 60 + [1.0] * 140), path="a")
    b = run(single([1.0] * 150 + [None] * 50), path="b")
    c = run(single([0.0] * 200), path="c")
    found = compare_many([a, b, c])
    rows = {row.name: row for row in found.runs}
    assert (rows["b"].share, rows["b"].lowest_mean, rows["b"].highest_mean) == (0.75, 0.75, 1.0)
    pairs = {frozenset((one.first, one.second)): one for one in found.pairs}
    assert not pairs[frozenset("ab")].told_apart
    assert pairs[frozenset("ac")].told_apart
    assert pairs[frozenset("bc")].told_apart  # at worst 150 of 200 against 0
    assert set(rows["a"].letters) & set(rows["b"].letters)


def test_a_look_at_growing_runs_counts_what_failed_before_the_gap() -> None:
    rng = np.random.default_rng(4)
    values = list(map(float, rng.random(2000) < 0.5))
    holes: list[float | None] = [None if i % 10 == 0 else value for i, value in enumerate(values)]
    found = compare_sequentially(run(single(values)), run(single(holes)), Options(max_drop=0.05))
    assert found.coverage.candidate_share == 0.9
    assert found.verdict.name == "INCONCLUSIVE"
    whole = compare_sequentially(run(single(values)), run(single(values)), Options(max_drop=0.05))
    assert whole.verdict.name == "PASS"


def test_late_failures_and_absent_rows_are_no_sequential_pass() -> None:
    """240 equal problems narrow the sequence to a few points; 60 of 400 that then fail leave −12.5 points possible.

    At worst all 60 are lost and ten others won: (10 − 60)/400 = −0.125, and the bound must lie below that.
    """
    base = [1.0] * 300 + [0.0] * 100
    scores = [1.0] * 240 + [None] * 60 + [1.0] * 10 + [0.0] * 90
    failed = run(single(scores))
    absent = run({i: [score] for i, score in enumerate(scores) if score is not None})
    for candidate in (failed, absent):
        found = compare_sequentially(run(single(base)), candidate, Options(max_drop=0.05))
        assert found.verdict.name == "INCONCLUSIVE"
        assert (found.coverage.possible, found.coverage.candidate_share) == (400, 0.85)
        assert found.coverage.worst_delta == pytest.approx(-0.125)
        assert found.coverage.worst_lower is not None
        assert found.coverage.worst_lower < -0.125
        assert found.delta.ci_lower <= found.delta.value <= found.delta.ci_upper


def test_a_tail_that_is_absent_is_missing_unless_the_run_is_growing() -> None:
    base, begun = run(single([1.0] * 400)), run(single([1.0] * 240))
    assert compare_sequentially(base, begun).verdict.name == "PASS"
    ended = compare_sequentially(base, begun, growing=False)
    assert ended.verdict.name == "INCONCLUSIVE"
    assert ended.coverage.candidate_share == 0.6


def test_the_classic_rule_needs_coverage_too(tmp_path: Path) -> None:
    """Ten of a hundred failed: prefer candidate becomes inconclusive unless the gates hold at worst."""
    slow, quick = usage(tokens=200, cost=0.1, seconds=3.0), usage(tokens=100, cost=0.1, seconds=1.0)
    base = write_run(tmp_path / "base", single([1.0] * 80 + [0.0] * 20), usage=slow)
    gaps = write_run(tmp_path / "gaps", single([1.0] * 85 + [0.0] * 5 + [None] * 10), usage=quick)
    report, analysis = classic_gate(read_run(base), read_run(gaps))
    assert analysis.decision == "prefer candidate"
    # At worst 85 of 100 against 80 of 100, and medians of 1 s and 100 tokens: every gate still holds.
    assert report.verdict == "GO"
    worse = write_run(tmp_path / "worse", single([1.0] * 75 + [0.0] * 5 + [None] * 20), usage=quick)
    report, analysis = classic_gate(read_run(base), read_run(worse))
    assert analysis.decision == "prefer candidate"
    assert report.verdict == "INCONCLUSIVE"
    assert "too much is missing" in report.sentence
    assert any(note.startswith("coverage: base 100 of 100") for note in report.notes)


def test_the_worst_case_is_the_worst_over_all_ways_to_fill_the_gaps() -> None:
    """Every way to fill two gaps with 0 or 1 lies between the two bounds, and the bounds are reached."""
    base = single([1.0, None, 0.0, 1.0])
    candidate = single([1.0, 1.0, None, 0.0])
    bounds = pair_runs(run(base), run(candidate)).coverage
    deltas = []
    for left in (0.0, 1.0):
        for right in (0.0, 1.0):
            filled = (1.0 - 1.0 + 1.0 - left + right - 0.0 + 0.0 - 1.0) / 4
            deltas.append(filled)
    assert (bounds.worst_delta, bounds.best_delta) == (min(deltas), max(deltas))


def test_shares_are_never_rounded_up() -> None:
    assert (share_text(1.0), share_text(0.99999), share_text(0.9796)) == ("100.0%", "99.9%", "97.9%")


def promised(rewards: dict[int, list[float | None]], samples: int, repeats: int = 1) -> RunResults:
    """A run whose bundle counts more samples than its file has rows."""
    summary = BenchmarkSummary(name="bench", samples=samples, repeats=repeats)
    return run(rewards, bundle=Bundle(benchmark=summary, schema_version=1))


def test_rows_that_both_files_lack_are_missing_when_a_bundle_counts_them() -> None:
    """100 rows of 120: each side has 83 %, and in the worst case 20 of 120 problems are lost."""
    values = single([1.0] * 100)
    found = compare_runs(promised(values, 120), promised(values, 120))
    assert (found.coverage.pairs, found.coverage.possible) == (100, 120)
    assert found.coverage.base_share == pytest.approx(100 / 120)
    assert found.coverage.worst_delta == pytest.approx(-20 / 120)
    assert found.verdict.name == "INCONCLUSIVE"
    assert any("20 samples have no row in either file" in words for words in found.caveats)
    assert compare_runs(promised(values, 100), promised(values, 100)).verdict.name == "PASS"
    one = gate(promised(values, 120), promised(values, 120)).gates[0]
    assert (one.status, one.possible) == ("INSUFFICIENT_EVIDENCE", 120)
    assert one.worst_damage == pytest.approx(20 / 120)
    many = compare_many([promised(values, 120), promised(values, 120)])
    assert [ranked.share for ranked in many.runs] == pytest.approx([100 / 120] * 2)


def test_repeats_that_both_files_lack_are_missing_too() -> None:
    """Ten problems in two repeats, of which the second of problem 3 is nowhere."""
    rewards: dict[int, list[float | None]] = {i: [1.0, 0.5] for i in range(10)}
    rewards[3] = [1.0]
    found = compare_runs(promised(rewards, 20, 2), promised(rewards, 20, 2))
    assert [(one.problem_idx, one.repeat) for one in found.coverage.missing] == [(3, 1)]
    assert found.coverage.possible == 20


def test_absent_rows_are_clusters_of_their_own() -> None:
    values = single([1.0] * 40)
    base, candidate = promised(values, 50), promised(values, 50)
    for side in (base, candidate):
        for one in side.samples:
            one.metadata["passage"] = str(one.problem_idx // 4)
    found = compare_runs(base, candidate, Options(cluster_field="passage"))
    assert found.clusters == 10
    assert found.coverage.worst_lower is not None
    assert found.coverage.worst_lower < -0.2


def test_an_order_that_does_not_fit_the_runs_is_not_taken_for_random() -> None:
    """The candidate asks 5 of 10 problems at random and has finished 4: who knows which of them is still open?"""
    told = Bundle(
        benchmark=BenchmarkSummary(name="bench", samples=4),
        config={"order_seed": 7, "problems": 5},
        schema_version=1,
    )
    base, candidate = run(single([1.0] * 10)), run(single([1.0] * 4), bundle=told)
    assert in_asked_order(base, candidate) == (base, candidate, False)
    fits = replace(candidate, bundle=replace(told, config={"order_seed": 7, "problems": 10}))
    first, second, shuffled = in_asked_order(base, fits)
    assert shuffled
    assert len(first.samples) == len(second.samples) <= 4


def test_scores_without_known_bounds_are_never_surer_than_a_single_look() -> None:
    """Marks of 5 and 4: the bounds of the betting test are only those that were seen, whatever the order."""
    base, candidate = run(single([5.0] * 60)), run(single([5.0, 4.0] * 30))
    given, drawn = (compare_sequentially(base, candidate, shuffled=one) for one in (False, True))
    assert (given.delta.ci_lower, given.delta.ci_upper) == (drawn.delta.ci_lower, drawn.delta.ci_upper)
