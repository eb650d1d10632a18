"""The gate: statuses, verdicts, limits, correction."""

from xml.etree import ElementTree

import junitparser
import numpy as np
import pytest
from tests.runs import run, single, usage

from evenhand.compare import compare_runs
from evenhand.compare.gate import GateReport, run_gate
from evenhand.compare.junit import gate_junit
from evenhand.compare.policy import parse_policy
from evenhand.core.errors import Incomparable
from evenhand.reports.comparison_markdown import gate_markdown
from evenhand.results import BenchmarkSummary, Bundle, RunResults


def scores(right: int, total: int, *, flipped: int = 0) -> RunResults:
    """`right` of `total`; the first `flipped` of the right ones are wrong instead."""
    values = [1.0] * right + [0.0] * (total - right)
    values[:flipped] = [0.0] * flipped
    return run(single(values))


def judged(policy: str, base: dict[str, RunResults], candidate: dict[str, RunResults]) -> GateReport:
    return run_gate(base, candidate, parse_policy("version: 1\n" + policy))


def one(policy: str, base: RunResults, candidate: RunResults) -> GateReport:
    return judged(f"benchmarks: {{a: {policy}}}", {"a": base}, {"a": candidate})


def test_a_proven_drop_beyond_the_limit_is_a_breach_and_no_go() -> None:
    """100 of 1,000 lost, none won: damage 0.1 with a standard error of √(0.1 × 0.9 / 999) ≈ 0.0095."""
    report = one("{tier: critical, max_drop: 0.01}", scores(900, 1000), scores(900, 1000, flipped=100))
    gate = report.gates[0]
    assert (gate.status, report.verdict) == ("BREACH", "NO-GO")
    assert gate.damage == pytest.approx(0.1)
    assert gate.damage_lower == pytest.approx(0.1 - 1.6464 * np.sqrt(0.1 * 0.9 / 999), abs=2e-3)
    assert "a dropped by more than is tolerated" in report.sentence


def test_a_small_drop_within_the_limit_passes() -> None:
    report = one("{max_drop: 0.05}", scores(900, 1000), scores(900, 1000, flipped=10))
    assert (report.gates[0].status, report.verdict) == ("PASS", "GO")


def test_identical_scores_prove_only_as_much_as_their_number() -> None:
    """n equal pairs leave a drop of 1 − 0.05^(1/n) possible (0.9999 of the error rate is used): below 0.01 from 300 on."""
    few = one("{max_drop: 0.01}", scores(50, 100), scores(50, 100)).gates[0]
    assert few.status == "INSUFFICIENT_EVIDENCE"
    assert few.damage_upper == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-4)
    assert one("{max_drop: 0.01}", scores(50, 240), scores(50, 240)).verdict == "INCONCLUSIVE"
    assert one("{max_drop: 0.01}", scores(50, 300), scores(50, 300)).verdict == "GO"
    assert one("{max_drop: 0}", scores(50, 100), scores(50, 100)).verdict == "INCONCLUSIVE"


def test_two_lost_problems_of_two_are_no_proof() -> None:
    """Both of two lost has a probability of up to (1.01 / 2)² when the true damage is 0.01."""
    two = one("{max_drop: 0.01}", scores(2, 2), scores(2, 2, flipped=2)).gates[0]
    assert two.status == "INSUFFICIENT_EVIDENCE"
    assert two.p_value == pytest.approx(0.505**2)
    assert one("{max_drop: 0.01}", scores(9, 9), scores(9, 9, flipped=9)).verdict == "NO-GO"


@pytest.mark.parametrize(("every", "limit"), [(0.05, 0.01), (5.0, 1.0), (50.0, 10.0)])
def test_equal_drops_of_few_problems_are_no_proof_on_any_scale(every: float, limit: float) -> None:
    """All scores fall by the same: three problems prove nothing, 1,500 do."""
    policy = f"{{max_drop: {limit}}}"
    top = every * 20

    def gate(problems: int, drop: float) -> str:
        base = run(single([top] * problems))
        candidate = run(single([top - drop] * problems))
        return one(policy, base, candidate).gates[0].status

    assert gate(3, every) == "INSUFFICIENT_EVIDENCE"
    assert gate(1_500, every) == "BREACH"
    assert gate(3, 0.0) == gate(3, -every) == "INSUFFICIENT_EVIDENCE"
    assert gate(1_500, 0.0) == gate(1_500, -every) == "PASS"


