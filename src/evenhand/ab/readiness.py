"""Whether there are enough repeats to promote a decision, and how many more would settle an open gate."""

import heapq
import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import METRIC_BY_NAME, ArmNames, ArmRuns
from evenhand.ab.decimals import Floats, Integers
from evenhand.ab.decision import GATE_METRICS, GateName
from evenhand.ab.pairing import Pairs, TaskTotals
from evenhand.ab.significance import ALPHA, DeltaTest
from evenhand.metrics.power import minimum_detectable_effect, required_n
from evenhand.metrics.quantiles import normal_quantile

MIN_REPEATS = 5
"""Repeats per task and arm below which no decision should be promoted."""
PREFERRED_REPEATS = 10
"""Repeats per task and arm for suites of high variance."""
HIGH_SPREAD = 0.3
"""A pooled coefficient of variation of duration or tokens above this is high variance."""
HIGH_DISAGREEMENT = 0.2
"""So is a share of task-arm pairs above this whose repeats disagree about success."""
POWER = 0.8
MAX_MORE = 500
"""More extra repeats than this are not planned: the difference is too small for the suite."""
MAX_MORE_TASKS = 10_000
"""Nor are more extra tasks than this."""
SHOWN = 100


class Lack(Struct, frozen=True, kw_only=True):
    """A task-arm pair with too few repeats."""

    task_id: str
    arm: str
    repeats: int
    """Repeats that count."""
    missing: int
    """How many are missing to the minimum."""


