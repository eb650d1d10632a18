"""Clusters that break whole: how often a gate says GO although the true drop is as large as the limit."""

import numpy as np
import pytest
from bench.verdicts import goes, passages
from tests.runs import run, single

from evenhand.compare import Options, compare_runs
from evenhand.compare.gate import run_gate
from evenhand.compare.policy import parse_policy
from evenhand.metrics.paired import non_inferiority
from evenhand.results import RunResults


def clustered(scores: list[float], size: int) -> RunResults:
    found = run(single(scores))
    for one in found.samples:
        one.metadata["passage"] = str(one.problem_idx // size)
    return found


def test_two_clusters_of_equal_pairs_prove_nothing() -> None:
    """400 equal pairs would rule out 5 points; two equal clusters leave 1 − 0.05^(1/2) = 0.776 possible."""
    base = clustered([1.0] * 400, 200)
    assert compare_runs(base, base).verdict.name == "PASS"
    assert compare_runs(base, base, Options(cluster_field="passage")).verdict.name == "INCONCLUSIVE"
    policy = parse_policy("version: 1\nbenchmarks: {a: {max_drop: 0.05}}\n")
    report = run_gate({"a": base}, {"a": base}, policy, cluster_field="passage")
    assert report.verdict == "INCONCLUSIVE"
    assert report.gates[0].damage_upper == pytest.approx(1 - 0.05**0.5, abs=1e-3)


def test_equal_clusters_prove_as_much_as_equal_problems() -> None:
    """One of size ten counts as one problem, whatever is in it."""
    groups = np.repeat(np.arange(60), 10)
    whole = non_inferiority(np.zeros(600), 0.05, groups=groups)
    single_ones = non_inferiority(np.zeros(60), 0.05)
    assert whole.p_value == pytest.approx(single_ones.p_value)
    assert whole.ci_lower == pytest.approx(single_ones.ci_lower)


@pytest.mark.parametrize(("clusters", "size"), [(10, 40), (20, 20), (40, 10), (50, 4)])
@pytest.mark.parametrize(("broken", "lost"), [(0.05, 1.0), (0.1, 0.5), (0.2, 1.0)])
def test_a_drop_as_large_as_the_limit_is_seldom_ruled_out(
    clusters: int, size: int, broken: float, lost: float
) -> None:
    """A broken cluster loses all or half of its questions; the limit is the true drop. 5 % plus three standard errors."""
    rng = np.random.default_rng(clusters)
    groups = np.repeat(np.arange(clusters), size)
    trials = 300
    known: dict[tuple[float, ...], bool] = {}
    wrong = 0
    for _ in range(trials):
        down = np.repeat(rng.random(clusters) < broken, size) & (rng.random(clusters * size) < lost)
        key = tuple(sorted(down.reshape(clusters, size).sum(axis=1).tolist()))
        if key not in known:
            known[key] = non_inferiority(-1.0 * down, broken * lost, groups=groups).established
        wrong += known[key]
    assert wrong / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def test_too_few_clusters_say_how_many_are_needed() -> None:
    """(1 − 0.05)^n ≤ 0.025 from n = 72 on; a gate asks for 59, at 5 %."""
    base = clustered([1.0] * 400, 40)
    found = compare_runs(base, base, Options(cluster_field="passage"))
    assert any(
        "10 clusters are too few" in words and "at least 72 are needed" in words
        for words in found.verdict.reasons
    )
    # To see the drop takes 160: one-sided at 5 % with 80 % power, (0.5512 + √(0.5512² + 4·0.05))²/(2·0.05)² with
    # 0.5512 = 1.645·√0.05 + 0.8416·√(0.05 − 0.05²), McNemar's formula with its correction for whole counts.
    assert "Run 150 more clusters" in found.verdict.next_step
    enough = clustered([1.0] * 360, 5)
    assert compare_runs(enough, enough, Options(cluster_field="passage")).verdict.name == "PASS"


@pytest.mark.parametrize("clusters", [10, 20, 40])
def test_skewed_clusters_at_the_limit_are_seldom_let_through(clusters: int) -> None:
    """Each cluster loses its questions at a rate of its own, 5 % on average, most of them none: 100 gates."""
    rng = np.random.default_rng(clusters)
    went = sum(goes(passages(rng, clusters, 200 // clusters), clustered=True) for _ in range(100))
    assert went / 100 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_categories_are_compared_in_clusters_too() -> None:
    """Sixteen lost questions of one passage are one loss; p = 1 where a category lies in one passage."""
    base = run(single([1.0] * 64), category={i: "a" if i < 48 else "b" for i in range(64)})
    worse = run(single([0.0] * 16 + [1.0] * 48), category={i: "a" if i < 48 else "b" for i in range(64)})
    for one in (*base.samples, *worse.samples):
        one.metadata["passage"] = str(one.problem_idx // 16)
    alone = compare_runs(base, worse).categories
    together = compare_runs(base, worse, Options(cluster_field="passage")).categories
    assert alone[0].p_value < 0.001
    assert together[0].p_value == 1.0
    assert together[0].delta is not None
    assert together[0].delta.method.startswith("clustered")
    assert (together[1].category, together[1].delta, together[1].p_value) == ("b", None, 1.0)
