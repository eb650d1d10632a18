"""Calibration: agreement by hand, conclusions, and the coverage of the corrected mean."""

import numpy as np
import pytest

from evenhand.core.errors import InputError
from evenhand.judging.calibration import Rated, calibrate, corrected_means


def binary(tp: int, fn: int, tn: int, fp: int, rest_pass: int = 0, rest_fail: int = 0) -> list[Rated]:
    return [
        *[Rated(judge=1.0, human=1.0)] * tp,
        *[Rated(judge=0.0, human=1.0)] * fn,
        *[Rated(judge=0.0, human=0.0)] * tn,
        *[Rated(judge=1.0, human=0.0)] * fp,
        *[Rated(judge=1.0)] * rest_pass,
        *[Rated(judge=0.0)] * rest_fail,
    ]


def test_a_table_worked_by_hand() -> None:
    # Agreement (40+30)/100 = 0.7; chance 0.5*0.6 + 0.5*0.4 = 0.5; kappa (0.7-0.5)/(1-0.5) = 0.4.
    found = calibrate(binary(40, 10, 30, 20, rest_pass=600, rest_fail=400))
    assert found.agreement.value == 0.7
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(0.4)
    assert found.sensitivity is not None
    assert found.specificity is not None
    assert (found.sensitivity.value, found.specificity.value) == (0.8, 0.6)
    assert found.labels == ["fail", "pass"]
    assert found.confusion == [[30, 20], [10, 40]]
    assert found.bias.value == pytest.approx(0.1)
    assert found.judge_only.value == pytest.approx(660 / 1100)
    assert found.human_only.value == 0.5
    # Rogan-Gladen: (0.6 + 0.6 - 1) / (0.8 + 0.6 - 1) = 0.5.
    assert found.rogan_gladen is not None
    assert found.rogan_gladen.value == pytest.approx(0.5)
    assert found.corrected.value == pytest.approx(0.5, abs=0.02)
    assert (found.items, found.labelled) == (1100, 100)
    assert found.trust == "corrected_only"
    assert "corrected mean" in found.sentence


@pytest.mark.parametrize(
    ("items", "trust"),
    [
        (binary(480, 5, 500, 6), "trusted"),
        (binary(40, 10, 30, 20), "corrected_only"),
        (binary(26, 24, 25, 25), "not_trusted"),
        (binary(10, 0, 10, 0), "too_few"),
        (binary(60, 1, 2, 0), "too_few"),
        (binary(50, 0, 0, 0), "too_few"),
    ],
)
def test_the_conclusion(items: list[Rated], trust: str) -> None:
    found = calibrate(items)
    assert found.trust == trust
    assert found.sentence.endswith(".")


def test_missing_judge_scores_are_counted_and_left_out() -> None:
    found = calibrate([*binary(20, 2, 20, 2), Rated(judge=None, human=1.0), Rated(judge=None)])
    assert (found.items, found.labelled, found.no_judge_score) == (46, 44, 2)


def test_numbers_and_thresholds() -> None:
    rng = np.random.default_rng(4)
    human = rng.integers(1, 6, 200).astype(float)
    judge = np.clip(human + rng.integers(-1, 2, 200), 1, 5).astype(float)
    items = [Rated(judge=j, human=h) for h, j in zip(human, judge, strict=True)]
    numeric = calibrate(items)
    assert numeric.scale == "numeric"
    assert numeric.sensitivity is None
    assert numeric.rogan_gladen is None
    assert numeric.labels == ["1.0", "2.0", "3.0", "4.0", "5.0"]
    assert numeric.kappa is not None
    assert numeric.kappa.value > 0.7
    passes = calibrate(items, threshold=3.0)
    assert passes.scale == "binary"
    assert passes.human_only.value == pytest.approx(float((human >= 3).mean()))


def test_labels() -> None:
    items = [
        Rated(judge=j, human=h)
        for h, j in [("CORRECT", "CORRECT"), ("INCORRECT", "CORRECT"), ("NOT_ATTEMPTED", "INCORRECT")] * 20
    ]
    found = calibrate(items, positive=["CORRECT"])
    assert found.scale == "label"
    assert found.labels == ["CORRECT", "INCORRECT", "NOT_ATTEMPTED"]
    assert found.confusion == [[20, 0, 0], [20, 0, 0], [0, 20, 0]]
    assert found.judge_only.value == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="--positive"):
        calibrate(items)
    with pytest.raises(InputError, match="no score is 'RIGHT'"):
        calibrate(items, positive=["RIGHT"])


def test_what_cannot_be_calibrated() -> None:
    with pytest.raises(InputError, match="at least 2"):
        calibrate([Rated(judge=1.0), Rated(judge=0.0, human=1.0)])
    with pytest.raises(InputError, match="cannot be compared"):
        calibrate([Rated(judge=1.0, human="yes")] * 3, positive=["yes"])


def simulate(runs: int, seed: int) -> dict[str, float]:
    """Coverage of the truth by each interval, for a judge that passes too much.

    Truth 0.6; the judge passes 95 % of the good and 30 % of the bad answers, so its mean tends to
    0.6 * 0.95 + 0.4 * 0.3 = 0.69. 200 of 2,000 items are labelled.
    """
    rng = np.random.default_rng(seed)
    truth, sensitivity, pass_bad, n, labelled = 0.6, 0.95, 0.3, 2000, 200
    hits = {"judge only": 0, "ppi++": 0, "rogan-gladen": 0}
    for _ in range(runs):
        good = rng.random(n) < truth
        judge = (rng.random(n) < np.where(good, sensitivity, pass_bad)).astype(float)
        human = good[:labelled].astype(float)
        few, rest = judge[:labelled], judge[labelled:]
        sides = {
            "true_positives": int((human * few).sum()),
            "false_negatives": int((human * (1 - few)).sum()),
            "true_negatives": int(((1 - human) * (1 - few)).sum()),
            "false_positives": int(((1 - human) * few).sum()),
        }
        means = corrected_means(human, few, rest, sides=sides)
        for name, interval in (
            ("judge only", means.judge_only),
            ("ppi++", means.corrected),
            ("rogan-gladen", means.rogan_gladen),
        ):
            assert interval is not None
            hits[name] += interval.ci_lower <= truth <= interval.ci_upper
    return {name: count / runs for name, count in hits.items()}


def test_the_corrected_interval_covers_where_the_naive_one_does_not() -> None:
    coverage = simulate(2000, seed=20260221)
    print(coverage)
    assert 0.93 <= coverage["ppi++"] <= 0.97
    assert 0.93 <= coverage["rogan-gladen"] <= 0.97
    assert coverage["judge only"] < 0.5
