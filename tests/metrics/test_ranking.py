"""Bradley–Terry, against the published baseball fit and the likelihood itself."""

import random

import numpy as np
import pytest
import scipy.optimize

from evenhand.metrics import bradley_terry

# Agresti, Categorical Data Analysis, table 10.10 (American League East, 1987): row beat column.
TEAMS = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
WINS = [
    [0, 7, 9, 7, 7, 9, 11],
    [6, 0, 7, 5, 11, 9, 9],
    [4, 6, 0, 7, 7, 8, 12],
    [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12],
    [4, 4, 5, 6, 6, 0, 6],
    [2, 4, 1, 3, 1, 7, 0],
]
# The strengths relative to Baltimore that he reports.
PUBLISHED = [1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0]


def games() -> list[tuple[str, str, float]]:
    return [
        (TEAMS[i], TEAMS[j], 1.0) for i in range(7) for j in range(7) for _ in range(WINS[i][j]) if i != j
    ]


def test_baseball_as_published() -> None:
    ranking = bradley_terry(games())
    assert [entry.name for entry in ranking.contestants] == TEAMS
    last = ranking.contestants[-1].strength.value
    strengths = [entry.strength.value - last for entry in ranking.contestants]
    assert strengths == pytest.approx(PUBLISHED, abs=0.006)
    assert ranking.tie == 0.0


def tied_games(n: int = 900) -> list[tuple[str, str, float]]:
    rng = random.Random(5)
    strength = {"a": 0.8, "b": 0.1, "c": -0.2, "d": -0.7}
    out: list[tuple[str, str, float]] = []
    for _ in range(n):
        x, y = rng.sample(sorted(strength), 2)
        weights = [np.exp(strength[x]), np.exp(strength[y]), 0.6 * np.exp((strength[x] + strength[y]) / 2)]
        out.append((x, y, rng.choices([1.0, 0.0, 0.5], weights)[0]))
    return out


def test_ties_maximise_davidsons_likelihood() -> None:
    """The literal likelihood, maximised by SciPy, and standard errors from its numerical Hessian."""
    outcomes = tied_games()
    names = ["a", "b", "c", "d"]

    def minus_log(parameters: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        theta = dict(zip(names, [*parameters[:3], -parameters[:3].sum()], strict=True))
        nu = np.exp(parameters[3])
        total = 0.0
        for x, y, result in outcomes:
            px, py = np.exp(theta[x]), np.exp(theta[y])
            tie = nu * np.sqrt(px * py)
            total -= np.log({1.0: px, 0.0: py, 0.5: tie}[result] / (px + py + tie))
        return float(total)

    best = scipy.optimize.minimize(minus_log, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
    ranking = bradley_terry(outcomes)
    fitted = {entry.name: entry.strength for entry in ranking.contestants}
    assert [fitted[name].value for name in "abc"] == pytest.approx(best.x[:3], abs=1e-4)
    assert ranking.tie == pytest.approx(np.exp(best.x[3]), rel=1e-4)
    step = 1e-3
    unit = np.eye(4) * step
    hessian = [
        [
            (
                minus_log(best.x + unit[i] + unit[j])
                - minus_log(best.x + unit[i] - unit[j])
                - minus_log(best.x - unit[i] + unit[j])
                + minus_log(best.x - unit[i] - unit[j])
            )
            / (4 * step * step)
            for j in range(4)
        ]
        for i in range(4)
    ]
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert [fitted[name].standard_error for name in "abc"] == pytest.approx(errors[:3], rel=1e-3)


def test_probabilities_and_open_ranks() -> None:
    ranking = bradley_terry(tied_games())
    win, loss = ranking.win_probability("a", "d"), ranking.win_probability("d", "a")
    assert win > loss
    assert win + loss < 1.0
    assert ranking.contestants[0].best_rank == 1
    assert all(entry.best_rank <= entry.worst_rank for entry in ranking.contestants)
    few = bradley_terry(tied_games(12))
    assert few.contestants[0].worst_rank > 1


def test_order_and_side_do_not_matter() -> None:
    outcomes = tied_games()
    swapped = [(y, x, 1.0 - result) for x, y, result in outcomes]
    random.Random(1).shuffle(swapped)
    assert bradley_terry(swapped) == bradley_terry(outcomes)


def test_a_contestant_who_never_lost_has_no_estimate() -> None:
    outcomes = [("a", "b", 1.0), ("a", "b", 1.0), ("b", "c", 1.0), ("c", "b", 1.0)]
    with pytest.raises(ValueError, match=r"^outcomes: .*prior_ties"):
        bradley_terry(outcomes)
    assert bradley_terry(outcomes, prior_ties=0.1).contestants[0].name == "a"


@pytest.mark.parametrize("outcome", [("a", "a", 1.0), ("a", "b", 0.7), ("a", "b", float("nan"))])
def test_bad_games_are_refused(outcome: tuple[str, str, float]) -> None:
    with pytest.raises(ValueError, match=r"^outcomes:"):
        bradley_terry([outcome])
    with pytest.raises(ValueError, match=r"^outcomes:"):
        bradley_terry([])
