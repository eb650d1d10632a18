"""How often verdicts are wrong, by simulation: the claims that the documentation makes."""

import numpy as np
import pytest
from bench.verdicts import WORLDS, family_rates
from tests.runs import run

from evenhand.compare import Options, compare_runs
from evenhand.compare.gate import run_gate
from evenhand.compare.planning import make_plan, noise_from_rates
from evenhand.compare.policy import parse_policy
from evenhand.metrics.paired import mcnemar
from evenhand.metrics.power import power_of
from evenhand.results import RunResults


def simulated(rng: np.random.Generator, problems: int, repeats: int) -> tuple[RunResults, RunResults]:
    """Two runs of one model: each problem has its own difficulty, each answer its own luck."""
    difficulty = rng.beta(2, 1, size=problems)
    sides = [rng.random((problems, repeats)) < difficulty[:, None] for _ in range(2)]
    base, candidate = (run({i: list(map(float, row)) for i, row in enumerate(side)}) for side in sides)
    return base, candidate


def test_a_drop_of_two_and_a_half_points_is_seen_as_often_as_the_planner_says() -> None:
    """1,000 items, 10 % discordant, true drop 2.5 points: losses 6.25 %, wins 3.75 %. The planner predicts 0.80."""
    rng = np.random.default_rng(20261115)
    trials = 2000
    counts = rng.multinomial(1000, [0.0625, 0.0375, 0.9], size=trials)
    seen = np.mean(
        [mcnemar(int(lost), int(won), alternative="less").p_value < 0.05 for lost, won, _ in counts]
    )
    predicted = power_of(0.025, noise_from_rates(0.5, 0.10).sd(1), 1000, alternative="greater")
    assert predicted == pytest.approx(0.80, abs=0.01)
    two_sided = power_of(0.025, noise_from_rates(0.5, 0.10).sd(1), 1000, alternative="two-sided")
    assert two_sided == pytest.approx(0.70, abs=0.01)
    assert seen == pytest.approx(predicted, abs=0.03)
    assert make_plan(0.025, noise_from_rates(0.5, 0.10)).plans[0].power >= 0.8


@pytest.mark.parametrize("repeats", [1, 4])
def test_without_a_difference_compare_blocks_at_most_its_nominal_rate(repeats: int) -> None:
    """5 % nominal; 300 trials have a standard error of 1.3 points, so 5 % + 3 standard errors is the limit."""
    rng = np.random.default_rng(7)
    options = Options(max_drop=0.0)
    blocked = [
        compare_runs(*simulated(rng, 60, repeats), options).verdict.name == "BLOCK" for _ in range(300)
    ]
    assert np.mean(blocked) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.slow
@pytest.mark.parametrize(("benchmarks", "repeats"), [(1, 1), (1, 4), (10, 1), (10, 4)])
def test_without_a_difference_the_gate_says_no_go_at_most_at_its_nominal_rate(
    benchmarks: int, repeats: int
) -> None:
    """2,000 gates at α = 5 %: standard error 0.49 points; the limit is 5 % plus three of them."""
    rng = np.random.default_rng(benchmarks * 10 + repeats)
    policy = parse_policy("version: 1\ndefaults: {max_drop: 0}\n")
    broken = 0
    for _ in range(2000):
        pairs = {f"b{i}": simulated(rng, 40, repeats) for i in range(benchmarks)}
        report = run_gate({k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}, policy)
        broken += report.verdict == "NO-GO"
    assert broken / 2000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


HONEST = [world for world in WORLDS if "without" not in world[0] and "min_coverage" not in world[0]]
"""The worlds in which the gate promises 5 %; in the others the page says why it cannot."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in HONEST if "2 %" not in name and "judge" not in name])
def test_at_exactly_the_limit_the_gate_says_go_at_most_at_its_nominal_rate(name: str) -> None:
    """600 gates at 5 %: standard error 0.9 points; the limit is 5 % plus three of them."""
    rng = np.random.default_rng(31)
    world = dict(WORLDS)[name]
    assert np.mean([world(rng) for _ in range(600)]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("benchmarks", [1, 10])
def test_several_benchmarks_share_the_error_rate(benchmarks: int) -> None:
    """100 families: the limit is 5 % (2.5 % for PASS) plus three standard errors; ten alone would give 31 and 17 %."""
    _, block, _, passed = family_rates(benchmarks, 100)
    assert block <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    assert passed <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 100)
