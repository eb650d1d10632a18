"""Long proof: the coverage and error claims of docs/ab.md, cell by cell, with fixed seeds."""

import pytest
from bench.ab_simulations import NULLS, REPEATS, TASKS, WANTED, WORLDS, World, covered, errors

CELLS = [(tasks, repeats) for tasks in TASKS for repeats in REPEATS]


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "repeats"), CELLS)
@pytest.mark.parametrize("world", [world for world in WORLDS if not world.hard], ids=lambda world: world.name)
def test_headline_intervals_cover(world: World, tasks: int, repeats: int) -> None:
    """With 4,000 data sets the standard error at 95% is 0.34 points."""
    found = covered(world, tasks, repeats, 4_000)
    assert found.mean >= WANTED
    assert found.median is None or found.median >= WANTED


@pytest.mark.slow
def test_the_bootstrap_covers_too_seldom_with_few_tasks() -> None:
    """What the headline intervals are there for."""
    for world in WORLDS:
        assert covered(world, 5, 5, 400).mean_bootstrap < 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "repeats"), CELLS)
@pytest.mark.parametrize("kind", NULLS)
def test_nothing_is_called_proven_by_chance(kind: str, tasks: int, repeats: int) -> None:
    """At most 5%, with 2,000 data sets ± 1 point; sign flips assume symmetry, so skewed tasks get 8%."""
    found = errors(kind, tasks, repeats, 2_000)
    limit = 0.08 if kind == "skewed" else 0.06
    assert found.tasks <= limit
    assert found.any_gate <= limit
    assert found.pairs > 0.06  # what pairs as units would claim
