"""From samples to numbers: means and pass rates with the interval that fits the data, closed denominators."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import UNSET, Struct
from msgspec.structs import replace

from evenhand.core.outcome import Tally
from evenhand.evaluation.official import OfficialMetrics
from evenhand.metrics.intervals import NoSpread, mean_interval
from evenhand.metrics.repeats import pass_at_k_interval, pass_hat_k_interval, repeats_interval
from evenhand.metrics.sequential import confidence_sequence
from evenhand.metrics.types import Interval
from evenhand.results.bundle import BenchmarkSummary, CategorySummary, MetricValue, ScorerResult
from evenhand.results.records import SampleResult, scored_by


class Summary(Struct, frozen=True, kw_only=True):
    """What a run came to."""

    benchmark: BenchmarkSummary
    """Scores, categories and counts."""
    binary: bool
    """Whether every reward is 0 or 1."""


class Aggregator:
    """Takes samples in order and keeps a few bytes of each."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._rewards = array("d")
        self._problems = array("q")
        self._categories = array("i")
        self._names: dict[str, int] = {}
        self._lost: dict[int, list[int]] = {}
        self.repeats = 1
        self._by_scorer: dict[str, Aggregator] = {}
        self._labels: Counter[str] = Counter()
        self._official = OfficialMetrics()

    def add(self, sample: SampleResult) -> None:
        for name in sample.outcomes:
            alone = scored_by(sample, name)
            assert alone is not None
            if name not in self._by_scorer:
                self._by_scorer[name] = Aggregator()
            # Without the others, or this would never end.
            self._by_scorer[name].add(replace(alone, scores=UNSET))
        if sample.status == "unscored" and isinstance(sample.scoring_details.get("label"), str):
            self._labels[sample.scoring_details["label"]] += 1
        self.repeats = max(self.repeats, sample.repeat + 1)
        category = sample.category
        code = -1 if category is None else self._names.setdefault(category, len(self._names))
        if sample.status == "scored" and sample.reward is not None:
            self.tally.scored += 1
            self._rewards.append(sample.reward)
            self._problems.append(sample.problem_idx)
            self._categories.append(code)
            self._official.add(sample.scoring_details)
            return
        lost = self._lost.setdefault(code, [0, 0])
        if sample.status == "failed":
            self.tally.failed += 1
            lost[1] += 1
        else:
            self.tally.unscored += 1
            lost[0] += 1

    def summary(self, name: str, samples: int) -> Summary:
        """Everything; `samples` is problems times repeats, and the counts must add up to it."""
        if self.tally.total != samples:
            raise AssertionError(f"{samples} samples were planned and {self.tally.total} are accounted for")
        rewards = np.frombuffer(self._rewards, dtype=np.float64) if self._rewards else np.empty(0)
        problems = np.frombuffer(self._problems, dtype=np.int64) if self._problems else np.empty(0, np.int64)
        binary = bool(rewards.size) and bool(np.isin(rewards, (0.0, 1.0)).all())
        return Summary(
            benchmark=BenchmarkSummary(
                name=name,
                samples=samples,
                repeats=self.repeats,
                scores=self._official.complete(self._scores(rewards, problems, binary)),
                categories=self._official.categories(self._breakdown(rewards, problems)),
                tally=self.tally,
                scorers={scorer: one.result(self.repeats) for scorer, one in self._by_scorer.items()},
            ),
            binary=binary,
        )

    def result(self, repeats: int) -> ScorerResult:
        """What these samples came to, as the result of one scorer among several."""
        self.repeats = repeats
        found = self.summary("", self.tally.total).benchmark
        assert isinstance(found.categories, list)
        labels = sum(self._labels.values())
        return ScorerResult(
            scores=found.scores,
            categories=found.categories,
            # A label is a score too, though one without a mean.
            tally=Tally(
                scored=self.tally.scored + labels,
                unscored=self.tally.unscored - labels,
                failed=self.tally.failed,
            ),
            labels=dict(self._labels),
        )

    def anytime(self, found: BenchmarkSummary, seed: int) -> BenchmarkSummary:
        """The summary of a run that was stopped when it was decided: its intervals must hold whenever one stops, so
        only the means are left, with wider ones. `seed` is that of the order of its problems."""
        scorers = {
            name: replace(
                one,
                scores={"mean_reward": self._by_scorer[name].anytime_mean(seed)},
                categories=[replace(part, ci_lower=None, ci_upper=None) for part in one.categories],
            )
            for name, one in found.scorers.items()
        }
        assert isinstance(found.categories, list)
        return replace(
            found,
            scores={"mean_reward": self.anytime_mean(seed)},
            categories=[replace(part, ci_lower=None, ci_upper=None) for part in found.categories],
            scorers=scorers,
        )

    def anytime_mean(self, seed: int) -> MetricValue:
        """The mean over problems with an interval that is valid at any time; without one for scores outside 0 to 1."""
        by_problem: dict[int, list[float]] = {}
        for problem, reward in zip(self._problems, self._rewards, strict=True):
            by_problem.setdefault(problem, []).append(reward)
        if not by_problem:
            return MetricValue(value=None, n=0)
        # Loaded here: few runs stop early, and the comparisons that come with it are costly to load.
        from evenhand.compare.stopping import random_order

        means = [float(np.mean(by_problem[problem])) for problem in random_order(by_problem, seed)]
        if min(means) < 0 or max(means) > 1:
            return MetricValue(
                value=float(np.mean(means)), n=len(means), method="stopped early: no interval outside 0 to 1"
            )
        found = confidence_sequence(means, every=len(means))
        return MetricValue(
            value=found.value[-1],
            ci_lower=found.ci_lower[-1],
            ci_upper=found.ci_upper[-1],
            method="valid at any time (confidence sequence)",
            n=len(means),
        )

    def _scores(self, rewards: np.ndarray, problems: np.ndarray, binary: bool) -> dict[str, MetricValue]:
        found = {"mean_reward": _mean(rewards, problems)}
        if self.repeats == 1:
            if binary:
                found["pass@1"] = found["mean_reward"]
            return found
        groups = _by_problem(rewards, problems)
        if any(group.size > 1 for group in groups):
            # How the mean over these very problems would vary if they were asked again.
            found["mean_reward_sample_level"] = _value(repeats_interval(groups))
        if not binary:
            return found
        tried, solved = _counts(rewards, problems)
        pairs = list(zip(tried.tolist(), solved.tolist(), strict=True))
        for k in attempts(self.repeats):
            enough = [pair for pair in pairs if pair[0] >= k]
            if not enough:
                continue
            found[f"pass@{k}"] = _value(pass_at_k_interval(enough, k))
            if k > 1:
                found[f"pass^{k}"] = _value(pass_hat_k_interval(enough, k))
        return found

    def _breakdown(self, rewards: np.ndarray, problems: np.ndarray) -> list[CategorySummary]:
        if not self._names:
            return []
        codes = np.frombuffer(self._categories, dtype=np.int32) if self._categories else np.empty(0, np.int32)
        found = []
        names = (
            {**self._names, "uncategorised": -1} if -1 in self._lost or (codes == -1).any() else self._names
        )
        for name, code in sorted(names.items()):
            chosen = codes == code
            mean = _mean(rewards[chosen], problems[chosen])
            unscored, failed = self._lost.get(code, (0, 0))
            found.append(
                CategorySummary(
                    category=name,
                    mean_reward=mean.value,
                    n_samples=int(chosen.sum()),
                    ci_lower=mean.ci_lower,
                    ci_upper=mean.ci_upper,
                    unscored=unscored,
                    failed=failed,
                )
            )
        return found


