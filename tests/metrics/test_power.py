"""Power and minimum detectable effects, against the noncentral t, R's answers and simulation."""

import numpy as np
import pytest
import scipy.stats

from evenhand.metrics import (
    VarianceSplit,
    clustered_minimum_detectable_effect,
    clustered_power_of,
    minimum_detectable_effect,
    permutation_test,
    power_of,
    required_items,
    required_n,
    required_repeats,
)


def test_as_r_says() -> None:
    """R: power.t.test(n=20, delta=1, sd=1, type="paired") → 0.9886; power.t.test(power=.90, delta=1, sd=1,
    type="one.sample", alternative="one.sided") → n = 10.08."""
    assert power_of(1.0, 1.0, 20) == pytest.approx(0.9886, abs=5e-5)
    assert required_n(1.0, 1.0, power=0.9, alternative="greater") == 11


@pytest.mark.parametrize("n", [2, 5, 50, 5000])
def test_power_is_the_tail_of_the_noncentral_t(n: int) -> None:
    shift = 0.3 * n**0.5
    edge = scipy.stats.t(n - 1).ppf(0.975)
    law = scipy.stats.nct(n - 1, shift)
    expected = 1.0 if n == 5000 else law.sf(edge) + law.cdf(-edge)  # the law itself gives up that far out
    assert power_of(0.3, 1.0, n) == pytest.approx(expected, rel=1e-6)


def test_a_hundred_discordant_pairs_in_a_thousand() -> None:
    """100 of 1,000 items differ and the true drop is 2.5 points: 37.5 wins and 62.5 losses expected.

    sd² = 0.1 − 0.025², so the standard error is 0.997 points, and a one-sided test at 5 % sees the drop with
    Φ(2.507 − 1.645) = 81 %. Simulated with the exact sign-flip test.
    """
    sd = (0.1 - 0.025**2) ** 0.5
    predicted = power_of(-0.025, sd, 1000, alternative="less")
    assert predicted == pytest.approx(0.806, abs=0.003)
    assert minimum_detectable_effect(sd, 1000, alternative="less") == pytest.approx(0.0248, abs=1e-4)
    rng = np.random.default_rng(7)
    seen = 0
    for wins, losses, same in rng.multinomial(1000, [0.0375, 0.0625, 0.9], size=600):
        differences = np.repeat([1.0, -1.0, 0.0], [wins, losses, same])
        seen += permutation_test(differences, alternative="less").p_value <= 0.05
    assert seen / 600 == pytest.approx(predicted, abs=4 * (0.2 * 0.8 / 600) ** 0.5)


def test_mde_power_and_n_agree_with_each_other() -> None:
    for side in ("two-sided", "greater"):
        effect = minimum_detectable_effect(0.4, 250, power=0.9, alternative=side)
        assert power_of(effect, 0.4, 250, alternative=side) == pytest.approx(0.9)
        assert required_n(effect * 1.0001, 0.4, power=0.9, alternative=side) == 250


def test_repeats_shrink_only_the_part_within_problems() -> None:
    split = VarianceSplit(within=0.2, between=0.01, total=0.21, n_problems=50, n_values=250)
    # with 5 repeats a problem's mean difference has variance 0.01 + 0.2/5 = 0.05
    assert clustered_minimum_detectable_effect(split, items=50, repeats=5) == pytest.approx(
        minimum_detectable_effect(0.05**0.5, 50)
    )
    assert required_items(0.1, split, repeats=5) == required_n(0.1, 0.05**0.5)
    repeats = required_repeats(0.1, split, items=50)
    assert repeats is not None
    assert clustered_power_of(0.1, split, items=50, repeats=repeats) >= 0.8
    assert clustered_power_of(0.1, split, items=50, repeats=repeats - 1) < 0.8
    assert required_repeats(0.01, split, items=50) is None


def test_impossible_designs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^sd:"):
        power_of(0.1, -1.0, 10)
    with pytest.raises(ValueError, match=r"^n:"):
        power_of(0.1, 1.0, 1)
    with pytest.raises(ValueError, match=r"^effect:"):
        required_n(0.0, 1.0)
    with pytest.raises(ValueError, match=r"^effect:"):
        required_n(1e-9, 1.0)
    with pytest.raises(ValueError, match=r"^power:"):
        minimum_detectable_effect(1.0, 10, power=0.01)
    with pytest.raises(ValueError, match=r"^alternative:"):
        minimum_detectable_effect(1.0, 10, alternative="both")  # type: ignore[arg-type]