def test_equal_cost_differences_prove_nothing() -> None:
    """Costs have no upper end: two problems that both cost the same again say nothing about the third."""
    same = run(single([1.0] * 2), usage=usage(tokens=100, cost=0.01, seconds=2.0))
    report = one("{metrics: {cost: {max_drop: 0.01}}}", same, same)
    assert (report.gates[0].status, report.verdict) == ("INSUFFICIENT_EVIDENCE", "INCONCLUSIVE")
    assert report.gates[0].damage_upper is None
    assert "equal differences do not show how much it varies" in report.gates[0].reasons[0]
    alone = "{metrics: {cost: {max_drop: 0.01, require_significance: false}}}"
    assert one(alone, same, same).verdict == "GO"
    # Twice as dear on both of two: sign flips give 2⁻² = 0.25.
    dear = run(single([1.0] * 2), usage=usage(tokens=100, cost=0.03, seconds=2.0))
    found = one("{metrics: {cost: {max_drop: 0.01}}}", same, dear).gates[0]
    assert (found.status, found.p_value) == ("INSUFFICIENT_EVIDENCE", 0.25)


def test_a_drop_as_large_as_the_limit_is_within_it_in_decimals() -> None:
    """0.3 − 0.2, 0.8 − 0.7 and 0.4 − 0.3 are 0.1 each; a sum of binary floats lies above."""
    base, candidate = run(single([0.3, 0.8, 0.4] * 7)), run(single([0.2, 0.7, 0.3] * 7))
    for limit in ("max_drop: 0.1", "max_drop: 0.5, max_relative_drop: 0.2"):
        report = one(f"{{{limit}, require_significance: false}}", base, candidate)
        assert report.gates[0].damage == 0.1
        assert report.gates[0].limit == 0.1
        assert report.verdict == "GO"
    assert one("{max_drop: 0.0999, require_significance: false}", base, candidate).verdict == "NO-GO"


def test_a_few_problems_are_insufficient_evidence_and_never_a_pass() -> None:
    report = one("{max_drop: 0.01}", scores(9, 10), scores(9, 10, flipped=1))
    assert (report.gates[0].status, report.verdict) == ("INSUFFICIENT_EVIDENCE", "INCONCLUSIVE")


def test_estimates_alone_decide_when_the_policy_says_so() -> None:
    policy = "{max_drop: 0.01, require_significance: false}"
    assert one(policy, scores(9, 10), scores(9, 10, flipped=1)).verdict == "NO-GO"
    assert one(policy, scores(9, 10), scores(9, 10)).verdict == "GO"


def test_a_required_benchmark_that_was_not_run_is_no_go() -> None:
    runs = {"a": scores(900, 1000)}
    report = judged("benchmarks: {a: {max_drop: 0.05}, b: {}}", runs, runs)
    assert {gate.benchmark: gate.status for gate in report.gates} == {"a": "PASS", "b": "MISSING"}
    assert report.verdict == "NO-GO"
    assert report.sentence == "Do not ship: b is required and was not run on both sides."
    advisory = judged("benchmarks: {a: {max_drop: 0.05}, b: {tier: advisory}}", runs, runs)
    assert advisory.verdict == "GO"


def test_without_a_list_every_benchmark_of_the_base_is_required() -> None:
    runs = {"a": scores(900, 1000), "b": scores(900, 1000)}
    assert judged("defaults: {max_drop: 0.05}", runs, {"a": runs["a"]}).verdict == "NO-GO"
    assert judged("defaults: {max_drop: 0.05}", {"a": runs["a"]}, runs).verdict == "INCONCLUSIVE"


def test_advisory_metrics_never_decide() -> None:
    runs = {"a": scores(900, 1000), "b": scores(900, 1000)}
    worse = {"a": scores(900, 1000), "b": scores(900, 1000, flipped=500)}
    report = judged("benchmarks: {a: {}, b: {tier: advisory}}", runs, worse)
    assert {gate.benchmark: gate.status for gate in report.gates} == {"a": "PASS", "b": "BREACH"}
    assert report.verdict == "GO"


