"""Clusters that break whole: how often a gate says GO although the true drop is as large as the limit."""

import numpy as np
import pytest
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