class Outlook(Struct, frozen=True, kw_only=True):
    """What the data can say about one gate, and what would settle it."""

    gate: GateName
    delta: str
    """The paired delta that belongs to the gate."""
    settled: bool
    """Whether the Holm-corrected test finds a difference."""
    minimum_detectable_effect: float | None
    """The smallest mean delta that these tasks would show with 80% power; None where so few show nothing."""
    more_repeats: int | None
    """Further repeats (a run of each arm) that would settle the gate with 80% power, if the mean delta and the
    spread within and between tasks stay as they are; None when none are needed, or no number up to 500 would do."""
    more_by_task: dict[str, int]
    """How those are best spread: where repeats differ most."""
    more_tasks: int | None
    """Further tasks like these, with as many repeats, that would settle the gate with 80% power; None when none are
    needed, when the mean delta is 0, or when no number up to 10,000 would do."""


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether the decision can be promoted."""

    ready: bool
    """At least five repeats of every task in both arms."""
    min_repeats: int
    """What is required."""
    recommended_repeats: int
    """5, or 10 for suites of high variance."""
    high_variance: bool
    """By the stated rule: pooled coefficient of variation above 0.3, or repeats that disagree above 0.2."""
    spread: dict[str, float | None]
    """Pooled coefficient of variation of `duration_seconds` and `non_cache_tokens` among repeats."""
    disagreement: float | None
    """The share of task-arm pairs with two or more repeats that disagree about success."""
    lacking_count: int
    """Task-arm pairs with too few repeats."""
    lacking: tuple[Lack, ...]
    """The first of them."""
    below_recommended: int
    """Task-arm pairs below the recommended number."""
    outlook: tuple[Outlook, ...]
    """One entry per gate."""


def readiness_of(
    tasks: Sequence[str],
    compared: Integers,
    names: ArmNames,
    runs: Mapping[str, ArmRuns],
    pairs: Pairs,
    tests: Mapping[str, DeltaTest],
) -> Readiness:
    """`compared` are the tasks (places in `tasks`) that either arm ran at all."""
    sides = [(side, name) for side in ("treatment", "control") if (name := getattr(names, side)) is not None]
    repeats = {name: np.bincount(runs[side].task, minlength=len(tasks))[compared] for side, name in sides}
    short = {name: np.flatnonzero(counts < MIN_REPEATS) for name, counts in repeats.items()}
    lacking = sorted(
        (int(compared[place]), name, int(repeats[name][place]))
        for name, places in short.items()
        for place in places[:SHOWN]
    )
    spread = {metric: _pooled_spread(runs, metric) for metric in ("duration_seconds", "non_cache_tokens")}
    disagreement = _disagreement(runs)
    high = any(value is not None and value > HIGH_SPREAD for value in spread.values()) or (
        disagreement is not None and disagreement > HIGH_DISAGREEMENT
    )
    recommended = PREFERRED_REPEATS if high else MIN_REPEATS
    return Readiness(
        ready=bool(len(compared)) and not lacking and len(sides) == 2,
        min_repeats=MIN_REPEATS,
        recommended_repeats=recommended,
        high_variance=high,
        spread=spread,
        disagreement=disagreement,
        lacking_count=sum(len(places) for places in short.values()),
        lacking=tuple(
            Lack(task_id=tasks[task], arm=name, repeats=count, missing=MIN_REPEATS - count)
            for task, name, count in lacking[:SHOWN]
        ),
        below_recommended=sum(int((counts < recommended).sum()) for counts in repeats.values()),
        outlook=tuple(_outlook(gate, tasks, pairs, tests) for gate in GATE_METRICS),
    )


def _groups(runs: Mapping[str, ArmRuns]) -> Integers:
    """A number per task-arm pair for every run of both arms."""
    return np.concatenate([side.task * 2 + place for place, side in enumerate(runs.values())])


def _pooled_spread(runs: Mapping[str, ArmRuns], metric: str) -> float | None:
    """The root of the mean squared coefficient of variation over task-arm pairs with two or more repeats."""
    values = np.concatenate([side.values[metric] for side in runs.values()])
    known = ~np.isnan(values)
    sizes, means, variances = _moments(values[known], _groups(runs)[known])
    usable = (sizes >= 2) & (means > 0)
    if not usable.any():
        return None
    relative = np.sqrt(variances[usable]) / means[usable]  # squaring first would underflow for tiny means
    return float(np.sqrt((relative**2).mean()))


def _disagreement(runs: Mapping[str, ArmRuns]) -> float | None:
    success = np.concatenate([side.values["success"] for side in runs.values()])
    sizes, means, _ = _moments(success, _groups(runs))
    usable = sizes >= 2
    if not usable.any():
        return None
    return float(((means[usable] > 0) & (means[usable] < 1)).mean())


def _moments(values: Floats, groups: Integers) -> tuple[Floats, Floats, Floats]:
    """Size, mean and sample variance of each group."""
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes).astype(np.float64)
    means = np.bincount(codes, weights=values) / sizes
    squares = np.bincount(codes, weights=(values - means[codes]) ** 2)
    return sizes, means, squares / np.maximum(sizes - 1, 1)


def fewest_tasks(alpha: float) -> int:
    """How many tasks a sign-flip test by task needs before any p-value is at most `alpha`: 2/2^T ≤ alpha."""
    return math.ceil(math.log2(2.0 / alpha))


GATE_ALPHA = ALPHA / len(GATE_METRICS)
"""What Holm asks of the clearest of the three gates: planning with it is enough for any of them."""
FEWEST_TASKS = fewest_tasks(GATE_ALPHA)
"""With fewer tasks no gate can be proven, whatever the runs say."""


def _between(values: Floats, sizes: Floats, means: Floats, within: float) -> float:
    """The variance of the tasks' true mean deltas: (MSB − MSW)/m₀, not below 0, as in `metrics.variance_split`."""
    if len(sizes) < 2:
        return 0.0
    n = float(sizes.sum())
    across = float((sizes * (means - values.mean()) ** 2).sum()) / (len(sizes) - 1)
    return max(0.0, (across - within) / ((n - float((sizes**2).sum()) / n) / (len(sizes) - 1)))