def test_relative_limits_count_below_the_guard_only() -> None:
    """Base 0.1: 2 % of it is 0.002, so a drop of 0.02 breaks it although 0.05 absolute would allow it."""
    policy = "{max_drop: 0.05, max_relative_drop: 0.02, relative_guard_below: 0.2}"
    low = one(policy, scores(1000, 10_000), scores(1000, 10_000, flipped=200)).gates[0]
    assert low.status == "BREACH"
    assert low.limit == pytest.approx(0.002)
    high = one(policy, scores(9000, 10_000), scores(9000, 10_000, flipped=200)).gates[0]
    assert (high.status, high.limit) == ("PASS", 0.05)


def test_costs_are_gated_with_lower_being_better() -> None:
    base = run(single([1.0] * 50), usage=usage(tokens=100, cost=0.01, seconds=2.0))
    dear = run(single([1.0] * 50), usage=usage(tokens=100, cost=0.02, seconds=1.0))
    policy = "{metrics: {cost: {max_relative_drop: 0.1}, duration: {max_relative_drop: 0.1}, tokens: {max_drop: 5}}}"
    found = {gate.metric: gate.status for gate in one(policy, base, dear).gates}
    # What is equal on all problems is not shown to stay so; fifty dearer ones of fifty are shown (2⁻⁵⁰).
    unproven = "INSUFFICIENT_EVIDENCE"
    assert found == {"cost": "BREACH", "duration": unproven, "tokens": unproven}


def test_unknown_costs_are_missing_and_not_zero() -> None:
    report = one("{metrics: {cost: {max_relative_drop: 0.1}}}", scores(9, 10), scores(9, 10))
    assert report.gates[0].status == "MISSING"


def test_pass_at_k_uses_the_repeats() -> None:
    """pass@2 with one of four right: 1 − C(3,2)/C(4,2) = 0.5; both of two right: C(1,2) = 0."""
    base = run({i: [1.0, 0.0, 0.0, 0.0] for i in range(10)})
    assert one("{metric: pass@2, max_drop: 0.1}", base, base).gates[0].base == pytest.approx(0.5)
    assert one("{metric: pass^2, max_drop: 0.1}", base, base).gates[0].base == 0.0


def test_holm_shares_the_error_rate_among_the_gated_metrics() -> None:
    """6 lost of 20, none won: sign flips one-sided p = 1/64 = 0.016, enough alone and not among ten."""
    alone = one("{max_drop: 0}", scores(20, 20), scores(20, 20, flipped=6))
    assert alone.gates[0].p_value == pytest.approx(1 / 64, abs=0.004)
    assert alone.verdict == "NO-GO"
    names = [f"b{i}" for i in range(9)]
    base = {"a": scores(20, 20), **{name: scores(10, 20) for name in names}}
    candidate = {"a": scores(20, 20, flipped=6), **{name: scores(10, 20) for name in names}}
    together = judged("defaults: {max_drop: 0}", base, candidate)
    assert next(g for g in together.gates if g.benchmark == "a").status == "INSUFFICIENT_EVIDENCE"


def test_runs_that_measured_different_things_are_refused() -> None:
    base, candidate = (
        run(single([1.0, 0.0]), bundle=Bundle(benchmark=BenchmarkSummary(name="a"), hashes={"judge": digest}))
        for digest in ("1" * 64, "2" * 64)
    )
    with pytest.raises(Incomparable, match="a: the judge"):
        one("{}", base, candidate)


def test_reports_tell_the_same_story() -> None:
    policy = "benchmarks: {a: {max_drop: 0.01}, b: {tier: advisory}, 'c<&\"': {}}"
    base = {"a": scores(900, 1000), "b": scores(9, 10)}
    report = judged(policy, base, {"a": scores(900, 1000, flipped=100), "b": scores(9, 10)})
    suite = next(iter(junitparser.JUnitXml.fromstring(gate_junit(report).encode())))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 1, 1, 1)
    names = [case.attrib["classname"] for case in ElementTree.fromstring(gate_junit(report)).iter("testcase")]
    assert 'c<&"' in names
    text = gate_markdown(report)
    assert "NO-GO" in text
    assert "| a | mean\\_reward | supporting | ❌ BREACH |" in text


