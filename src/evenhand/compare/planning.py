"""How many problems and repeats a wanted effect needs, and what that costs."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.comparison import SMALLEST_EFFECT
from evenhand.core.errors import InputError, OptionError
from evenhand.metrics.components import Reduction, VarianceComponents, ways_to_reduce
from evenhand.metrics.power import power_of, required_n
from evenhand.metrics.types import Alternative
from evenhand.results import RunResults

SMALLER_BY = 0.1
"""By what share the standard error is to shrink in the table of reductions."""

DEFAULT_SCORE = 0.5
"""The expected score where nobody says one: yes-or-no scores vary most there."""
DEFAULT_SPREAD = (
    "assumed, as nothing was given: yes-or-no scores around 0.5 and independent answers, the widest spread there is; a "
    "pilot run, --discordant or --base-score mostly needs fewer problems"
)


class Noise(Struct, frozen=True, kw_only=True):
    """How much a paired difference varies: between problems, and within a problem from repeat to repeat."""

    between: float
    """Variance of the true per-problem differences."""
    within: float
    """Variance of one answer's score around its problem's mean, added over both sides."""
    source: str
    """Where the figures come from."""
    judge: float | None = None
    """The part of the variance that is the judge's: of one judgement of an answer around its mean, added over both
    sides; None when nobody measured it."""

    def sd(self, repeats: int) -> float:
        """Standard deviation of a problem's difference of means over `repeats` answers on each side."""
        return sqrt(self.between + self.within / repeats)

    def components(self) -> VarianceComponents:
        """The same by items, repeats and judge. Without repeats, the part of the answers is in that of the items."""
        judge = self.judge or 0.0
        if self.within == 0.0:
            return VarianceComponents(items=max(0.0, self.between - judge), repeats=None, judge=self.judge)
        return VarianceComponents(items=self.between, repeats=max(0.0, self.within - judge), judge=self.judge)


class Cost(Struct, frozen=True, kw_only=True):
    """What one more of each costs, in US dollars."""

    answer: float = 0.0
    """One answer of the model."""
    judge: float = 0.0
    """One judged answer."""
    label: float = 0.0
    """One human label."""
    labels: int = 0
    """How many human labels are wanted whatever the plan."""

    @property
    def known(self) -> bool:
        """Whether any price was given."""
        return bool(self.answer or self.judge or (self.label and self.labels))


class Plan(Struct, frozen=True, kw_only=True):
    """One way to see the effect."""

    problems: int
    """How many problems."""
    repeats: int
    """How many answers per problem and side."""
    answers: int
    """Answers on both sides together."""
    cost_usd: float | None
    """All answers, judgements and labels; None when no price was given."""
    power: float
    """The probability of a significant result if the effect is real."""


class Planned(Struct, frozen=True, kw_only=True):
    """What was asked and the ways to get it, cheapest first."""

    effect: float
    """The difference to be seen."""
    alpha: float
    """The error rate."""
    alternative: Alternative
    """`greater`: a difference in one direction, as `compare` and `gate` test it; or `two-sided`."""
    wanted_power: float
    """The power asked for."""
    noise: Noise
    """What was assumed or measured."""
    plans: list[Plan]
    """Cheapest first; ties go to fewer answers, then to fewer repeats."""
    curve: list[Plan]
    """Power against the number of problems for the cheapest number of repeats."""
    reductions: list[Reduction]
    """For the cheapest plan: where its noise comes from, and what a standard error smaller by a tenth would take."""

    @property
    def priced(self) -> bool:
        """Whether any price was given."""
        return self.plans[0].cost_usd is not None


def noise_from_runs(base: RunResults, candidate: RunResults | None) -> Noise:
    """Measure the noise on a pilot: two runs, or one run against an imagined twin."""
    mine = _groups(base)
    if candidate is None:
        return _noise_of_twin(mine, base.source)
    theirs = _groups(candidate)
    shared = sorted(mine.keys() & theirs.keys())
    if len(shared) < 2:
        raise InputError("a pilot needs at least two problems that are scored in both runs")
    deltas = np.array([np.mean(theirs[i]) - np.mean(mine[i]) for i in shared])
    within = _within([mine[i] for i in shared]) + _within([theirs[i] for i in shared])
    repeats = float(np.mean([min(len(mine[i]), len(theirs[i])) for i in shared]))
    between = (
        max(0.0, float(np.var(deltas, ddof=1)) - within / repeats)
        if within
        else float(np.var(deltas, ddof=1))
    )
    return Noise(
        between=between,
        within=within,
        source=f"pilot of {len(shared)} problems: {base.source} and {candidate.source}",
    )


def with_judge_noise(noise: Noise, judged: RunResults, again: RunResults) -> Noise:
    """The noise with the judge's part, measured on a run whose very answers were judged a second time."""
    first = {(sample.problem_idx, sample.repeat): sample for sample in judged.samples}
    squares = []
    for sample in again.samples:
        before = first.get((sample.problem_idx, sample.repeat))
        if before is None or before.reward is None or sample.reward is None:
            continue
        if before.model_response != sample.model_response:
            raise InputError(
                f"the answer to problem {sample.problem_idx}, repeat {sample.repeat} is another one than in "
                f"{judged.path}: judge the same answers again (evenhand judge score, or eval rescore)",
                path=again.path,
            )
        squares.append((sample.reward - before.reward) ** 2)
    if len(squares) < 2:
        raise InputError("at least two answers must be scored in both judgings", path=again.path)
    # Two judgements of one answer differ with twice the variance of one; both sides are judged.
    return replace(
        noise,
        judge=float(np.mean(squares)),
        source=f"{noise.source}; judge measured on {len(squares):,} answers judged twice",
    )


