"""What holds for all data: order, scale, symmetry, levels; and what bad input gets."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evenhand.metrics
from evenhand.core.lazy_names import public_names
from evenhand.metrics import (
    bootstrap_ci,
    cohen_kappa,
    cohens_d_paired,
    confidence_sequence,
    holm,
    mcnemar,
    mean_interval,
    non_inferiority,
    paired_difference,
    paired_sequential_test,
    permutation_test,
    ppi_mean,
    proportion_interval,
    repeats_interval,
    sign_test,
    variance_split,
)

SCORE = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1).map(lambda x: round(x, 3)))
SCORES = st.lists(SCORE, min_size=2, max_size=40)
METHODS = st.sampled_from(["auto", "t", "percentile", "bca"])


@given(SCORES, METHODS, st.randoms())
def test_order_does_not_change_a_bit(scores: list[float], method: str, random: Any) -> None:
    shuffled = scores[:]
    random.shuffle(shuffled)
    assert mean_interval(scores, method=method) == mean_interval(shuffled, method=method)


@given(SCORES, st.data(), METHODS, st.sampled_from(["mean", "median"]))
@settings(max_examples=50)
def test_order_of_groups_does_not_change_a_bit(
    scores: list[float], data: st.DataObject, method: str, statistic: str
) -> None:
    groups = data.draw(st.lists(st.integers(0, 6), min_size=len(scores), max_size=len(scores)))
    assume(len(set(groups)) > 1)
    pairs = data.draw(st.permutations(list(zip(scores, groups, strict=True))))
    moved, codes = [list(column) for column in zip(*pairs, strict=True)]
    renamed = [f"problem {6 - code}" for code in codes]
    assert mean_interval(scores, groups=groups, method=method) == mean_interval(
        moved, groups=renamed, method=method
    )
    if statistic == "median":
        assert bootstrap_ci(scores, groups=groups, statistic="median", n_bootstrap=200) == bootstrap_ci(
            moved, groups=renamed, statistic="median", n_bootstrap=200
        )
    assert permutation_test(scores, groups=groups) == permutation_test(moved, groups=renamed)


@given(SCORES, st.data(), st.sampled_from(["mean", "median"]), METHODS)
@settings(max_examples=150)
def test_swapping_the_arms_negates(
    base: list[float], data: st.DataObject, statistic: str, method: str
) -> None:
    candidate = data.draw(st.lists(SCORE, min_size=len(base), max_size=len(base)))
    assume(not (statistic == "median" and method == "t"))
    options: dict[str, Any] = {"statistic": statistic, "method": method, "n_resamples": 300}
    there, back = paired_difference(base, candidate, **options), paired_difference(candidate, base, **options)
    assert (back.value, back.ci_lower, back.ci_upper) == (-there.value, -there.ci_upper, -there.ci_lower)
    one, other = (
        permutation_test(np.subtract(candidate, base)),
        permutation_test(np.subtract(base, candidate)),
    )
    assert one.p_value == other.p_value


@given(SCORES, METHODS, st.booleans())
def test_higher_confidence_is_wider(scores: list[float], method: str, grouped: bool) -> None:
    groups = [i // 2 for i in range(len(scores))] if grouped and len(scores) > 3 else None
    intervals = [
        mean_interval(scores, groups=groups, confidence_level=level, method=method)
        for level in (0.5, 0.8, 0.95, 0.99)
    ]
    for narrow, wide in itertools.pairwise(intervals):
        assert wide.ci_lower <= narrow.ci_lower + 1e-12
        assert narrow.ci_upper <= wide.ci_upper + 1e-12


@given(SCORES, st.booleans())
def test_the_mirrored_scores_have_the_mirrored_interval(scores: list[float], grouped: bool) -> None:
    groups = [i // 3 for i in range(len(scores))] if grouped and len(scores) > 3 else None
    there = mean_interval(scores, groups=groups)
    back = mean_interval([1.0 - score for score in scores], groups=groups)
    assert back.method == there.method
    assert (back.ci_lower, back.ci_upper) == pytest.approx(
        (1.0 - there.ci_upper, 1.0 - there.ci_lower), abs=1e-9
    )


@given(SCORES, METHODS)
def test_the_estimate_lies_inside(scores: list[float], method: str) -> None:
    found = mean_interval(scores, method=method)
    slack = 1e-12
    assert found.value == pytest.approx(math.fsum(scores) / len(scores), abs=1e-12)
    if method in ("auto", "t"):
        assert found.ci_lower - slack <= found.value <= found.ci_upper + slack


@given(
    st.integers(1, 400), st.data(), st.sampled_from(["auto", "wilson", "clopper_pearson", "beta_binomial"])
)
def test_proportions_stay_between_0_and_1(n: int, data: st.DataObject, method: str) -> None:
    x = data.draw(st.integers(0, n))
    found = proportion_interval(x, n, method=method)
    assert 0.0 <= found.ci_lower <= x / n <= found.ci_upper <= 1.0
    mirrored = proportion_interval(n - x, n, method=method)
    assert mirrored.ci_lower == pytest.approx(1.0 - found.ci_upper, abs=1e-9)


@given(SCORES)
def test_seeds_repeat(scores: list[float]) -> None:
    assert bootstrap_ci(scores, seed=3) == bootstrap_ci(scores, seed=3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.randoms())
def test_holm_is_monotone_and_order_free(p_values: list[float], random: Any) -> None:
    adjusted = holm(p_values)
    assert (adjusted >= np.array(p_values) - 1e-15).all()
    order = list(range(len(p_values)))
    random.shuffle(order)
    assert holm([p_values[i] for i in order]).tolist() == adjusted[order].tolist()


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_swaps(losses: int, wins: int) -> None:
    assert mcnemar(losses, wins).p_value == mcnemar(wins, losses).p_value
    assert (
        mcnemar(losses, wins, alternative="less").p_value
        == mcnemar(wins, losses, alternative="greater").p_value
    )
    assert mcnemar(losses, wins, mid_p=True).p_value <= mcnemar(losses, wins).p_value


ODD = st.sampled_from([0.0, 1.0, 0.5, -1.0, 3.0, 0.1 + 0.2, 1e-9, 1e-200, 5e-324, 1e50, -1e50, 1e60])


@given(st.data(), st.integers(1, 12))
@settings(max_examples=150)
def test_odd_numbers_give_finite_results_or_are_refused(data: st.DataObject, n: int) -> None:
    """No warning, no NaN, no infinity: huge, tiny and denormal values included."""
    x, y = (data.draw(st.lists(ODD, min_size=n, max_size=n)) for _ in range(2))
    groups = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    calls: list[Callable[[], Any]] = [
        lambda: mean_interval(x),
        lambda: mean_interval(x, groups=groups),
        lambda: bootstrap_ci(x, n_bootstrap=50, method="bca"),
        lambda: bootstrap_ci(x, n_bootstrap=50, groups=groups),
        lambda: bootstrap_ci(x, n_bootstrap=50, statistic="median", method="bca"),
        lambda: paired_difference(x, y),
        lambda: paired_difference(x, y, groups=groups),
        lambda: permutation_test(x, groups=groups),
        lambda: cohens_d_paired(x, y),
        lambda: non_inferiority(x, 0.1),
        lambda: repeats_interval([x, y]),
        lambda: ppi_mean(x, y, x),
    ]
    for call in calls:
        try:
            found = call()
        except ValueError:
            continue
        for name in ("value", "ci_lower", "ci_upper", "p_value"):
            assert math.isfinite(getattr(found, name, 0.0))


NAN, INF = float("nan"), float("inf")
BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: mean_interval([]), "scores"),
    (lambda: mean_interval([1.0, NAN]), "scores"),
    (lambda: mean_interval([1.0, INF]), "scores"),
    (lambda: mean_interval([0.5]), "scores"),
    (lambda: mean_interval(["a", "b"]), "scores"),
    (lambda: mean_interval([[1.0, 0.0]]), "scores"),
    (lambda: mean_interval([1.0, 0.0], method="magic"), "method"),
    (lambda: mean_interval([1.0, 0.5], method="wilson"), "method"),
    (lambda: mean_interval([1.0, 0.0, 1.0], groups=["a", "b", "a"], method="wilson"), "method"),
    (lambda: mean_interval([1.0, 0.0], groups=["a"]), "groups"),
    (lambda: mean_interval([1.0, 0.0], groups=["a", "a"]), "groups"),
    (lambda: mean_interval([1.0, 0.0], groups=["a", None]), "groups"),
    (lambda: mean_interval([1.0, 0.0], confidence_level=1.0), "confidence_level"),
    (lambda: mean_interval([1.0, 0.0], confidence_level=95), "confidence_level"),
    (lambda: bootstrap_ci([]), "scores"),
    (lambda: bootstrap_ci([1.0]), "scores"),
    (lambda: bootstrap_ci([1.0, NAN]), "scores"),
    (lambda: bootstrap_ci([1.0, 0.0], confidence=0.0), "confidence"),
    (lambda: bootstrap_ci([1.0, 0.0], n_bootstrap=0), "n_bootstrap"),
    (lambda: bootstrap_ci([1.0, 0.0], seed=-1), "seed"),
    (lambda: bootstrap_ci([1.0, 0.0], statistic="mode"), "statistic"),
    (lambda: bootstrap_ci([1.0, 0.0], method="basic"), "method"),
    (lambda: proportion_interval(6, 5), "successes"),
    (lambda: proportion_interval(-1, 5), "successes"),
    (lambda: proportion_interval(0, 0), "n"),
    (lambda: proportion_interval(1, 2, method="wald"), "method"),
    (lambda: paired_difference([], []), "base"),
    (lambda: paired_difference([1.0, 0.0], [1.0]), "candidate"),
    (lambda: paired_difference([1.0, 0.0], [1.0, NAN]), "candidate"),
    (lambda: paired_difference([1.0, 0.0], [1.0, 1.0], groups=[1]), "groups"),
    (lambda: paired_difference([1.0, 0.0], [1.0, 1.0], method="x"), "method"),
    (lambda: paired_difference([1.0, 0.0], [1.0, 1.0], statistic="x"), "statistic"),
    (lambda: permutation_test([]), "differences"),
    (lambda: permutation_test([NAN]), "differences"),
    (lambda: permutation_test([1.0], alternative="up"), "alternative"),  # type: ignore[arg-type]
    (lambda: permutation_test([1.0, 2.0], n_resamples=0), "n_resamples"),
    (lambda: sign_test([]), "differences"),
    (lambda: mcnemar(-1, 2), "losses"),
    (lambda: mcnemar(1, 2.5), "wins"),  # type: ignore[arg-type]
    (lambda: non_inferiority([0.1], 0.1), "differences"),
    (lambda: cohens_d_paired([1.0], [2.0]), "base"),
    (lambda: repeats_interval({}), "values_by_problem"),
    (lambda: variance_split([[1.0], [0.0]]), "values_by_problem"),
    (lambda: ppi_mean([1.0], [1.0], [1.0, 0.0]), "human"),
    (lambda: ppi_mean([1.0, 0.0], [1.0, 0.0], []), "judge_on_rest"),
    (lambda: cohen_kappa([1, None], [1, 2]), "a"),
    (lambda: confidence_sequence([]), "values"),
    (lambda: confidence_sequence([NAN]), "values"),
    (lambda: paired_sequential_test([NAN]), "differences"),
    (lambda: holm([]), "p_values"),
]


@pytest.mark.parametrize(("call", "named"), BAD)
def test_bad_input_is_a_value_error_that_names_the_argument(call: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=rf"^{named}:"):
        call()


def test_every_public_name_loads_and_says_what_it_does() -> None:
    for name in public_names(evenhand.metrics):
        assert getattr(evenhand.metrics, name).__doc__
    with pytest.raises(AttributeError, match="magic"):
        evenhand.metrics.magic  # type: ignore[attr-defined]  # noqa: B018  the lookup is the test
