"""Several runs at once, and planning."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace
from tests.runs import run, single

from evenhand.compare import compare_many, make_plan
from evenhand.compare.many import cliques
from evenhand.compare.planning import Cost, Noise, noise_from_rates, noise_from_runs, with_judge_noise
from evenhand.core.errors import InputError, OptionError
from evenhand.results import RunResults


def test_runs_that_cannot_be_told_apart_share_a_letter() -> None:
    ability = np.random.default_rng(1).random(400)
    levels = [("a", 0.80), ("b", 0.795), ("c", 0.30)]
    found = compare_many(
        [run(single(list(map(float, ability < level))), path=name) for name, level in levels]
    )
    assert [row.name for row in found.runs] == ["a", "b", "c"]
    letters = {row.name: row.letters for row in found.runs}
    assert set(letters["a"]) & set(letters["b"])
    assert not set(letters["a"]) & set(letters["c"])
    assert all(pair.p_adjusted >= pair.p_value for pair in found.pairs)
    assert len(found.pairs) == 3


def test_only_problems_that_all_runs_scored_count() -> None:
    runs = [
        run(single([1.0, 1.0, None]), path="a"),
        run(single([1.0, 0.0, 1.0]), path="b"),
        run(single([1.0, 1.0, 1.0]), path="c"),
    ]
    found = compare_many(runs)
    assert (found.problems, found.dropped) == (2, 1)
    with pytest.raises(InputError, match="no problem is scored in all runs"):
        compare_many([runs[0], run(single([None, None, None]), path="d"), runs[2]])


def test_groups_are_the_maximal_cliques() -> None:
    """1-2 and 2-3 are alike, 1-3 are not: two groups that share 2."""
    assert cliques([1, 2, 3], {frozenset((1, 2)), frozenset((2, 3))}) == [[1, 2], [2, 3]]
    assert cliques([3, 1], set()) == [[3], [1]]


def test_the_plan_of_the_textbook_case() -> None:
    """A tenth of the problems differ, 2.5 points: n ≈ (1.645 + 0.842)² × 0.1 / 0.025² = 990."""
    planned = make_plan(0.025, noise_from_rates(0.5, 0.10))
    plain = next(plan for plan in planned.plans if plan.repeats == 1)
    assert plain.problems == pytest.approx(990, rel=0.01)
    assert plain.power == pytest.approx(0.8, abs=0.002)


def test_repeats_shrink_the_noise_within_problems_only() -> None:
    """Two of four right on both sides: variance (0.5² × 4/3) per answer and side, so 2/3 together; none between."""
    pilot = {i: [1.0, 0.0, 1.0, 0.0] for i in range(10)}
    noise = noise_from_runs(run(pilot), run(pilot))
    assert noise.within == pytest.approx(2 / 3)
    assert noise.between == 0.0
    assert noise.sd(4) == pytest.approx(noise.sd(1) / 2)


def test_the_cheapest_plan_comes_first() -> None:
    cost = Cost(answer=0.01, judge=0.01, label=1.0, labels=50)
    planned = make_plan(0.05, noise_from_rates(0.8, None), cost=cost)
    best = planned.plans[0]
    assert best.cost_usd == min(plan.cost_usd or 0.0 for plan in planned.plans)
    assert best.cost_usd == pytest.approx(2 * best.problems * best.repeats * 0.02 + 50)
    powers = [plan.power for plan in planned.curve]
    assert powers == sorted(powers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_plan(0.0, noise_from_rates(0.5, 0.1)), "effect must be above 0"),
        (lambda: make_plan(0.1, noise_from_rates(0.5, 0.1), power=1.0), "power must be between"),
        (lambda: noise_from_rates(1.0, None), "expected score"),
        (lambda: noise_from_rates(0.5, 0.0), "discordant share"),
    ],
)
def test_impossible_wishes_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()


def test_a_pilot_without_differences_is_refused() -> None:
    noise = noise_from_runs(run(single([1.0] * 5)), run(single([1.0] * 5)))
    with pytest.raises(InputError, match="no differences"):
        make_plan(0.1, noise)


def test_the_plan_says_where_its_noise_comes_from() -> None:
    """Items 0.02, repeats 0.06, judge 0.04 of a difference, all added over both sides."""
    noise = Noise(between=0.02, within=0.10, judge=0.04, source="assumed")
    planned = make_plan(0.05, noise, cost=Cost(answer=0.01, judge=0.002), repeats=(2,))
    problems = planned.plans[0].problems
    items, repeats, judge = planned.reductions
    # 0.02 + 0.10/2 = 0.07 per problem: the answers carry 0.05 of it, the judge alone 0.02
    assert (items.share, repeats.share, judge.share) == pytest.approx((1.0, 0.05 / 0.07, 0.02 / 0.07))
    assert (items.now, repeats.now, judge.now) == (problems, 2, 1)
    # 0.81 · 0.07 = 0.0567: repeats 0.10/0.0367 = 2.72; judgements: 0.02/(0.0567 − 0.05) = 2.99
    assert (repeats.needed, judge.needed) == (3, 3)
    assert repeats.extra_cost == pytest.approx(2 * problems * 0.012)
    assert judge.extra_cost == pytest.approx(2 * problems * 2 * 2 * 0.002)
    unknown = make_plan(0.05, noise_from_rates(0.5, 0.1)).reductions
    assert [one.share for one in unknown] == [pytest.approx(1.0), None, None]


def _judged(rewards: list[float | None]) -> RunResults:
    """One answer per problem, the same whatever it was given."""
    found = run(single(rewards))
    return replace(found, samples=[replace(one, model_response="the answer") for one in found.samples])


def test_the_judge_is_measured_on_answers_judged_twice() -> None:
    """Scores 1 1 0 0 and again 1 0 0 1: half of them differ by 1, and half is twice the variance of one side."""
    base, again = _judged([1.0, 1.0, 0.0, 0.0]), _judged([1.0, 0.0, 0.0, 1.0])
    found = with_judge_noise(noise_from_rates(0.5, 0.6), base, again)
    assert found.judge == pytest.approx(0.5)
    assert "4 answers judged twice" in found.source
    assert found.components().items == pytest.approx(0.1)  # 0.6 less the judge's part
    assert found.components().judge == pytest.approx(0.5)
    with pytest.raises(InputError, match="at least two answers"):
        with_judge_noise(found, base, _judged([1.0, None, None, None]))


def test_other_answers_do_not_measure_the_judge() -> None:
    base = _judged([1.0, 0.0])
    other = replace(base, samples=[replace(one, model_response="another") for one in base.samples])
    with pytest.raises(InputError, match="is another one than in"):
        with_judge_noise(noise_from_rates(0.5, 0.6), base, other)