def noise_from_rates(rate: float, discordant: float | None) -> Noise:
    """The noise of yes-or-no scores: `discordant` is the share of problems on which the two sides differ."""
    if not 0 < rate < 1:
        raise OptionError(f"the expected score must be between 0 and 1, not {rate}")
    if discordant is None:
        # Independent sides at the same rate: the most that can differ without a correlation between them.
        return Noise(
            between=0.0, within=2 * rate * (1 - rate), source=f"assumed: score {rate:g}, independent answers"
        )
    if not 0 < discordant <= 1:
        raise OptionError(f"the discordant share must be above 0 and at most 1, not {discordant}")
    return Noise(
        between=discordant,
        within=0.0,
        source=f"assumed: {discordant:.1%} of the problems differ between the sides",
    )


def noise_of(
    pilot: Sequence[RunResults], effect: float, *, base_score: float | None, discordant: float | None
) -> Noise:
    """The noise of a pilot of one run or two; without one, that of the expected rates."""
    if len(pilot) > 2:
        raise OptionError("a pilot is one run or two")
    if pilot:
        return noise_from_runs(pilot[0], pilot[1] if len(pilot) == 2 else None)
    if base_score is None and discordant is None:
        return replace(noise_from_rates(DEFAULT_SCORE, None), source=DEFAULT_SPREAD)
    if discordant is not None and effect > discordant:
        raise OptionError(
            f"an effect of {effect:g} is impossible when only {discordant:g} of the problems differ (--discordant)"
        )
    return noise_from_rates(DEFAULT_SCORE if base_score is None else base_score, discordant)


def make_plan(
    effect: float,
    noise: Noise,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "greater",
    cost: Cost | None = None,
    repeats: Sequence[int] = (1, 2, 4, 8, 16),
) -> Planned:
    """The problems needed for each number of repeats, and the cheapest way."""
    cost = cost or Cost()
    if not 0 < effect < float("inf"):
        raise OptionError(f"the effect must be above 0, not {effect}")
    if not 0 < power < 1:
        raise OptionError(f"the power must be between 0 and 1, not {power}")
    if not 0 < alpha < 1:
        raise OptionError(f"the error rate alpha must be between 0 and 1, not {alpha}")
    if noise.between + noise.within <= 0:
        raise InputError(
            "the pilot shows no differences at all: nothing to plan from; state assumptions instead"
        )
    if effect < SMALLEST_EFFECT * max(map(noise.sd, repeats)):
        raise OptionError(f"an effect of {effect:g} is too small: no number of problems would show it")
    if not all(0 <= part < float("inf") for part in (cost.answer, cost.judge, cost.label, cost.labels)):
        raise OptionError("costs and labels must be numbers from 0 up")
    goal = _Goal(effect=effect, noise=noise, alpha=alpha, alternative=alternative, cost=cost)
    plans = [
        _plan(
            required_n(effect, noise.sd(count), power=power, alpha=alpha, alternative=alternative),
            count,
            goal,
        )
        for count in repeats
    ]
    plans.sort(key=lambda plan: (plan.cost_usd or 0.0, plan.answers, plan.repeats))
    best = plans[0]
    sizes = sorted({max(2, round(best.problems * part)) for part in np.linspace(0.1, 2.0, 20)})
    return Planned(
        effect=effect,
        alpha=alpha,
        alternative=alternative,
        wanted_power=power,
        noise=noise,
        plans=plans,
        curve=[_plan(size, best.repeats, goal) for size in sizes],
        reductions=[
            one if cost.known else replace(one, extra_cost=None)
            for one in ways_to_reduce(
                noise.components(),
                items=best.problems,
                repeats=best.repeats,
                by=SMALLER_BY,
                # Both sides answer and are judged.
                answer_cost=2 * cost.answer,
                judge_cost=2 * cost.judge,
            )
        ],
    )


class _Goal(Struct, frozen=True, kw_only=True):
    effect: float
    noise: Noise
    alpha: float
    alternative: Alternative
    cost: Cost


def _plan(problems: int, repeats: int, goal: _Goal) -> Plan:
    answers = 2 * problems * repeats
    cost = goal.cost
    return Plan(
        problems=problems,
        repeats=repeats,
        answers=answers,
        cost_usd=answers * (cost.answer + cost.judge) + cost.label * cost.labels if cost.known else None,
        power=power_of(
            goal.effect, goal.noise.sd(repeats), problems, alpha=goal.alpha, alternative=goal.alternative
        ),
    )


def _groups(run: RunResults) -> dict[int, list[float]]:
    groups: dict[int, list[float]] = {}
    for sample in run.samples:
        if sample.reward is not None:
            groups.setdefault(sample.problem_idx, []).append(float(sample.reward))
    return groups


def _noise_of_twin(groups: dict[int, list[float]], path: str) -> Noise:
    if len(groups) < 2:
        raise InputError("a pilot needs at least two scored problems")
    within = 2 * _within(list(groups.values()))
    if within == 0.0:
        # One answer per problem cannot tell how noisy an answer is; independent sides are the cautious reading.
        means = [float(np.mean(values)) for values in groups.values()]
        within = 2 * float(np.var(means, ddof=1))
    return Noise(
        between=0.0, within=within, source=f"pilot of {len(groups)} problems: {path}, against a like run"
    )


def _within(groups: Sequence[Sequence[float]]) -> float:
    """The mean variance within problems, over those with at least two answers."""
    spread = [float(np.var(values, ddof=1)) for values in groups if len(values) > 1]
    return float(np.mean(spread)) if spread else 0.0
