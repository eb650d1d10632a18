"""Ranking from pairwise outcomes."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from msgspec import Struct

from evenhand.metrics.checks import checked_level, checked_positive
from evenhand.metrics.quantiles import normal_quantile
from evenhand.metrics.types import FloatArray, Interval

_STEPS = 200
# The log weights of "i wins", "j wins" and "tie" are linear in (θᵢ, θⱼ, log ν), with these coefficients.
_COEFFICIENTS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0]])


class Ranked(Struct, frozen=True, kw_only=True):
    """One contestant."""

    name: str
    """Who it is."""
    strength: Interval
    """Log-strength relative to the mean of all: a difference of 1 is odds of e to 1."""
    games: float
    """How many games it played."""
    best_rank: int
    """The best rank that the pairwise intervals leave open."""
    worst_rank: int
    """The worst rank that the pairwise intervals leave open."""


class Ranking(Struct, frozen=True, kw_only=True):
    """A fitted Bradley–Terry model."""

    contestants: list[Ranked]
    """Strongest first."""
    tie: float
    """Davidson's ν: two equals tie with odds ν to 2; 0 when no game was tied."""
    confidence_level: float
    """The level of the intervals."""
    n: int
    """How many games went in."""

    def win_probability(self, first: str, second: str) -> float:
        """The chance that `first` beats `second` in a game that may be tied."""
        strength = {entry.name: entry.strength.value for entry in self.contestants}
        for name in (first, second):
            if name not in strength:
                raise ValueError(f"{'first' if name == first else 'second'}: unknown contestant {name!r}")
        gap = (strength[second] - strength[first]) / 2.0
        return float(1.0 / (1.0 + np.exp(2.0 * gap) + self.tie * np.exp(gap)))


def bradley_terry(
    outcomes: Iterable[tuple[Any, Any, float]], *, confidence_level: float = 0.95, prior_ties: float = 0.0
) -> Ranking:
    """Strengths from games (a, b, result): 1 when a won, 0 when b won, ½ for a tie.

    P(a beats b) = π_a/(π_a + π_b + ν√(π_a π_b)), and a tie has ν√(π_a π_b) on top: Bradley and Terry (1952,
    Biometrika 39:324) with the ties of Davidson (1970, JASA 65:317). Fitted by maximum likelihood (Newton);
    intervals are Wald's from the observed information, for strengths relative to the mean of all. The
    maximum exists only when wins and ties lead from every contestant to every other; otherwise `prior_ties`
    virtual ties between every pair (say 0.1) keep it finite.
    """
    level = checked_level(confidence_level)
    prior = checked_positive(prior_ties, name="prior_ties", zero_allowed=True)
    names, wins, ties, n = _tables(outcomes)
    played = wins + wins.T + ties
    ties = ties + prior * (1.0 - np.eye(len(names)))
    _check_connected(names, wins, ties)
    theta, log_tie, covariance = _fit(wins, ties)
    order = sorted(range(len(names)), key=lambda index: (-theta[index], names[index]))
    z = normal_quantile((1.0 + level) / 2.0)
    best, worst = _open_ranks(theta, covariance, z)
    contestants = []
    for index in order:
        error = float(covariance[index, index]) ** 0.5
        strength = Interval(
            value=float(theta[index]),
            ci_lower=float(theta[index]) - z * error,
            ci_upper=float(theta[index]) + z * error,
            confidence_level=level,
            method="bradley_terry",
            n=int(played[index].sum()),
            standard_error=error,
        )
        contestants.append(
            Ranked(
                name=names[index],
                strength=strength,
                games=float(played[index].sum()),
                best_rank=best[index],
                worst_rank=worst[index],
            )
        )
    tie = 0.0 if log_tie is None else float(np.exp(log_tie))
    return Ranking(contestants=contestants, tie=tie, confidence_level=level, n=n)


