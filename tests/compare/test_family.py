"""Several benchmarks at once, clusters of problems, and what a drop's exact bound proves."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom
from scipy.stats import t as student
from tests.runs import run, single

from evenhand.compare import Options, compare_runs
from evenhand.compare.comparison import Comparison
from evenhand.compare.family import correct_together
from evenhand.compare.gate import run_gate
from evenhand.compare.policy import parse_policy
from evenhand.core.errors import InputError
from evenhand.metrics.differences import p_at_most
from evenhand.metrics.intervals import mean_interval
from evenhand.metrics.multiplicity import hochberg, holm
from evenhand.metrics.paired import non_inferiority, permutation_test
from evenhand.metrics.power import mcnemar_minimum_detectable_effect, mcnemar_power
from evenhand.results import RunResults


def flipped(lost: int, won: int, total: int = 100) -> Comparison:
    base = [1.0] * lost + [0.0] * won + [1.0] * (total - lost - won)
    candidate = [0.0] * lost + [1.0] * won + [1.0] * (total - lost - won)
    return compare_runs(run(single(base)), run(single(candidate)), Options(max_drop=0.0))


def test_one_lucky_benchmark_of_ten_does_not_block() -> None:
    """6 lost, none won: p = 1/64 alone; among ten benchmarks 10/64, so nothing is proven."""
    alone = flipped(6, 0)
    assert alone.verdict.name == "BLOCK"
    options = Options(max_drop=0.0)
    together = correct_together([alone, *(flipped(2, 2) for _ in range(9))], options)
    assert together[0].verdict.name == "INCONCLUSIVE"
    assert together[0].family is not None
    assert together[0].family.p_drop == pytest.approx(10 / 64)
    assert together[0].p_drop == pytest.approx(1 / 64)
    assert any(
        "0.156 after Holm's correction for 10 benchmarks" in words for words in together[0].verdict.reasons
    )
    wide = together[0].family.simultaneous
    assert wide.confidence_level == pytest.approx(0.995)
    assert wide.ci_lower < together[0].delta.ci_lower
    assert correct_together([alone], options) == [alone]


def test_benchmarks_that_all_pass_alone_all_pass_together() -> None:
    equal = [
        compare_runs(run(single([1.0, 0.0] * 250)), run(single([1.0, 0.0] * 250)), Options(max_drop=0.02))
        for _ in range(10)
    ]
    assert {one.verdict.name for one in equal} == {"PASS"}
    assert {one.verdict.name for one in correct_together(equal, Options(max_drop=0.02))} == {"PASS"}


def test_a_narrow_pass_beside_open_benchmarks_is_not_proven_any_more() -> None:
    """A pass at p ≈ 0.02 alone needs 0.025 / m where others are open."""
    narrow = compare_runs(run(single([1.0] * 200)), run(single([1.0] * 200)), Options(max_drop=0.02))
    assert narrow.verdict.name == "PASS"
    assert 0.01 < narrow.p_beyond < 0.025
    open_ = [
        compare_runs(run(single([1.0, 0.0] * 5)), run(single([0.0, 1.0] * 5)), Options(max_drop=0.02))
        for _ in range(4)
    ]
    assert correct_together([narrow, *open_], Options(max_drop=0.02))[0].verdict.name == "INCONCLUSIVE"


def test_hochberg_by_hand_and_against_holm() -> None:
    """Sorted 0.01, 0.02, 0.04: 3·0.01 = 0.03, 2·0.02 = 0.04, 1·0.04 = 0.04; from above: 0.03, 0.04, 0.04."""
    assert hochberg([0.04, 0.01, 0.02]).tolist() == pytest.approx([0.04, 0.03, 0.04])
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(7)
        assert (hochberg(p) <= holm(p) + 1e-12).all()
        assert (hochberg(p) >= p - 1e-12).all()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.8])
@pytest.mark.parametrize("n", [30, 80])
def test_the_false_pass_rate_at_the_limit_is_exactly_below_its_level(n: int, share: float) -> None:
    """Summed over every outcome, not simulated: P(p ≤ 0.05) at a true drop of 5 points is at most 0.05."""
    margin = 0.05
    loss, total = (share + margin) / 2, 0.0
    for changed in range(n + 1):
        weight = binom.pmf(changed, n, share)
        if weight < 1e-7:
            continue
        for lost in range(changed + 1):
            chance = weight * binom.pmf(lost, changed, loss / share)
            if chance > 1e-6 and 2 * lost - changed <= n * margin:
                values = np.repeat([-1.0, 1.0, 0.0], [lost, changed - lost, n - changed])
                total += chance * (p_at_most(values, -margin, groups=None, scale=1.0) <= 0.05)
    assert total <= 0.05


def test_few_large_drops_are_corrected_for_by_hand() -> None:
    """Johnson: t + (γ/6√n)(2t² + 1), with γ the skewness; only against the candidate."""
    drops = np.array([0.05] * 15 + [-0.3, -0.25, 0.02, 0.03, 0.01])
    n, mean, sd = drops.size, drops.mean(), drops.std(ddof=1)
    residuals = drops - mean
    pull = float((residuals**3).mean() / (residuals**2).mean() ** 1.5) / (6 * n**0.5)
    assert pull < -0.03  # beyond the largest correction, which is then used
    t = (mean + 0.1) / (sd / n**0.5)
    expected = student.sf(t - 0.03 * (2 * t * t + 1), n - 1)
    assert non_inferiority(drops, 0.1, scale=None).p_value == pytest.approx(expected)
    up = non_inferiority(-drops, 0.1, scale=None)
    assert up.p_value == pytest.approx(student.sf((-mean + 0.1) / (sd / n**0.5), n - 1))


def test_the_power_of_mcnemar_by_enumeration() -> None:
    """n = 12, half of the pairs differ, drop 0.4: every table, each with its trinomial probability."""
    n, share, effect = 12, 0.5, 0.4
    loss = (share + effect) / 2
    power = 0.0
    for changed in range(n + 1):
        for lost in range(changed + 1):
            if binom.cdf(changed - lost, changed, 0.5) < 0.05:
                power += binom.pmf(changed, n, share) * binom.pmf(lost, changed, loss / share)
    assert mcnemar_power(effect, share, n) == pytest.approx(power)
    found = mcnemar_minimum_detectable_effect(share, 200)
    assert found is not None
    assert mcnemar_power(found, share, 200) == pytest.approx(0.8, abs=1e-3)
    assert mcnemar_minimum_detectable_effect(0.5, 4) is None  # four losses of four: p = 1/16


def test_intervals_of_scores_stay_on_their_scale() -> None:
    assert (mean_interval([0.1, 0.7]).ci_lower, mean_interval([0.1, 0.7]).ci_upper) == (0.0, 1.0)
    outside = mean_interval([0.1, 7.0])
    assert outside.ci_lower < 0
    assert mean_interval([1.0, 4.0], bounds=(0.0, 5.0)).ci_upper == 5.0
    two = compare_runs(run(single([0.1, 0.9])), run(single([0.8, 0.2])))
    assert (two.delta.ci_lower, two.delta.ci_upper) == (-1.0, 1.0)


def passages(per: int, count: int, shift: float, seed: int = 3) -> tuple[RunResults, RunResults]:
    """Questions that share a passage share its luck."""
    rng = np.random.default_rng(seed)
    luck = rng.normal(shift, 0.2, count)
    base, candidate = {}, {}
    for index in range(per * count):
        start = 0.5 + rng.normal(0, 0.01)
        base[index] = [float(np.clip(start, 0, 1))]
        candidate[index] = [float(np.clip(start + luck[index // per], 0, 1))]
    names = {index: f"p{index // per}" for index in range(per * count)}
    made = []
    for rewards in (base, candidate):
        one = run(rewards)
        made.append(
            replace(
                one,
                samples=[
                    replace(sample, metadata={"passage": names[sample.problem_idx]}) for sample in one.samples
                ],
            )
        )
    return made[0], made[1]


def test_clusters_widen_the_interval_to_that_of_their_means() -> None:
    """Ten passages of twenty questions: as sure as ten passages, not as two hundred questions."""
    base, candidate = passages(20, 10, -0.05)
    plain = compare_runs(base, candidate)
    clustered = compare_runs(base, candidate, Options(cluster_field="passage"))
    assert clustered.clusters == 10
    assert clustered.delta.value == pytest.approx(plain.delta.value)
    width = clustered.delta.ci_upper - clustered.delta.ci_lower
    assert width > 3 * (plain.delta.ci_upper - plain.delta.ci_lower)
    deltas = np.array([item.delta for item in clustered.items])
    means = deltas.reshape(10, 20).mean(axis=1)
    t = means.mean() / (means.std(ddof=1) / 10**0.5)
    assert clustered.delta.standard_error == pytest.approx(abs(means.mean() / t))
    assert clustered.p_drop == pytest.approx(permutation_test(means, alternative="less").p_value)
    assert clustered.test.method.startswith("sign flips of whole clusters")


def test_clusters_reach_the_gate() -> None:
    base, candidate = passages(20, 10, -0.05)
    rules = parse_policy("version: 1\nbenchmarks: {a: {max_drop: 0.1}}")
    plain = run_gate({"a": base}, {"a": candidate}, rules).gates[0]
    clustered = run_gate({"a": base}, {"a": candidate}, rules, cluster_field="passage").gates[0]
    assert clustered.clusters == 10
    assert plain.damage_upper is not None
    assert clustered.damage_upper is not None
    assert clustered.damage_upper > plain.damage_upper


def test_a_field_that_names_no_clusters_is_refused() -> None:
    base, candidate = passages(5, 4, 0.0)
    with pytest.raises(InputError, match="20 problems have no such metadata"):
        compare_runs(base, candidate, Options(cluster_field="chapter"))
    one = run(single([1.0, 0.0]), category={0: "x", 1: "x"})
    with pytest.raises(InputError, match="all problems are in one cluster"):
        compare_runs(one, one, Options(cluster_field="category"))
