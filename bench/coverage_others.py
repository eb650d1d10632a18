"""The other intervals in the settings where they are recommended, each as one trial: did it cover?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.metrics import (
    bootstrap_ci,
    bradley_terry,
    cohen_kappa,
    cohens_d_paired,
    confidence_sequence,
    fleiss_kappa,
    krippendorff_alpha,
    matched_odds_ratio,
    non_inferiority,
    paired_difference,
    pass_at_k_interval,
    pass_hat_k_interval,
    ppi_difference,
    ppi_mean,
    repeats_interval,
    rogan_gladen,
)

Trial = Callable[[np.random.Generator], bool]


@dataclass(frozen=True)
class Case:
    """One interval in one setting."""

    name: str
    setting: str
    trial: Trial
    at_most: float = 0.97
    """Above this it would be needlessly wide; 1 for those that are exact or valid at every time."""
    trials_share: float = 1.0
    """Slow ones get fewer trials."""

    def coverage(self, trials: int) -> float:
        rng = np.random.default_rng(7)
        count = int(trials * self.trials_share)
        return sum(self.trial(rng) for _ in range(count)) / count


def _paired_binary(n: int, wins: float, losses: float) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        drawn = rng.choice([1.0, -1.0, 0.0], p=[wins, losses, 1 - wins - losses], size=n)
        return paired_difference(np.zeros(n), drawn).contains(wins - losses)

    return trial


def _paired_groups(problems: int, repeats: int, *, graded: bool) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        chance = np.repeat(rng.beta(2, 1, problems), repeats)
        codes = np.repeat(np.arange(problems), repeats)
        worse = 0.9 * chance
        if graded:
            base, candidate = rng.beta(5 * chance, 5 * (1 - chance)), rng.beta(5 * worse, 5 * (1 - worse))
        else:
            base = (rng.random(chance.size) < chance).astype(np.float64)
            candidate = (rng.random(chance.size) < worse).astype(np.float64)
        return paired_difference(base, candidate, groups=codes).contains(-0.1 * 2 / 3)

    return trial


def _non_inferiority(rng: np.random.Generator) -> bool:
    differences = rng.choice([1.0, -1.0, 0.0], p=[0.04, 0.06, 0.9], size=500)
    return non_inferiority(differences, 0.05).ci_lower <= -0.02


def _median(rng: np.random.Generator) -> bool:
    return bootstrap_ci(rng.normal(size=101), statistic="median", n_bootstrap=2_000).contains(0.0)


def _repeats(chances: tuple[float, ...], repeats: int) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        values = [(rng.random(repeats) < chance).astype(np.float64) for chance in chances]
        return repeats_interval(values).contains(float(np.mean(chances)))

    return trial


def _passes(rng: np.random.Generator, *, every: bool) -> bool:
    # With chances from Beta(2, 1): E(1 − (1 − p)²) = 5/6 and E p² = 1/2.
    counts = [(5, int(c)) for c in rng.binomial(5, rng.beta(2, 1, 100))]
    return (pass_hat_k_interval(counts, 2) if every else pass_at_k_interval(counts, 2)).contains(
        0.5 if every else 5 / 6
    )


def _effect(rng: np.random.Generator) -> bool:
    return cohens_d_paired(np.zeros(30), rng.normal(0.4, 1.0, 30)).contains(0.4)


def _odds(rng: np.random.Generator) -> bool:
    wins = int(np.clip(rng.binomial(200, 0.6), 1, 199))
    return matched_odds_ratio(200 - wins, wins).contains(1.5)


def _kappa(weights: str | None) -> Trial:
    # Both raters see the truth (uniform on 3) and err to a uniform label with chance 0.3: κ = 0.7² = 0.49,
    # weighted or not, since errors are independent of everything.
    def trial(rng: np.random.Generator) -> bool:
        truth = rng.integers(0, 3, 200)
        a, b = (np.where(rng.random(200) < 0.7, truth, rng.integers(0, 3, 200)) for _ in range(2))
        return cohen_kappa(a, b, weights=weights, n_resamples=1_000).contains(0.49)

    return trial


def _raters(rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    truth = rng.integers(0, 3, 150)
    return np.where(rng.random((4, 150)) < 0.7, truth, rng.integers(0, 3, (4, 150)))


def _fleiss(rng: np.random.Generator) -> bool:
    ratings = _raters(rng)
    table = np.stack([(ratings == label).sum(axis=0) for label in range(3)], axis=1)
    return fleiss_kappa(table, n_resamples=1_000).contains(0.49)


def _alpha(level: str) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        return krippendorff_alpha(_raters(rng), level=level, n_resamples=1_000).contains(0.49)

    return trial


def _ppi(labels: int) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        n = labels + 1000
        truth = rng.random(n) < 0.7
        judge = np.where(truth, rng.random(n) < 0.9, rng.random(n) < 0.25)
        return ppi_mean(truth[:labels], judge[:labels], judge[labels:]).contains(0.7)

    return trial


def _ppi_difference(labels: int, *, wrong: float, favour: float) -> Trial:
    """Passes of two systems at 60 and 65 %; the judge errs on a share, and likes the candidate's failures."""

    def trial(rng: np.random.Generator) -> bool:
        human = (rng.random((2, 1000)) < [[0.6], [0.65]]).astype(np.float64)
        judge = np.where(rng.random((2, 1000)) < wrong, 1.0 - human, human)
        judge[1] = np.where((judge[1] == 0.0) & (rng.random(1000) < favour), 1.0, judge[1])
        return ppi_difference(
            human_base=human[0, :labels],
            human_candidate=human[1, :labels],
            judge_base_on_human=judge[0, :labels],
            judge_candidate_on_human=judge[1, :labels],
            judge_base_on_rest=judge[0, labels:],
            judge_candidate_on_rest=judge[1, labels:],
        ).contains(0.05)

    return trial


