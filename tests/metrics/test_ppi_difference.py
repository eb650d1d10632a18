"""The judge-corrected difference of two systems: formula, symmetry, a biased judge, few labels."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import paired_difference, ppi_difference, ppi_mean

NAMES = (
    "human_base",
    "human_candidate",
    "judge_base_on_human",
    "judge_candidate_on_human",
    "judge_base_on_rest",
    "judge_candidate_on_rest",
)


def _columns(rng: np.random.Generator, labels: int, rest: int, *, favour: float = 0.0) -> dict[str, Any]:
    """Passes of two systems; the judge errs on a tenth, and passes a share `favour` of the candidate's failures."""
    size = labels + rest
    easy = rng.random(size)
    human = [(easy + rng.normal(0, 0.3, size) > level).astype(float) for level in (0.5, 0.45)]
    judge = [np.where(rng.random(size) < 0.1, 1 - column, column) for column in human]
    judge[1] = np.where((judge[1] == 0) & (rng.random(size) < favour), 1.0, judge[1])
    parts = [human[0][:labels], human[1][:labels], judge[0][:labels], judge[1][:labels]]
    return dict(zip(NAMES, [*parts, judge[0][labels:], judge[1][labels:]], strict=True))


def test_the_formula() -> None:
    """λ = 1: mean of the judge's difference on the rest, plus the mean of human minus judge on the labelled items.

    y = 1 0 −0.5 0.5 1 −1, f = 0.5 0.5 −0.5 0 1 −0.5: y − f = 0.5 −0.5 0 0.5 0 −0.5 has mean 0 and variance 0.2;
    the rest has mean 0.25 and variance 0.125. More than four differ? No: four do, so one more of ±1 is added to each
    side: variance of 0.5 −0.5 0 0.5 0 −0.5 1 −1 is (4 · 0.25 + 2)/7.
    """
    y, f = np.array([1, 0, -0.5, 0.5, 1, -1]), np.array([0.5, 0.5, -0.5, 0, 1, -0.5])
    rest = np.array([0.0, 0.5, 0.0, 0.5, -0.25, 0.75])
    zero = np.zeros(6)
    found = ppi_difference(
        human_base=zero,
        human_candidate=y,
        judge_base_on_human=zero,
        judge_candidate_on_human=f,
        judge_base_on_rest=zero,
        judge_candidate_on_rest=rest,
        power_tuned=False,
    )
    assert found.value == pytest.approx(0.25)
    variance = 3 / 7 / 8 + float(rest.var(ddof=1)) / 6
    assert found.standard_error == pytest.approx(variance**0.5)
    assert (found.method, found.n) == ("ppi", 12)


def test_the_tuned_weight_enters_squared() -> None:
    """value = λ·m + mean(y − λf) and variance = jackknife + λ²·var(rest)/N, with λ recomputed here."""
    rng = np.random.default_rng(1)
    columns = _columns(rng, 40, 60)
    found = ppi_difference(**columns)
    y = columns["human_candidate"] - columns["human_base"]
    f = columns["judge_candidate_on_human"] - columns["judge_base_on_human"]
    rest = columns["judge_candidate_on_rest"] - columns["judge_base_on_rest"]

    def estimate(y: Any, f: Any, labels: int) -> tuple[float, float]:
        spread = np.concatenate((columns_f, rest)).var(ddof=1)
        weight = float(np.clip(np.cov(y, f)[0, 1] / ((1 + labels / 60) * spread), 0, 1))
        return weight, weight * rest.mean() + (y - weight * f).mean()

    columns_f = f
    assert np.count_nonzero(y != f) > 4
    weight, value = estimate(y, f, 40)
    assert 0.1 < weight < 0.9
    left_out = [estimate(np.delete(y, i), np.delete(f, i), 40)[1] for i in range(40)]
    jackknife = 39 / 40 * sum((one - np.mean(left_out)) ** 2 for one in left_out)
    assert found.value == pytest.approx(value)
    judge_part = weight**2 * rest.var(ddof=1) / 60
    assert found.standard_error == pytest.approx((jackknife + judge_part) ** 0.5)
    share = jackknife / (jackknife + judge_part)
    df = 1 / (share**2 / 39 + (1 - share) ** 2 / 59)
    half = scipy.stats.t.ppf(0.975, df) * (jackknife + judge_part) ** 0.5
    assert (found.ci_lower, found.ci_upper) == pytest.approx((value - half, value + half))