def _outlook(gate: GateName, tasks: Sequence[str], pairs: Pairs, tests: Mapping[str, DeltaTest]) -> Outlook:
    delta = METRIC_BY_NAME[GATE_METRICS[gate]].delta
    test = tests.get(delta)
    totals = pairs.by_task(delta)
    settled = bool(test and test.proven)
    open_ = test is not None and not settled
    plan = _plan(totals.values, totals.task[totals.codes]) if open_ and len(totals) >= FEWEST_TASKS else None
    return Outlook(
        gate=gate,
        delta=delta,
        settled=settled,
        minimum_detectable_effect=_detectable(totals),
        more_repeats=sum(plan.values()) if plan else None,
        more_by_task={tasks[place]: count for place, count in plan.items()} if plan else {},
        more_tasks=_more_tasks(totals, test.mean) if test is not None and open_ else None,
    )


def _needed_ratio(alpha: float) -> float:
    """How many standard errors a mean must be from zero to be found with the stated power."""
    return normal_quantile(1.0 - alpha / 2.0) + normal_quantile(POWER)


def _detectable(totals: TaskTotals) -> float | None:
    if len(totals) < fewest_tasks(ALPHA):
        return None
    return minimum_detectable_effect(float(totals.means.std(ddof=1)), len(totals), power=POWER, alpha=ALPHA)


def _more_tasks(totals: TaskTotals, mean: float) -> int | None:
    """How many more tasks would settle a gate, from the spread of the task means; None where one task shows no spread."""
    count = len(totals)
    if count < 2:
        return None
    spread = float(totals.means.std(ddof=1))
    if mean == 0.0 or abs(mean) < spread * MAX_MORE_TASKS**-0.5:
        return None
    needed = required_n(abs(mean), spread, power=POWER, alpha=GATE_ALPHA) if spread > 0.0 else 0
    more = max(needed, FEWEST_TASKS) - count
    return max(more, 1) if more <= MAX_MORE_TASKS else None


def _plan(values: Floats, task: Integers) -> dict[int, int] | None:
    """Extra repeats by task until the mean delta would stand out; None when no number up to the cap does.

    With a share w of the pairs, variance s² among its repeats and r repeats, a task adds w²s²/r to the squared
    standard error. Each extra repeat goes where it takes away most. What the tasks themselves differ by, b²·Σw² with b²
    the variance between tasks (one-way analysis of variance), no repeat takes away.
    """
    places, codes = np.unique(task, return_inverse=True)
    sizes, means, variances = _moments(values, codes)
    mean = abs(float(values.mean()))
    repeated = sizes >= 2
    freedom = float((sizes - 1)[repeated].sum())
    if not freedom:
        return None  # no task was repeated: nothing says what repeats would take away
    pooled = float(((sizes - 1) * variances)[repeated].sum()) / freedom
    variances = np.where(repeated, variances, pooled)
    shares = sizes / sizes.sum()
    parts = shares**2 * variances
    fixed = _between(values, sizes, means, pooled) * float((shares**2).sum())
    target = (mean / _needed_ratio(GATE_ALPHA)) ** 2
    error = fixed + float((parts / sizes).sum())
    if mean == 0.0 or error == 0.0 or fixed >= target:
        return None
    gains = parts / (sizes * (sizes + 1))
    # No more tasks than steps can ever be chosen, and those have the largest first gains.
    queue = [
        (-float(gains[row]), int(places[row]), float(parts[row]), float(sizes[row]))
        for row in np.argsort(-gains, kind="stable")[:MAX_MORE]
    ]
    heapq.heapify(queue)
    more: dict[int, int] = {}
    for _ in range(MAX_MORE):
        if error <= target:
            break
        gain, place, part, size = heapq.heappop(queue)
        error += gain
        more[place] = more.get(place, 0) + 1
        size += 1
        heapq.heappush(queue, (-part / (size * (size + 1)), place, part, size))
    if error > target:
        return None
    # The spread allows a verdict already, but the corrected test has not reached one: one more repeat of each task.
    return more or {int(place): 1 for place in places[:MAX_MORE]}