def attempts(repeats: int) -> Sequence[int]:
    """1, the powers of two below the number of repeats, and that number."""
    found = {1, repeats}
    k = 2
    while k < repeats:
        found.add(k)
        k *= 2
    return sorted(found)


def _counts(rewards: np.ndarray, problems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _, codes = np.unique(problems, return_inverse=True)
    return np.bincount(codes), np.rint(np.bincount(codes, weights=rewards)).astype(np.int64)


def _by_problem(rewards: np.ndarray, problems: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(problems, kind="stable")
    starts = np.flatnonzero(np.diff(problems[order])) + 1
    return np.split(rewards[order], starts) if rewards.size else []


def _mean(rewards: np.ndarray, problems: np.ndarray | None) -> MetricValue:
    if not rewards.size:
        return MetricValue(value=None, n=0)
    groups = None
    if problems is not None and np.unique(problems).size < rewards.size:
        groups = problems
        if np.unique(problems).size == 1:
            return MetricValue(value=float(rewards.mean()), n=1, method="one problem: no interval")
    binary = bool(np.isin(rewards, (0.0, 1.0)).all())
    if rewards.size == 1 and not binary:
        return MetricValue(value=float(rewards[0]), n=1, method="one sample: no interval")
    try:
        return _value(mean_interval(rewards, groups=groups))
    except NoSpread:
        return MetricValue(value=float(rewards.mean()), n=rewards.size, method="no spread: no interval")


def _value(interval: Interval) -> MetricValue:
    return MetricValue(
        value=interval.value,
        ci_lower=_finite(interval.ci_lower),
        ci_upper=_finite(interval.ci_upper),
        method=interval.method,
        n=interval.n_groups or interval.n,
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