def _tables(outcomes: Iterable[tuple[Any, Any, float]]) -> tuple[list[str], FloatArray, FloatArray, int]:
    games = [(str(a), str(b), result) for a, b, result in outcomes]
    if not games:
        raise ValueError("outcomes: must not be empty")
    names = sorted({name for a, b, _ in games for name in (a, b)})
    index = {name: position for position, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    ties = np.zeros_like(wins)
    for position, (a, b, result) in enumerate(games):
        if a == b:
            raise ValueError(f"outcomes: game {position} pairs {a!r} with itself")
        if result not in (0, 0.5, 1):
            raise ValueError(f"outcomes: game {position} has result {result!r}; known: 1, 0.5, 0")
        i, j = index[a], index[b]
        if result == 0.5:
            ties[i, j] += 1.0
            ties[j, i] += 1.0
        else:
            wins[(i, j) if result == 1 else (j, i)] += 1.0
    return names, wins, ties, len(games)


def _check_connected(names: list[str], wins: FloatArray, ties: FloatArray) -> None:
    # Ford (1957): a finite maximum needs a path of wins or ties from everyone to everyone.
    reach = ((wins + ties) > 0) | np.eye(len(names), dtype=bool)
    for _ in range(len(names).bit_length()):
        reach = (reach.astype(np.int64) @ reach.astype(np.int64)) > 0
    for i, j in combinations(range(len(names)), 2):
        if not (reach[i, j] and reach[j, i]):
            ahead, behind = (i, j) if reach[i, j] else (j, i)
            raise ValueError(
                f"outcomes: nothing leads from {names[behind]!r} to {names[ahead]!r}, so their distance has no "
                "estimate; play more games or set prior_ties"
            )


def _fit(wins: FloatArray, ties: FloatArray) -> tuple[FloatArray, float | None, FloatArray]:
    size = wins.shape[0]
    with_ties = bool(ties.any())
    point = np.zeros(size + 1)
    value, gradient, hessian = _likelihood(point, wins, ties, with_ties)
    for _ in range(_STEPS):
        step = _inverse(hessian, with_ties) @ gradient
        scale = 1.0
        while True:
            trial = point + scale * step
            new_value, new_gradient, new_hessian = _likelihood(trial, wins, ties, with_ties)
            if new_value >= value - 1e-12 * abs(value) or scale < 1e-6:
                break
            scale /= 2.0
        point, value, gradient, hessian = trial, new_value, new_gradient, new_hessian
        point[:size] -= point[:size].mean()
        if float(np.abs(scale * step).max()) < 1e-10:
            break
    covariance = _inverse(hessian, with_ties)
    return point[:size], float(point[size]) if with_ties else None, covariance[:size, :size]


def _inverse(information: FloatArray, with_ties: bool) -> FloatArray:
    # Adding a constant to all strengths changes nothing, so the information is singular in that direction
    # (and, without ties, in log ν). With those directions filled in it has a plain inverse; taking them out
    # again leaves the pseudo-inverse, the covariance of strengths relative to their mean.
    size = information.shape[0] - 1
    filled = np.zeros_like(information)
    filled[:size, :size] = 1.0 / size
    if not with_ties:
        filled[size, size] = 1.0
    return np.asarray(np.linalg.inv(information + filled) - filled)


def _likelihood(
    point: FloatArray, wins: FloatArray, ties: FloatArray, with_ties: bool
) -> tuple[float, FloatArray, FloatArray]:
    """Log-likelihood, gradient and negative Hessian in (θ, log ν); each pair of contestants is one row."""
    size = wins.shape[0]
    i, j = np.triu_indices(size, 1)
    counts = np.stack([wins[i, j], wins[j, i], ties[i, j]], axis=1)
    played = counts.sum(axis=1) > 0
    i, j, counts = i[played], j[played], counts[played]
    places = np.stack([i, j, np.full(i.size, size)], axis=1)
    logs = point[places] @ _COEFFICIENTS.T
    if not with_ties:
        logs[:, 2] = -np.inf
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = counts.sum(axis=1, keepdims=True)
    shares = weights / weights.sum(axis=1, keepdims=True)
    rates = logs - top - np.log(weights.sum(axis=1, keepdims=True))
    value = float((counts[counts > 0] * rates[counts > 0]).sum())
    mean = shares @ _COEFFICIENTS
    gradient = np.zeros(size + 1)
    np.add.at(gradient, places, counts @ _COEFFICIENTS - total * mean)
    squares = np.einsum("pk,ka,kb->pab", shares, _COEFFICIENTS, _COEFFICIENTS)
    information = np.zeros((size + 1, size + 1))
    spread = total[:, :, None] * (squares - mean[:, :, None] * mean[:, None, :])
    np.add.at(information, (places[:, :, None], places[:, None, :]), spread)
    return value, gradient, information


def _open_ranks(theta: FloatArray, covariance: FloatArray, z: float) -> tuple[list[int], list[int]]:
    spread = np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2.0 * covariance
    beaten_by = (theta[None, :] - theta[:, None]) > z * np.sqrt(np.maximum(spread, 0.0))
    size = theta.size
    best = [int(beaten_by[index].sum()) + 1 for index in range(size)]
    worst = [size - int(beaten_by[:, index].sum()) for index in range(size)]
    return best, worst