def test_gate_and_compare_pair_the_same_samples() -> None:
    """One repeat against four, and a repeat that one side failed: the damage is compare's delta with its sign turned."""
    rng = np.random.default_rng(278)
    base = {n: [float(rng.random() < 0.7)] for n in range(80)}
    more = {n: [float(rng.random() < 0.6) for _ in range(4)] for n in range(80)}
    report = one("{max_drop: 0.05}", run(base), run(more))
    assert report.gates[0].damage == pytest.approx(-compare_runs(run(base), run(more)).delta.value)
    assert (
        "a: one side has repeats that the other never made: only the shared repeats are compared"
        in report.notes
    )
    both: dict[int, list[float | None]] = {n: [1.0, 0.5] for n in range(80)}
    gaps = {n: [0.5, None if n % 2 else 0.5] for n in range(80)}
    gate = one("{max_drop: 0.05}", run(both), run(gaps)).gates[0]
    # Even problems: (1 + 0.5)/2 − 0.5 = 0.25; of the odd ones only the first repeat is there on both sides: 0.5.
    assert gate.damage == pytest.approx(0.375)
    assert gate.damage == pytest.approx(-compare_runs(run(both), run(gaps)).delta.value)
    assert (gate.missing, gate.base_coverage, gate.candidate_coverage) == (40, 1.0, 0.75)


def test_go_says_that_it_assumes_something_about_missing_samples() -> None:
    values: list[float | None] = [1.0] * 1000
    gaps: list[float | None] = [*values[:985], *[None] * 15]
    sure = one("{max_drop: 0.05}", run(single(values)), run(single(gaps)))
    assert (sure.verdict, sure.sentence) == ("GO", "Ship: the gated metric is within its limit.")
    assert "the 15 missing samples cannot change that, even at worst" in sure.gates[0].reasons[0]
    assert not sure.gates[0].assumes_alike
    # The worst case is a drop of 15 in 1,000, and its bound is above 2 points.
    near = one("{max_drop: 0.02}", run(single(values)), run(single(gaps)))
    assert near.verdict == "GO"
    assert near.sentence.endswith("; this assumes that the missing samples of a are like the others.")
    assert "this assumes that the 15 missing samples are like the others" in near.gates[0].reasons[0]
    assert near.gates[0].assumes_alike
    strict = one("{max_drop: 0.02, min_coverage: 1}", run(single(values)), run(single(gaps)))
    assert strict.verdict == "INCONCLUSIVE"


def test_what_the_estimate_alone_decides_is_marked_as_not_proven() -> None:
    alone = "{max_drop: 0.05, require_significance: false}"
    go = one(alone, scores(20, 20), scores(20, 20))
    assert (
        go.sentence
        == "Ship: the gated metric is within its limit (not proven: the policy lets the estimate decide)."
    )
    stop = one(alone, scores(3, 3), scores(3, 3, flipped=3))
    assert stop.sentence.endswith(
        "by more than is tolerated (not proven: the policy lets the estimate decide)."
    )


def test_too_few_problems_are_told() -> None:
    few = one("{max_drop: 0.05}", scores(20, 20), scores(20, 20)).gates[0]
    assert any("20 problems are too few" in words and "at least 59" in words for words in few.reasons)
    lost = one("{max_drop: 0.05}", scores(3, 3), scores(3, 3, flipped=3)).gates[0]
    assert not any("too few" in words for words in lost.reasons)  # more than the limit is lost already
    single_one = one("{max_drop: 0.05}", scores(1, 1), scores(1, 1)).gates[0]
    assert "coverage 100%: the only problem is there on both sides" in single_one.reasons


def test_judged_scores_carry_a_note() -> None:
    bundle = Bundle(
        benchmark=BenchmarkSummary(name="a", samples=100), hashes={"judge": "x"}, schema_version=1
    )
    both = run(single([1.0] * 100), bundle=bundle)
    assert any("the scores are a judge's" in note for note in one("{max_drop: 0.05}", both, both).notes)
    assert any("the scores are a judge's" in words for words in compare_runs(both, both).caveats)
    assert not one("{max_drop: 0.05}", scores(100, 100), scores(100, 100)).notes