def _rogan_gladen(rng: np.random.Generator) -> bool:
    tp, tn = int(rng.binomial(60, 0.9)), int(rng.binomial(40, 0.75))
    return rogan_gladen(
        positives=int(rng.binomial(1000, 0.7 * 0.9 + 0.3 * 0.25)),
        n=1000,
        true_positives=tp,
        false_negatives=60 - tp,
        true_negatives=tn,
        false_positives=40 - tn,
    ).contains(0.7)


def _bradley_terry(rng: np.random.Generator) -> bool:
    strengths = np.array([0.6, 0.2, -0.2, -0.6])
    outcomes = []
    for _ in range(300):
        i, j = rng.choice(4, size=2, replace=False)
        weights = np.array([np.exp(strengths[i]), np.exp(strengths[j]), 0.5])
        outcome = rng.choice([1.0, 0.0, 0.5], p=weights / weights.sum())
        outcomes.append((f"m{i}", f"m{j}", float(outcome)))
    ranking = bradley_terry(outcomes)
    return next(entry for entry in ranking.contestants if entry.name == "m0").strength.contains(0.6)


def _sequence(rng: np.random.Generator) -> bool:
    found = confidence_sequence((rng.random(300) < 0.8).astype(np.float64))
    return bool(((np.array(found.ci_lower) <= 0.8) & (np.array(found.ci_upper) >= 0.8)).all())


OTHERS = [
    Case(
        "paired_difference",
        "100 pairs of passes and failures, 10 % wins, 5 % losses",
        _paired_binary(100, 0.1, 0.05),
    ),
    Case(
        "paired_difference", "1,000 pairs, 3.75 % wins, 6.25 % losses", _paired_binary(1000, 0.0375, 0.0625)
    ),
    Case(
        "paired_difference",
        "20 problems × 5 repeats, passes and failures",
        _paired_groups(20, 5, graded=False),
    ),
    Case("paired_difference", "20 problems × 5 repeats, graded", _paired_groups(20, 5, graded=True)),
    Case(
        "paired_difference",
        "100 problems × 3 repeats, passes and failures",
        _paired_groups(100, 3, graded=False),
    ),
    Case("non_inferiority", "one-sided bound, 500 pairs, 4 % wins, 6 % losses", _non_inferiority),
    Case("bootstrap_ci(statistic='median')", "101 normal values", _median),
    Case(
        "repeats_interval",
        "20 fixed problems of mixed difficulty × 10",
        _repeats((0.2, 0.5, 0.7, 0.9) * 5, 10),
    ),
    Case("repeats_interval", "20 fixed problems × 5, all at 0.99", _repeats((0.99,) * 20, 5), at_most=1.0),
    Case("pass_at_k_interval", "100 problems × 5 attempts, k = 2", lambda rng: _passes(rng, every=False)),
    Case("pass_hat_k_interval", "100 problems × 5 attempts, k = 2", lambda rng: _passes(rng, every=True)),
    Case("cohens_d_paired", "30 normal differences, d = 0.4", _effect),
    Case("matched_odds_ratio", "200 discordant pairs, odds 1.5", _odds),
    Case("cohen_kappa", "200 items, κ = 0.49", _kappa(None), trials_share=0.5),
    Case("cohen_kappa(weights='quadratic')", "200 items, κ = 0.49", _kappa("quadratic"), trials_share=0.5),
    Case("fleiss_kappa", "150 items, 4 raters, κ = 0.49", _fleiss, trials_share=0.5),
    Case(
        "krippendorff_alpha(level='nominal')",
        "150 units, 4 raters, α = 0.49",
        _alpha("nominal"),
        trials_share=0.5,
    ),
    Case(
        "krippendorff_alpha(level='ordinal')",
        "150 units, 4 raters, α = 0.49",
        _alpha("ordinal"),
        trials_share=0.5,
    ),
    Case(
        "krippendorff_alpha(level='interval')",
        "150 units, 4 raters, α = 0.49",
        _alpha("interval"),
        trials_share=0.5,
    ),
    Case("ppi_mean", "30 human labels, 1,000 judged", _ppi(30)),
    Case("ppi_mean", "100 human labels, 1,000 judged", _ppi(100)),
    Case(
        "ppi_difference",
        "30 labels, 1,000 judged, 10 % wrong",
        _ppi_difference(30, wrong=0.1, favour=0.0),
    ),
    Case(
        "ppi_difference",
        "30 labels, 1,000 judged, 1 % wrong",
        _ppi_difference(30, wrong=0.01, favour=0.0),
        at_most=1.0,
    ),
    Case(
        "ppi_difference",
        "100 labels, 1,000 judged, half of the candidate's failures passed",
        _ppi_difference(100, wrong=0.1, favour=0.5),
    ),
    Case("rogan_gladen", "100 human labels, 1,000 judged", _rogan_gladen),
    Case("bradley_terry", "4 contestants, 300 games with ties", _bradley_terry, trials_share=0.25),
    Case(
        "confidence_sequence", "all of 300 looks at once, mean 0.8", _sequence, at_most=1.0, trials_share=0.25
    ),
]
