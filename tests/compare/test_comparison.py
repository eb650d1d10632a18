"""Two runs compared: numbers by hand, symmetry, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.runs import run, single

from evenhand.compare import Options, compare_runs
from evenhand.core.errors import Incomparable, OptionError
from evenhand.results import BenchmarkSummary, Bundle, RunResults

SCORES = st.sampled_from([0.0, 0.5, 1.0])


def pair_of(lost: int, won: int, both: int, neither: int) -> tuple[RunResults, RunResults]:
    base = [1.0] * lost + [0.0] * won + [1.0] * both + [0.0] * neither
    candidate = [0.0] * lost + [1.0] * won + [1.0] * both + [0.0] * neither
    return run(single(base), path="base"), run(single(candidate), path="candidate")


def test_numbers_by_hand() -> None:
    """9 lost, 1 won of 40. Delta −8/40. McNemar: P(X ≤ 1 | 10, ½) = (1 + 10)/1024, two-sided twice that."""
    found = compare_runs(*pair_of(9, 1, 20, 10))
    assert found.delta.value == pytest.approx(-0.2)
    assert found.test.method == "exact McNemar"
    assert found.test.p_value == pytest.approx(22 / 1024)
    assert found.p_drop == pytest.approx(11 / 1024)
    assert (found.improved, found.regressed, found.unchanged) == (1, 9, 30)
    assert (found.base.mean.value, found.candidate.mean.value) == (29 / 40, 21 / 40)
    deltas = np.array([-1.0] * 9 + [1.0] + [0.0] * 30)
    assert found.effect_size is not None
    assert found.effect_size.value == pytest.approx(deltas.mean() / deltas.std(ddof=1), rel=0.05)
    assert found.verdict.name == "BLOCK"
    assert [flip.problem_idx for flip in found.flips] == [*range(9), 9]


def test_a_tolerance_above_the_drop_turns_the_block_into_a_warning() -> None:
    found = compare_runs(*pair_of(9, 1, 20, 10), Options(max_drop=0.25))
    assert found.verdict.name == "WARN"
    assert "within the 25.0 points" in found.verdict.sentence


def test_equal_runs_of_some_size_pass() -> None:
    found = compare_runs(*pair_of(5, 5, 800, 190))
    assert found.verdict.name == "PASS"
    assert found.delta.value == 0.0


def test_few_problems_are_inconclusive_and_the_next_step_says_how_many_more() -> None:
    found = compare_runs(*pair_of(3, 2, 10, 5), Options(max_drop=0.01))
    assert found.verdict.name == "INCONCLUSIVE"
    assert (
        "more problems to see a 1.0 point drop, or to rule it out if nothing changed, with 80 % power"
        in found.verdict.next_step
    )
    assert any("only 20 problems" in words for words in found.caveats)


def test_repeats_do_not_pass_for_more_problems() -> None:
    """Ten problems copied to a hundred repeats each are still ten problems: the interval must not shrink."""
    base = {i: [float(i % 2)] for i in range(10)}
    candidate = {i: [float(i % 3 == 0)] for i in range(10)}
    one = compare_runs(run(base), run(candidate))
    many = compare_runs(
        run({i: v * 100 for i, v in base.items()}), run({i: v * 100 for i, v in candidate.items()})
    )
    assert many.delta.ci_lower == pytest.approx(one.delta.ci_lower)
    assert (many.pairs, many.problems) == (1000, 10)


def test_a_problem_that_passes_less_often_is_a_regression_although_some_repeat_passed() -> None:
    found = compare_runs(run({0: [1.0, 1.0], 1: [1.0, 1.0]}), run({0: [1.0, 0.0], 1: [1.0, 1.0]}))
    assert (found.regressed, found.unchanged) == (1, 1)
    assert found.flips[0].candidate == 0.5


@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=40))
def test_swapping_the_runs_mirrors_the_delta(pairs: list[tuple[float, float]]) -> None:
    left, right = run(single([a for a, _ in pairs])), run(single([b for _, b in pairs]))
    there, back = compare_runs(left, right), compare_runs(right, left)
    assert back.delta.value == pytest.approx(-there.delta.value)
    assert back.delta.ci_lower == pytest.approx(-there.delta.ci_upper)
    assert back.test.p_value == pytest.approx(there.test.p_value)
    assert (back.improved, back.regressed) == (there.regressed, there.improved)


def test_categories_are_corrected_together() -> None:
    """Category x: 6 lost of 6, two-sided p = 2/64; category y: nothing changed, p = 1. Holm: 2 × 2/64 and 1."""
    categories = {i: "x" if i < 6 else "y" for i in range(12)}
    base = run(single([1.0] * 12), category=categories)
    candidate = run(single([0.0] * 6 + [1.0] * 6), category=categories)
    found = {one.category: one for one in compare_runs(base, candidate).categories}
    assert found["x"].p_value == pytest.approx(2 / 64)
    assert found["x"].p_adjusted == pytest.approx(4 / 64)
    assert found["y"].p_adjusted == 1.0


@pytest.mark.parametrize(
    ("aspect", "words"),
    [
        ("dataset", "the dataset"),
        ("scorer", "the scorer"),
        ("judge", "the judge"),
    ],
)
def test_runs_that_measured_different_things_are_refused_unless_forced(aspect: str, words: str) -> None:
    base, candidate = (
        run(
            single([1.0, 0.0]),
            bundle=Bundle(benchmark=BenchmarkSummary(name="b"), hashes={aspect: digest * 64}),
        )
        for digest in "ab"
    )
    with pytest.raises(Incomparable, match=words):
        compare_runs(base, candidate)
    forced = compare_runs(base, candidate, Options(force=True))
    assert any(words in caveat for caveat in forced.caveats)


def test_what_was_changed_on_purpose_is_the_treatment_and_no_obstacle() -> None:
    """Model, prompt, system prompt and sampling may differ: they are listed."""
    configs = (
        {"model": {"id": "m1", "url": "u"}, "prompt": "Q: {q}", "sampling": {"temperature": 0.0, "seed": 1}},
        {"model": {"id": "m2", "url": "u"}, "prompt": "Ask {q}", "sampling": {"temperature": 1.0, "seed": 1}},
    )
    base, candidate = (
        run(
            single([1.0, 0.0]),
            bundle=Bundle(
                benchmark=BenchmarkSummary(name="b"),
                config={**config, "system_prompt": prompt},
                hashes={"prompt": digest * 64, "sampling": digest * 64, "scorer": "s"},
            ),
        )
        for config, prompt, digest in zip(configs, ("", "Be brief."), "ab", strict=True)
    )
    assert [str(change) for change in compare_runs(base, candidate).treatment] == [
        "model: m1 → m2",
        "prompt: Q: {q} → Ask {q}",
        "system prompt: not set → Be brief.",
        "temperature: 0.0 → 1.0",
    ]


def test_a_prompt_that_only_its_digest_tells_is_named_by_it() -> None:
    base, candidate = (
        run(
            single([1.0, 0.0]),
            bundle=Bundle(benchmark=BenchmarkSummary(name="b"), hashes={"prompt": digest * 64}),
        )
        for digest in "ab"
    )
    assert [str(change) for change in compare_runs(base, candidate).treatment] == [
        f"prompt: {'a' * 12} → {'b' * 12}"
    ]


def test_the_values_behind_a_difference_are_named() -> None:
    base, candidate = (
        run(
            single([1.0, 0.0]),
            bundle=Bundle(
                benchmark=BenchmarkSummary(name="b"),
                hashes={"scorer": version},
                config={"scorer": {"name": "fuzzy_match", "version": version}},
            ),
        )
        for version in ("1", "2")
    )
    with pytest.raises(Incomparable, match=r"\(version: '1' against '2'\)"):
        compare_runs(base, candidate)


def test_other_benchmarks_are_not_compared() -> None:
    base, candidate = (
        run(single([1.0, 0.0]), bundle=Bundle(benchmark=BenchmarkSummary(name=name)))
        for name in ("gsm8k", "mmlu")
    )
    with pytest.raises(Incomparable, match="'gsm8k' against 'mmlu'"):
        compare_runs(base, candidate)


@pytest.mark.parametrize(
    ("name", "value"), [("max_drop", -0.1), ("min_coverage", 1.5), ("confidence_level", 1.0)]
)
def test_bad_options_are_named(name: str, value: float) -> None:
    with pytest.raises(OptionError, match=name):
        replace(Options(), **{name: value})


def test_a_tolerance_of_next_to_nothing_asks_for_no_number_of_problems() -> None:
    base, candidate = single([1.0, 0.0, 1.0, 0.0]), single([1.0, 1.0, 0.0, 0.0])
    found = compare_runs(run(base), run(candidate), Options(max_drop=1e-9))
    assert found.verdict.next_step == "Run more problems; the differences so far are too few to say how many."


def test_equal_scores_on_a_scale_of_a_hundred_leave_room_for_large_drops() -> None:
    equal = compare_runs(run(single([80.0] * 10)), run(single([80.0] * 10)), Options(max_drop=5.0))
    assert equal.verdict.name == "INCONCLUSIVE"
    # One gain and one loss of the 80 points that were seen are added: 1.96·80·√2/12.
    assert equal.delta.ci_lower == pytest.approx(-1.959964 * 80 * 2**0.5 / 12)
    # Not in points: a hundredth means nothing on this scale.
    assert (
        equal.verdict.sentence
        == "Not proven: the data cannot tell, the true change lies anywhere from -24.68 to +18.48."
    )
    # A drop of all 80 points may have gone unseen: (75/80)^10 = 0.5245, and 80·(1 − 0.025^(1/10)) = 24.68.
    assert (
        "tolerated drop 5: a larger one is not ruled out (p = 0.524 against 0.025, bound -24.68)"
        in equal.verdict.reasons
    )
    # (1 − 5/80)^n ≤ 0.025 from n = 58 on.
    assert any(
        "10 problems are too few" in words and "at least 58" in words for words in equal.verdict.reasons
    )
    # To see it takes 127, by McNemar's formula with its correction for whole counts.
    assert "Run 117 more problems" in equal.verdict.next_step


def test_a_drop_on_a_scale_of_a_hundred_is_told_as_it_is() -> None:
    falls = [80.0 - 10 * (n % 3) for n in range(60)]
    found = compare_runs(run(single([80.0] * 60)), run(single(falls)), Options(max_drop=0.0))
    assert (
        found.verdict.sentence == "The candidate is really worse: by 10, more than the 0 that are tolerated."
    )
    near = compare_runs(
        run(single([80.0, 70.0] * 3)), run(single([70.0, 80.0, 90.0] * 2)), Options(max_drop=0.0)
    )
    assert "to see a 0.9 drop with 80 % power" in near.verdict.next_step


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.8), (2.0, 4.0), (-1.0, -3.0)])
def test_equal_changes_on_few_problems_prove_nothing(first: float, second: float) -> None:
    few = compare_runs(run(single([first] * 3)), run(single([second] * 3)))
    assert few.verdict.name == "INCONCLUSIVE"
    assert few.delta.ci_lower < 0 < few.delta.ci_upper
    assert few.delta.method == few.base.mean.method == "constant"
    many = compare_runs(run(single([first] * 300)), run(single([second] * 300)))
    assert many.verdict.name == ("PASS" if second > first else "BLOCK")