def test_swapping_the_systems_negates() -> None:
    columns = _columns(np.random.default_rng(2), 50, 300, favour=0.2)
    swapped = {
        name: columns[name.replace("base", "X").replace("candidate", "base").replace("X", "candidate")]
        for name in NAMES
    }
    one, two = ppi_difference(**columns), ppi_difference(**swapped)
    assert (one.value, one.ci_lower, one.ci_upper) == pytest.approx(
        (-two.value, -two.ci_upper, -two.ci_lower)
    )


def test_a_judge_that_favours_the_candidate_is_corrected() -> None:
    """The judge passes half of the candidate's failures: alone it claims 20 points, people see 5."""
    columns = _columns(np.random.default_rng(3), 300, 3000, favour=0.5)
    judge = paired_difference(
        np.concatenate((columns["judge_base_on_human"], columns["judge_base_on_rest"])),
        np.concatenate((columns["judge_candidate_on_human"], columns["judge_candidate_on_rest"])),
    )
    found = ppi_difference(**columns)
    assert judge.ci_lower > 0.15
    assert found.contains(0.04)
    assert found.ci_upper < 0.15


def test_unlabelled_items_narrow_the_interval() -> None:
    columns = _columns(np.random.default_rng(4), 100, 2000)
    alone = paired_difference(columns["human_base"], columns["human_candidate"])
    found = ppi_difference(**columns)
    assert found.ci_upper - found.ci_lower < 0.9 * (alone.ci_upper - alone.ci_lower)


def test_agreement_on_few_labels_is_no_proof() -> None:
    """Thirty items on which people and judge agree: the interval is as wide as with one more of each kind."""
    same = np.array([1.0] * 20 + [0.0] * 10)
    rest = np.array([1.0, 0.0] * 500)
    found = ppi_difference(
        human_base=same,
        human_candidate=same,
        judge_base_on_human=same,
        judge_candidate_on_human=same,
        judge_base_on_rest=rest,
        judge_candidate_on_rest=rest[::-1],
    )
    assert found.ci_upper - found.ci_lower > 0.1
    assert -1.0 <= found.ci_lower < 0.0 < found.ci_upper <= 1.0


def test_a_judge_that_sees_no_difference_leaves_the_humans() -> None:
    columns = _columns(np.random.default_rng(5), 40, 100)
    for name in NAMES[2:]:
        columns[name] = np.ones_like(columns[name])
    found = ppi_difference(**columns)
    alone = paired_difference(columns["human_base"], columns["human_candidate"])
    assert found.method == f"ppi++/{alone.method}"
    assert (found.value, found.ci_lower) == pytest.approx((alone.value, alone.ci_lower))
    assert found.n == 140


def test_scores_on_another_scale() -> None:
    """Ten times the scores, ten times the interval; with an unknown scale no pair is added and no end is cut."""
    columns = _columns(np.random.default_rng(6), 30, 200)
    plain = ppi_difference(**columns)
    larger = ppi_difference(**{name: 10 * column for name, column in columns.items()}, scale=10.0)
    assert larger.value == pytest.approx(10 * plain.value)
    assert larger.ci_lower == pytest.approx(10 * plain.ci_lower)
    free = ppi_difference(**columns, scale=None)
    zero = np.zeros(30)
    same = ppi_mean(
        columns["human_candidate"] - columns["human_base"] + 5,
        columns["judge_candidate_on_human"] - columns["judge_base_on_human"] + zero,
        columns["judge_candidate_on_rest"] - columns["judge_base_on_rest"],
    )
    assert free.value == pytest.approx(same.value - 5)
    assert free.ci_upper == pytest.approx(same.ci_upper - 5)


@pytest.mark.parametrize("name", NAMES)
def test_columns_that_do_not_fit_are_named(name: str) -> None:
    columns = _columns(np.random.default_rng(7), 20, 50)
    with pytest.raises(ValueError, match="must have as many values"):
        ppi_difference(**{**columns, name: columns[name][:-1]})
    with pytest.raises(ValueError, match=name):
        ppi_difference(**{**columns, name: ["x"]})


def test_a_bad_scale() -> None:
    with pytest.raises(ValueError, match="scale"):
        ppi_difference(**_columns(np.random.default_rng(8), 20, 50), scale=0.0)
